"""Operands as questions of recordings need them: dense arrays, and compressed rows, columns and coordinates of SciPy, seen as what
``tensor`` makes of them, without importing what makes tensors. All else is made a tensor."""

from __future__ import annotations

from collections import deque
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.shown import attribute
from ..compiler.storage.digits import first_places, stable_order
from ..compiler.storage.segment_state import segment_state

if TYPE_CHECKING:
    from ..compiler.storage.walk import Walk

_MOST = 2**20  # entries up to which NumPy checks a matrix in less time than importing takes
_WIDE = 2**31  # the least extent whose coordinates do not take 32 bits
_MODES = {"csr": (0, 1), "csc": (1, 0)}
_INDICES = (np.dtype(np.int32), np.dtype(np.int64))


class _Full:
    """What a level of all coordinates tells (``levels.dense``)."""

    full, steps, holes = True, False, False

    def positions(self, _parts: object, parents: int, extent: int) -> int:
        return parents * extent

    def unpack(self, walk: Walk, _parts: object, extent: int) -> Walk:
        coordinates = np.tile(np.arange(extent), walk.count)
        positions = None if walk.positions is None else np.repeat(walk.positions * extent, extent) + coordinates
        return type(walk)((*(np.repeat(column, extent) for column in walk.columns), coordinates), positions, len(coordinates))


class _Compressed(str):
    """What a level of sorted segments tells (``levels.compressed``). As a string it is the kind's name, as kinds are."""

    full, steps, holes = False, True, False

    def positions(self, parts: dict[str, NDArray[Any]], _parents: int, _extent: int) -> int:
        return len(parts["crd"])

    def sampled(self, parts: dict[str, NDArray[Any]], places: NDArray[Any], _extent: int) -> NDArray[np.int64]:
        return parts["crd"][places].astype(np.int64)

    def unpack(self, walk: Walk, parts: dict[str, NDArray[Any]], _extent: int) -> Walk:
        pos, crd = parts["pos"], parts["crd"]
        places = np.arange(len(pos) - 1) if walk.positions is None else walk.positions
        counts = pos[places + 1] - pos[places]
        positions = None
        if walk.positions is not None:
            positions = np.repeat(pos[places] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            crd = crd[positions]
        crd = crd.astype(np.int64)  # numbers of 32 bits are slower as indices
        return type(walk)((*(np.repeat(column, counts) for column in walk.columns), crd), positions, len(crd))


class _Format:
    """The levels of a sketch, and the mode that each stores."""

    def __init__(self, levels: tuple[_Full | _Compressed, ...], order: tuple[int, ...]) -> None:
        self.levels, self.order, self.is_dense = levels, order, all(level.full for level in levels)
        self.plain = self

    def unique(self, _level: int) -> bool:
        return True


class _Level:
    """The arrays of a level."""

    def __init__(self, **parts: NDArray[Any]) -> None:
        self.parts, self.pos, self.crd = parts, parts.get("pos"), parts.get("crd")


class _Sketch:
    """The parts of a tensor that questions look at."""

    def __init__(self, shape: tuple[int, ...], form: _Format, levels: tuple[_Level, ...], values: NDArray[Any]) -> None:
        self.shape, self.format, self.levels, self.values, self.order = shape, form, levels, values, len(shape)
        self.nbytes = values.nbytes + sum(part.nbytes for level in levels for part in level.parts.values())
        self.nnz = len(values)


def sketch(data: Any) -> Any:
    """Return what tells of an operand all that questions ask. Raises an error where it is no operand."""
    if type(data) is np.ndarray or isinstance(data, (int, float, complex, np.generic)):
        array = np.asarray(data)
        form = _Format((_Full(),) * array.ndim, tuple(range(array.ndim)))
        return _Sketch(array.shape, form, (_Level(),) * array.ndim, array.reshape(-1))
    form = attribute(data, "format") if type(data).__module__.startswith("scipy.sparse") else None
    found = _compressed(data, _MODES[form]) if form in _MODES and data.ndim == 2 else _entries(data) if form == "coo" else None
    if found is not None:
        return found
    from ..compiler.storage.construct import tensor

    return tensor(data)


def _compressed(data: Any, order: tuple[int, ...]) -> _Sketch | None:
    """Return the sketch of a matrix of SciPy; None where its rows or columns are not sorted, or many."""
    pos, crd, values = data.indptr, data.indices, data.data
    rows, columns = (data.shape[mode] for mode in order)
    plain = all(type(part) is np.ndarray and part.ndim == 1 and part.flags.c_contiguous for part in (pos, crd, values))
    if not plain or pos.dtype not in _INDICES or crd.dtype not in _INDICES or len(pos) != rows + 1 or len(pos) + len(crd) > _MOST:
        return None
    if segment_state(pos, crd, min(len(crd), len(values)), columns):
        return None
    if len(crd) < _WIDE:
        pos = pos.astype(np.int32, copy=False)
    if columns < _WIDE:
        crd = crd.astype(np.int32, copy=False)
    crd, values = crd[: pos[-1]], values[: pos[-1]]
    return _Sketch(data.shape, _Format((_Full(), _Compressed("compressed")), order), (_Level(), _Level(pos=pos, crd=crd)), values)


def _entries(data: Any) -> _Sketch | None:
    """Return the sketch of coordinates of SciPy: of a matrix that of its rows, else one of compressed levels. None where they are many, or
    extents large. Raises ``ValueError`` where they are no coordinates of the shape."""
    columns, values, shape = attribute(data, "coords") or (), data.data, data.shape
    plain = all(type(part) is np.ndarray and part.shape == (len(values),) for part in (*columns, values))
    if not plain or len(columns) != len(shape) or any(column.dtype not in _INDICES for column in columns):
        return None
    if len(values) * len(shape) + shape[0] > _MOST or not all(0 < extent < _WIDE for extent in shape) or prod(shape) >= _WIDE**2:
        return None
    keys = np.asarray(np.ravel_multi_index(columns, shape))
    if prod(shape) < _WIDE:
        keys = keys.astype(np.int32)  # divided in half of the time
    if (keys[1:] <= keys[:-1]).any():
        keys = keys.take(stable_order(keys, prod(shape)))
        keys = keys[first_places(keys)]
    outer = 1 if len(shape) == 2 else 0  # levels of all coordinates
    levels, prefixes = deque[_Level](), keys
    for level in range(len(shape) - 1, outer - 1, -1):
        parents = prefixes // shape[level]
        begins = first_places(parents)
        pos = np.append(begins, len(parents)) if level > outer else np.searchsorted(parents, np.arange(prod(shape[:outer]) + 1))
        levels.appendleft(_Level(pos=pos.astype(np.int32), crd=(prefixes - parents * shape[level]).astype(np.int32)))
        prefixes = parents[begins]
    kinds = (_Full(),) * outer + (_Compressed("compressed"),) * len(levels)
    return _Sketch(shape, _Format(kinds, tuple(range(len(shape)))), (_Level(),) * outer + tuple(levels), values[: len(keys)])
