"""The layout of a line of a text format, and the entries that are read from such lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_MODES = 32
"""Largest order of a tensor in a text file."""

VALUE_DTYPES = {
    "pattern": np.dtype(np.float64),
    "real": np.dtype(np.float64),
    "complex": np.dtype(np.complex128),
    "integer": np.dtype(np.int64),
    "unsigned": np.dtype(np.uint64),
}
_VALUE_FIELDS = {"pattern": 0, "complex": 2}


@dataclass(frozen=True)
class Layout:
    """The layout of a line.

    Args:
        order: number of coordinates.
        kind: "pattern" (no value), "real", "complex" (two numbers), "integer" or "unsigned".
        extents: by mode; None where the file does not give them.
        base: the first coordinate of a mode, 1 or 0.
    """

    order: int
    kind: str
    extents: tuple[int | None, ...]
    base: int = 1

    @property
    def fields(self) -> int:
        return self.order + _VALUE_FIELDS.get(self.kind, 1)


@dataclass(frozen=True)
class Entries:
    """The entries of a file: coordinates from 0 on by mode, values (ones for a pattern), largest coordinate by mode (-1: none)."""

    columns: tuple[NDArray[Any], ...]
    values: NDArray[Any]
    greatest: tuple[int, ...]


class Mistake(Exception):
    """The first line that does not fit the layout: its place, what is wrong, and the mode (the order for a value)."""

    def __init__(self, place: int, kind: str, mode: int = 0) -> None:
        super().__init__(place, kind, mode)
        self.place, self.kind, self.mode = place, kind, mode
