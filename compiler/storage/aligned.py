"""Allocates arrays aligned to cache lines, and raises a clear error if there is no memory."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import ResourceError
from ..native.memory import FLOOR, claim, readable_bytes
from ..numpy_later import np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64
"""The alignment in bytes that vector instructions gain by: the size of a cache line and of the widest vector registers."""

LINE_PAIR = 128
"""Arrays that are made here begin at multiples of so many bytes. Processors fetch cache lines in pairs: where rows of a power of two of
elements begin in the middle of a pair, each takes a pair more."""

HUGE_PAGE = 1 << 21
"""Large arrays begin at multiples of so many bytes, so that they lie in whole huge pages wherever the system has put their memory."""

_LARGE = 1 << 22  # bytes from which NumPy asks for huge pages

INDEX_LIMIT = 2**31 - 1
"""Largest extent or number of positions that is stored with 32 bits; a test may lower it to see int64 chosen."""


FEWER_LEVELS = "name a sparse format: output_format='csr' or 'dcsr' for a result, 'dcsr' or 'coo' for an operand"
"""Advice in messages about a tensor that is too large for its format."""


def index_dtype(largest: int) -> np.dtype[Any]:
    """Return int32 where ``largest`` (an extent, or a number of positions) fits, else int64."""
    return np.dtype(np.int32 if largest <= INDEX_LIMIT else np.int64)


@cache
def index_dtypes() -> tuple[np.dtype[Any], ...]:
    """Return the types of index arrays."""
    return np.dtype(np.int32), np.dtype(np.int64)


def aligned_empty(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialised flat array whose data begins at a multiple of 128 bytes (``LINE_PAIR``), or at a huge page where it is large.

    NumPy asks the system for huge pages in large allocations; aligned views of these have huge pages too.

    Raises:
        ResourceError: there is no memory.
    """
    return _aligned(np.empty, int(count), np.dtype(dtype))


def aligned_full(count: int, value: object, dtype: DTypeLike) -> NDArray[Any]:
    """Return an aligned array filled with one value; the system provides zeros as empty pages.

    Raises:
        ResourceError: the memory cannot be had.
    """
    if np.asarray(value).astype(dtype).tobytes().strip(b"\0") == b"":
        return _aligned(np.zeros, int(count), np.dtype(dtype))
    array = aligned_empty(count, dtype)
    array.fill(value)  # pyright: ignore[reportArgumentType] any scalar of the dtype
    return array


def _aligned(allocate: Callable[..., NDArray[Any]], count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    size = count * kind.itemsize
    alignment = HUGE_PAGE if size >= _LARGE else LINE_PAIR
    if size > FLOOR:
        claim(size, array_name(count, kind), FEWER_LEVELS)
    try:
        raw = allocate(size + alignment, np.uint8)
    except (MemoryError, ValueError):  # ValueError: more bytes than an address has
        raise ResourceError(f"{array_name(count, kind)} does not fit into memory ({readable_bytes(size)}); {FEWER_LEVELS}") from None
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw))  # pyright: ignore[reportArgumentType] raw.ctypes.data takes thrice as long
    start = -address % alignment
    return raw[start : start + size].view(kind)


def array_name(count: int, kind: np.dtype[Any]) -> str:
    """Return what messages call an array."""
    return f"an array of {count} {kind}"


def aligned_copy(array: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return an aligned, flat, C-ordered copy of an array."""
    copy = aligned_empty(array.size, dtype or array.dtype)
    copy.reshape(array.shape)[...] = array
    return copy


def offset_of(array: NDArray[Any]) -> int:
    """Return how many bytes an array begins after a multiple of ``LINE_PAIR``."""
    return array.ctypes.data % LINE_PAIR


def copy_at(array: NDArray[Any], offset: int) -> NDArray[Any]:
    """Return a flat, C-ordered copy of an array that begins so many bytes after a multiple of ``LINE_PAIR``: kernels are as fast on it as
    on one that a caller has there."""
    room = aligned_empty(array.nbytes + offset, np.uint8)
    copy = room[offset:].view(array.dtype)
    copy.reshape(array.shape)[...] = array
    return copy


def aligned_part(array: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the first ``count`` elements of a flat array that ``aligned_empty`` made, and release the rest of its memory.

    Allocators shrink in place, so nothing is copied. The array itself must not be used any more.
    """
    raw = array.base
    assert isinstance(raw, np.ndarray)
    before = raw.ctypes.data
    kept = array.ctypes.data - before + count * array.itemsize
    raw.resize(kept, refcheck=False)
    if raw.ctypes.data == before:
        return array[:count]
    return aligned_copy(raw[kept - count * array.itemsize :].view(array.dtype))


def dense_size(shape: tuple[int, ...]) -> int:
    """Return the number of coordinates of a shape as an exact integer."""
    return math.prod(shape)
