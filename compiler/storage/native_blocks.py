"""CSR to BCSR and back in C (csrc/st_block.c). BCSR has dense blocks below a dense level and a compressed one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError
from . import native
from .aligned import aligned_copy, aligned_empty, aligned_full, aligned_part, index_dtype

_MOST_COLUMNS = 2**31 - 2
"""The most columns of blocks: they are compared as int32, and one number is reserved for none."""

_FEW_COLUMNS = 1 << 16
"""Up to this many columns of blocks, numbering them costs nothing, even if there are few entries."""

Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""The arrays of positions, coordinates and values."""


def blocked_rows(rows: Rows, shape: tuple[int, int], block: tuple[int, int], fill_value: Any) -> Rows | None:
    """Return rows of blocks, in order, each block row-major; None if the caller has to sort entries instead.

    That is so if there is no compiler, or if there are so many columns for few entries that numbering them costs more than sorting.
    """
    helper = _Helper.of(rows, block)
    block_rows, block_columns = (-(-extent // inner) for extent, inner in zip(shape, block, strict=True))
    if helper is None or block_columns > min(max(2 * len(rows[1]), _FEW_COLUMNS), _MOST_COLUMNS):
        return None
    starts, owners = np.zeros(block_rows + 1, np.int64), np.empty(len(rows[1]), np.uint32)
    owned = helper.at(owners)
    helper.call("st_count_blocks", shape[0], block_rows, block_columns, owned, helper.longs(starts[1:]))
    np.cumsum(starts, out=starts)
    count = int(starts[-1])
    crd = aligned_empty(count, index_dtype(block_columns))
    values = aligned_full(count * block[0] * block[1], fill_value, rows[2].dtype)
    written = helper.at(crd), int(crd.itemsize == 8), helper.at(values)
    helper.call("st_fill_blocks", shape[0], block_rows, owned, helper.longs(starts), *written)
    return aligned_copy(starts, index_dtype(count)), crd, values


def plain_rows(rows: Rows, shape: tuple[int, int], block: tuple[int, int], fill_value: Any) -> Rows | None:
    """Return plain rows from rows of blocks, without values equal to the fill value; None if there is no compiler.

    Args:
        rows: positions and coordinates of blocks, values by block.
        shape: extents of the plain matrix, multiples of the block's.
        block: extents of a block.
        fill_value: the value with which blocks are padded.
    """
    helper = _Helper.of(rows, block)
    if helper is None:
        return None
    fill = np.full(1, fill_value, rows[2].dtype)
    mask = _mask(fill)
    padding = helper.at(fill), helper.at(mask)
    starts = np.zeros(shape[0] + 1, np.int64)
    crd, values = aligned_empty(len(rows[2]), index_dtype(shape[1])), aligned_empty(len(rows[2]), rows[2].dtype)
    written = helper.at(crd), int(crd.itemsize == 8), helper.at(values)
    helper.call("st_unblock", len(rows[0]) - 1, *padding, helper.longs(starts), *written)
    count = int(starts[-1])
    return aligned_copy(starts, index_dtype(count)), aligned_part(crd, count), aligned_part(values, count)


def _mask(fill: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bits in which values are compared with the fill value: all bits, except the sign if the fill value is a zero."""
    if fill.dtype.kind not in "fc" or fill[0] != 0:
        return np.full(fill.itemsize, 255, np.uint8)
    part = np.uint32 if fill.dtype in (np.float32, np.complex64) else np.uint64
    return np.full(fill.itemsize // np.dtype(part).itemsize, np.iinfo(part).max >> 1, part).view(np.uint8)


class _Helper:
    """The library with the description of one blocking."""

    def __init__(self, ffi: Any, lib: Any, rows: Rows, block: tuple[int, int]) -> None:
        self._ffi, self._lib, self._rows = ffi, lib, rows
        pos, crd, values = rows
        self._described = ffi.new("st_blocking *")
        self._described.pos, self._described.crd, self._described.values = (self.at(array) for array in rows)
        self._described.pos_wide, self._described.crd_wide = int(pos.itemsize == 8), int(crd.itemsize == 8)
        self._described.itemsize, (self._described.height, self._described.width) = values.itemsize, block

    @classmethod
    def of(cls, rows: Rows, block: tuple[int, int]) -> _Helper | None:
        loaded = native.library("st_block", "st_unblock")
        return None if loaded is None else cls(*loaded, rows, block)

    def call(self, name: str, rows: int, *arguments: Any) -> None:
        self._described.rows = rows
        if getattr(self._lib, name)(self._described, *arguments, native.threads_for(len(self._rows[1]))):
            raise ResourceError("there is no memory for a set of blocks")

    def at(self, array: NDArray[Any]) -> Any:
        return self._ffi.cast("void *", array.ctypes.data)

    def longs(self, array: NDArray[np.int64]) -> Any:
        return self._ffi.cast("int64_t *", array.ctypes.data)
