"""Checks that arrays make a tensor. Tensors put together by hand are checked once, since kernels rely on valid arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import DataError
from ..format import Format
from ..ir.nodes import I32
from ..levels import LevelKind
from ..levels.traversal import Claimed
from .dtypes import checked_dtype, checked_fill
from .kernels import active
from .shape import checked_shape


def check(shape: Any, format: Any, levels: Any, values: Any, fill_value: Any) -> None:
    """Check the parts of a tensor: see ``Tensor`` and ``LevelArrays`` for what they are.

    Raises:
        DataError, ShapeError: the parts are no tensor; the message names the level and what is wrong.
    """
    shape = checked_shape(shape)
    if not isinstance(format, Format) or len(format) != len(shape):
        raise DataError(f"the format of a tensor of shape {shape} has {len(shape)} levels; this is {format!r}")
    if not isinstance(values, np.ndarray) or values.ndim != 1 or not values.flags.c_contiguous:
        raise DataError("the values of a tensor are a flat, contiguous ndarray")
    checked_fill(fill_value, checked_dtype(values.dtype))
    if not isinstance(levels, tuple) or len(levels) != len(shape):
        raise DataError(f"a tensor of shape {shape} has {len(shape)} levels, each with its arrays")
    positions = 1
    for level, kind in enumerate(format.levels):
        given, names = getattr(levels[level], "parts", None), tuple(kind.types(I32))
        if not isinstance(given, Mapping) or tuple(given) != names:
            raise _broken(level, kind, f"has the arrays {', '.join(names) or 'none'}")
        repeats = not format.unique(level)
        positions = kind.check(Claimed(str(kind), level, shape[format.order[level]], positions, repeats, dict(given)))
    if len(values) != positions:
        raise DataError(f"the last level has {positions} positions, but there are {len(values)} values")
    _check_order_of_runs(format, levels)


def _check_order_of_runs(format: Format, levels: tuple[Any, ...]) -> None:
    """Check that the coordinates of a level of entries and of the singletons below it increase together inside each fibre."""
    for level, kind in enumerate(format.levels):
        if kind.has_segments and not format.unique(level):
            last = level + 1
            while last + 1 < len(format) and format.levels[last + 1].shares_positions:
                last += 1
            rows = active().expand(levels[level].pos, None, np.dtype(np.int64))
            columns = (rows, *(levels[below].crd for below in range(level, last + 1)))
            if active().order_state(columns):
                raise _broken(level, kind, "has entries that increase inside each fibre, with the singleton levels below")


def _broken(level: int, kind: LevelKind, rule: str) -> DataError:
    return DataError(f"level {level + 1} is broken: a level that is {kind} {rule}")
