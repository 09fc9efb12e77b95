"""What the programs of this folder share: their arguments, factors to begin with, and a line for each iteration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import sparsetune as st
from mpi4py import MPI
from numpy.typing import NDArray

FIRST = MPI.COMM_WORLD.Get_rank() == 0
"""Whether this rank is the one that prints and writes."""


def arguments(about: str, tensor: str) -> argparse.Namespace:
    """Return the arguments of the command line: ``tensor``, ``rank``, ``iterations`` and ``output``."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("tensor", nargs="?", default=tensor, help="a .tns or .mtx file, or a name of 'tune-kernel data list'")
    parser.add_argument("--rank", type=int, default=8, help="columns of each factor")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("-o", "--output", help="a .npz file for the factors")
    return parser.parse_args()


def random_factors(shape: Sequence[int], rank: int) -> list[NDArray[Any]]:
    """Return one matrix a mode, the same on every rank of the program."""
    rng = np.random.default_rng(0)
    return [rng.random((extent, rank)) for extent in shape]


class Log:
    """A line for each iteration, with the bytes that ranks have sent to each other since the last."""

    def __init__(self) -> None:
        self._before = st.distributed.traffic()

    def __call__(self, iteration: int, what: str, number: float) -> None:
        total = st.distributed.traffic()
        if FIRST:
            print(f"iteration {iteration:2}  {what} {number:.6f}  {total - self._before} bytes sent")
        self._before = total


def write(path: str | None, factors: Sequence[NDArray[Any]], **more: NDArray[Any]) -> None:
    """Write the factors on one rank, if a path is given."""
    if FIRST and path is not None:
        np.savez(path, **{f"factor{mode}": factor for mode, factor in enumerate(factors)}, **more)  # type: ignore[arg-type]
