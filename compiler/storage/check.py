"""Whether arrays make a tensor: what is put together by hand is looked at once, as kernels take it for granted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..format import Format, LevelKind
from .dtypes import checked_dtype, checked_fill
from .kernels import active
from .shape import checked_shape

_INDEX_DTYPES = (np.dtype(np.int32), np.dtype(np.int64))
_PARTS = {
    LevelKind.DENSE: (),
    LevelKind.COMPRESSED: ("pos", "crd"),
    LevelKind.HASHED: ("pos", "crd"),
    LevelKind.SINGLETON: ("crd",),
    LevelKind.NARROW: ("pos", "crd", "base"),
}


def check(shape: Any, format: Any, levels: Any, values: Any, fill_value: Any) -> None:
    """Check the parts of a tensor: see ``Tensor`` and ``LevelArrays`` for what they are.

    Raises:
        DataError, ShapeError: naming the level and what is wrong with it.
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
        given = getattr(levels[level], "parts", None)
        if not isinstance(given, dict) or tuple(given) != _PARTS[kind]:
            raise _broken(level, kind, f"has the arrays {', '.join(_PARTS[kind]) or 'none'}")
        positions = _check_level(format, level, given, shape[format.order[level]], positions)
    if len(values) != positions:
        raise DataError(f"the last level has {positions} positions, but there are {len(values)} values")
    _check_order_of_runs(format, levels)


def _check_level(format: Format, level: int, parts: dict[str, NDArray[Any]], extent: int, parents: int) -> int:
    """Return how many positions the level has."""
    kind = format.levels[level]
    if kind is LevelKind.DENSE:
        return parents * extent
    crd, narrow = parts["crd"], kind is LevelKind.NARROW
    if any(part.dtype not in _INDEX_DTYPES for name, part in parts.items() if not (narrow and name == "crd")):
        raise _broken(level, kind, "has index arrays of int32 or int64")
    if kind is LevelKind.SINGLETON:
        if len(crd) != parents or not _within(crd, extent):
            raise _broken(level, kind, f"has one coordinate below {extent} for each of {parents} parents")
        return parents
    pos = parts["pos"]
    if len(pos) != parents + 1 or int(pos[0]) != 0 or int(pos[-1]) != len(crd) or (np.diff(pos) < 0).any():
        raise _broken(level, kind, f"has {parents} positions + 1, which begin at 0, do not decrease, and end at the length of crd")
    if kind is LevelKind.HASHED:
        _check_tables(level, pos, crd, extent)
        return len(crd)
    if narrow:
        if crd.dtype != np.uint16 or len(parts["base"]) != parents:
            raise _broken(level, kind, "has distances of 16 bits and one base a parent")
        crd = active().expand(pos, parts["base"].astype(np.int64), np.dtype(np.int64)) + crd
    state = active().check_segments(pos, crd, len(crd), extent)
    if state == 2:
        raise _broken(level, kind, f"has coordinates below {extent}")
    if state == 1 and not _repeats(format, level):
        raise _broken(level, kind, "has coordinates that increase inside each fibre")
    return len(crd)


def _check_tables(level: int, pos: NDArray[Any], crd: NDArray[Any], extent: int) -> None:
    sizes = np.diff(pos)
    taken = np.concatenate([[0], np.cumsum(crd >= 0)])
    full = taken[pos[1:]] - taken[pos[:-1]] >= sizes
    if (sizes & (sizes - 1)).any() or (sizes == 1).any() or (full & (sizes > 0)).any() or not _within(crd[crd != -1], extent):
        raise _broken(level, LevelKind.HASHED, f"has tables of two, four, eight ... slots, not all taken, with coordinates below {extent}")


def _check_order_of_runs(format: Format, levels: tuple[Any, ...]) -> None:
    """Coordinates of a compressed level and the singletons below it increase together inside each fibre."""
    for level in range(len(format)):
        if _repeats(format, level):
            last = level + 1
            while last + 1 < len(format) and format.levels[last + 1] is LevelKind.SINGLETON:
                last += 1
            rows = active().expand(levels[level].pos, None, np.dtype(np.int64))
            columns = (rows, *(levels[below].crd for below in range(level, last + 1)))
            if active().order_state(columns):
                raise _broken(level, LevelKind.COMPRESSED, "has entries that increase inside each fibre, with the singleton levels below")


def _repeats(format: Format, level: int) -> bool:
    return format.levels[level] is LevelKind.COMPRESSED and format.levels[level + 1 : level + 2] == (LevelKind.SINGLETON,)


def _within(crd: NDArray[Any], extent: int) -> bool:
    return not len(crd) or (int(crd.min()) >= 0 and int(crd.max()) < extent)


def _broken(level: int, kind: LevelKind, rule: str) -> DataError:
    return DataError(f"level {level + 1} is broken: a level that is {kind.name.lower()} {rule}")
