"""Narrow levels: compressed ones whose coordinates take two bytes, as distances from the first of their fibre.

Where what a kernel waits for is memory, fewer bytes are less time: a nonzero of a float64 matrix takes 10 bytes in place of 12. Fibres
of grids, bands and blocks are short enough; those that reach further stay compressed.
"""

from __future__ import annotations

import numpy as np

from ..errors import FormatError
from ..format import Format, LevelKind
from .aligned import index_dtype
from .kernels import active
from .sealed import sealed
from .tensor import LevelArrays, Tensor, level_extent

REACH = 2**16
"""Coordinates from the first to the last of a fibre of a narrow level, both counted, at most."""


def widen(tensor: Tensor) -> Tensor:
    """Return the tensor with compressed levels in place of narrow ones; itself where there is none."""
    if LevelKind.NARROW not in tensor.format.levels:
        return tensor
    kinds = enumerate(tensor.format.levels)
    levels = tuple(_widened(tensor, level) if kind is LevelKind.NARROW else tensor.levels[level] for level, kind in kinds)
    return Tensor.made(tensor.shape, tensor.format.widened, levels, tensor.values, tensor.fill_value)


def narrow(tensor: Tensor, format: Format) -> Tensor:
    """Return a tensor in ``format.widened`` with narrow levels where the format has them.

    Raises:
        FormatError: a fibre reaches further than narrow levels do.
    """
    kinds = enumerate(format.levels)
    levels = tuple(_narrowed(tensor, level, format) if kind is LevelKind.NARROW else tensor.levels[level] for level, kind in kinds)
    return Tensor.made(tensor.shape, format, levels, tensor.values, tensor.fill_value)


def _widened(tensor: Tensor, level: int) -> LevelArrays:
    arrays = tensor.levels[level]
    assert arrays.pos is not None
    assert arrays.crd is not None
    assert arrays.base is not None
    kind = index_dtype(level_extent(tensor, level))
    crd = active().expand(arrays.pos, arrays.base.astype(kind, copy=False), kind)
    np.add(crd, arrays.crd, out=crd, casting="same_kind")
    return LevelArrays(arrays.pos, sealed(crd))


def _narrowed(tensor: Tensor, level: int, format: Format) -> LevelArrays:
    arrays = tensor.levels[level]
    assert arrays.pos is not None
    assert arrays.crd is not None
    pos = arrays.pos.astype(index_dtype(len(arrays.crd)), copy=False)
    distances, base, reach = active().distances(pos, arrays.crd, index_dtype(level_extent(tensor, level)))
    if reach > REACH:
        raise FormatError(
            f"format '{format}' cannot hold these entries: level {level + 1} is narrow, and one of its fibres reaches over "
            f"{reach} coordinates, more than {REACH}; use compressed"
        )
    return LevelArrays(pos, sealed(distances), sealed(base))
