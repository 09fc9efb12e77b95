"""The kernels of Kanakagiri and Solomonik on tensors of any order, with seeded dense operands; section 7 has their sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...compiler.frozen import frozen
from ...compiler.storage.tensor import Tensor
from .drawn_pattern import DrawnPattern

_MODES, _RANKS = "ijklmn", "abcdef"


@frozen
class Case:
    """One kernel on one tensor.

    Attributes:
        rank: extent of the indices that the tensor does not have.
        sparse: whether the result has the tensor's pattern.
    """

    kernel: str
    expression: str
    operands: dict[str, Any]
    rank: int
    sparse: bool = False


def _indices(tensor: Tensor | DrawnPattern) -> str:
    return ",".join(_MODES[: tensor.order])


def _factor(rows: int, rank: int) -> Any:
    return np.random.default_rng([rows, rank]).random((rows, rank))


def mttkrp(tensor: Tensor | DrawnPattern, rank: int) -> Case:
    """Return the MTTKRP of a tensor along its first mode."""
    others = range(1, tensor.order)
    product = "".join(f" * F{mode}({_MODES[mode]},a)" for mode in others)
    factors = {f"F{mode}": _factor(tensor.shape[mode], rank) for mode in others}
    return Case("MTTKRP", f"A(i,a) = T({_indices(tensor)}){product}", {"T": tensor, **factors}, rank)


def ttmc(tensor: Tensor | DrawnPattern, rank: int) -> Case:
    """Return the TTMc of a tensor along all modes but the first."""
    others = range(1, tensor.order)
    product = "".join(f" * F{mode}({_MODES[mode]},{_RANKS[mode]})" for mode in others)
    factors = {f"F{mode}": _factor(tensor.shape[mode], rank) for mode in others}
    left = ",".join(["i", *(_RANKS[mode] for mode in others)])
    return Case("TTMc", f"S({left}) = T({_indices(tensor)}){product}", {"T": tensor, **factors}, rank)


def tttp(tensor: Tensor | DrawnPattern, rank: int) -> Case:
    """Return the TTTP of a tensor, which has its pattern."""
    product = "".join(f" * F{mode}({_MODES[mode]},a)" for mode in range(tensor.order))
    factors = {f"F{mode}": _factor(extent, rank) for mode, extent in enumerate(tensor.shape)}
    return Case("TTTP", f"S({_indices(tensor)}) = T({_indices(tensor)}){product}", {"T": tensor, **factors}, rank, True)


def tttc(tensor: Tensor | DrawnPattern, rank: int) -> Case:
    """Return the contraction of a tensor with all cores of a tensor train but the last: equation 4, for any order."""
    rng, last = np.random.default_rng(tensor.order), tensor.order - 1
    product, factors = " * F0(i,a)", {"F0": _factor(tensor.shape[0], rank)}
    for mode in range(1, last):
        product += f" * F{mode}({_RANKS[mode - 1]},{_MODES[mode]},{_RANKS[mode]})"
        factors[f"F{mode}"] = rng.random((rank, tensor.shape[mode], rank))
    left = f"{_RANKS[last - 1]},{_MODES[last]}"
    return Case("TTTc", f"Z({left}) = T({_indices(tensor)}){product}", {"T": tensor, **factors}, rank)


KERNELS: dict[str, Callable[[Tensor | DrawnPattern, int], Case]] = {"MTTKRP": mttkrp, "TTMc": ttmc, "TTTP": tttp, "TTTc": tttc}
