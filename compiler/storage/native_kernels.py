"""The passes of ``kernels.Kernels`` in C: csrc/st_order.c, st_distinct.c, st_pack.c, st_children.c, st_patterns.c,
st_slices.c, st_strided.c, st_transpose.c, st_check.c."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import ResourceError
from ..native.machine import this_machine
from ..numpy_later import np
from .aligned import aligned_empty, aligned_full, aligned_part, index_dtype
from .native import threads_for
from .numpy_kernels import Columns, NumpyKernels
from .pooled import pooled_empty

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

KEPT_BY_LIBRARY = 1 << 25
"""Bytes of the largest blocks that glibc keeps: DEFAULT_MMAP_THRESHOLD_MAX. Smaller ones are more often in a cache there than in a pool."""

_SUM_KINDS = {
    "float32": "ST_F32",
    "float64": "ST_F64",
    "bool": "ST_BOOL",
    "complex64": "ST_C64",
    "complex128": "ST_C128",
    **{f"{sign}int{8 * size}": f"ST_I{8 * size}" for sign in ("", "u") for size in (1, 2, 4, 8)},
}


class NativeKernels(NumpyKernels):
    """The methods of ``kernels.Kernels`` in C; NumPy sorts keys of more than 64 bits."""

    def __init__(self, ffi: Any, lib: Any) -> None:
        self._ffi, self._lib = ffi, lib

    def order_state(self, columns: Columns) -> int:
        return self._lib.st_order_state(len(columns[0]), len(columns), *self._columns(columns), threads_for(len(columns[0])))

    def first_differences(self, columns: Columns) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        count, levels = len(columns[0]), len(columns)
        first, histogram = _empty(count, np.int8), np.zeros(levels + 1, np.int64)
        outputs = self._bytes(first), self._longs(histogram), threads_for(count)
        self._lib.st_first_differences(count, levels, *self._columns(columns), *outputs)
        return first, histogram

    def sort(
        self, columns: Columns, extents: tuple[int, ...], values: NDArray[Any], leading: int, unique: bool
    ) -> tuple[Columns, NDArray[Any]]:
        widths = [max(0, extent - 1).bit_length() for extent in extents]
        if sum(widths) > 64:
            return self._sorted_by_permutation(columns, extents, values, leading)
        if len(columns) == 2 and leading == 1 and unique and max(extents) <= 2 * len(values):
            return self._transposed_columns(columns, extents, values)
        bits = self._ffi.new("int8_t[]", widths)
        keys, payload = self._sorted(columns, bits, sum(widths[leading:]), values)
        places = None if unique else self._distinct(keys)
        count = len(keys) if places is None else int(places[-1])
        columns = tuple(_empty(count, index_dtype(extent)) for extent in extents)
        sums = None if values.itemsize == 8 and count == len(keys) else _empty(count, values.dtype)
        pointers, wide = self._columns(columns)
        self._lib.st_write_entries(
            *(len(keys), len(columns), pointers, wide, bits, self._keys_at(keys), self._keys_at(payload)),
            *(self._ffi.NULL if places is None else self._longs(places), self._at(values)),
            *(getattr(self._lib, _SUM_KINDS[values.dtype.name]), self._at(sums), threads_for(len(keys))),
        )
        return columns, payload.view(values.dtype) if sums is None else sums

    def _sorted_by_permutation(
        self, columns: Columns, extents: tuple[int, ...], values: NDArray[Any], leading: int
    ) -> tuple[Columns, NDArray[Any]]:
        permutation = self.sorting_permutation(columns[:leading], extents[:leading])
        return self.summed(tuple(self.gather(column, permutation) for column in columns), self.gather(values, permutation))

    def _transposed_columns(self, columns: Columns, extents: tuple[int, ...], values: NDArray[Any]) -> tuple[Columns, NDArray[Any]]:
        """Sort the entries of a matrix, which are in order of their second column, by counting in the first."""
        pos = self.segments(columns[1], extents[1], len(values))
        out_pos, crd, values = self.transpose(pos, columns[0], values, extents[0])
        return (self.expand(out_pos, None, index_dtype(extents[0])), crd), values

    def _sorted(self, columns: Columns, bits: Any, low: int, values: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return keys, sorted but for the lowest ``low`` bits, and beside each a value of up to 8 bytes, else the number of its entry."""
        count = len(values)
        keys, payload = pooled_empty(count, np.uint64), pooled_empty(count, np.uint64)
        pointers, wide = self._columns(columns)
        failed = self._lib.st_sort_entries(
            *(count, len(columns), pointers, wide, bits, low, self._at(values), values.itemsize),
            *(self._keys_at(keys), self._keys_at(payload), threads_for(count)),
        )
        if failed:
            raise ResourceError(f"there is no memory to sort {count} entries")
        return keys, payload

    def _distinct(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how many different keys stand before each block of keys, and how many in all."""
        places = np.zeros(-(-len(keys) // self._lib.ST_KEY_BLOCK) + 1, np.int64)
        self._lib.st_count_distinct(len(keys), self._keys_at(keys), self._longs(places), threads_for(len(keys)))
        return places

    def segments(self, parent: NDArray[Any], parents: int, count: int) -> NDArray[Any]:
        pos = _empty(parents + 1, index_dtype(count))
        self._lib.st_segments(count, *self._index(parent), parents, *self._index(pos), threads_for(count + parents))
        return pos

    def expand(self, pos: NDArray[Any], column: NDArray[Any] | None, dtype: np.dtype[Any]) -> NDArray[Any]:
        parents = len(pos) - 1
        count = int(pos[-1]) - int(pos[0])
        if column is not None and column.dtype.itemsize not in (4, 8):
            return super().expand(pos, column, dtype)
        out = _empty(count, dtype)
        given = self._at(column), int(column is not None and column.itemsize == 8)
        self._lib.st_expand(parents, *self._index(pos), *given, *self._index(out), threads_for(count))
        return out

    def distances(self, pos: NDArray[Any], crd: NDArray[Any], kind: np.dtype[Any]) -> tuple[NDArray[np.uint16], NDArray[Any], int]:
        found, base = _empty(len(crd), np.uint16), _empty(len(pos) - 1, kind)
        arrays = *self._index(pos), *self._index(crd), *self._index(base), self._ffi.cast("uint16_t *", self._at(found))
        return found, base, int(self._lib.st_distances(len(base), *arrays, threads_for(len(crd))))

    def patterns(self, pos: NDArray[Any], crd: NDArray[Any], kind: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        start, room = _empty(len(pos) - 1, index_dtype(len(crd))), aligned_empty(len(crd), kind)
        count = self._lib.st_patterns(len(start), *self._index(pos), *self._index(crd), *self._index(start), *self._index(room))
        if count < 0:
            raise ResourceError(f"there is no memory to compare the fibres of {len(start)} parents")
        return start, aligned_part(room, count)

    def slices(self, pos: NDArray[Any], rows: int) -> NDArray[np.int64]:
        parents = len(pos) - 1
        starts = _empty(-(-parents // rows) + 1, np.int64)
        self._lib.st_slices(parents, *self._index(pos), rows, self._longs(starts), threads_for(parents))
        return starts

    def place_beside(
        self, pos: NDArray[Any], crd: NDArray[Any], rows: int, starts: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        parents, places = len(pos) - 1, rows * int(starts[-1])
        kind = index_dtype(places)
        beside, ends, slots = _empty(places, crd.dtype), _empty(parents, kind), _empty(len(crd), kind)
        self._lib.st_place_beside(
            *(parents, *self._index(pos), *self._index(crd), rows, self._longs(starts)),
            *(*self._index(ends), self._at(beside), *self._index(slots), threads_for(parents + len(crd))),
        )
        return beside, ends, slots

    def below_dense(self, position: NDArray[Any], extent: int, column: NDArray[Any]) -> NDArray[np.int64]:
        out = _empty(len(column), np.int64)
        self._lib.st_below_dense(
            len(column), *self._index(position), extent, *self._index(column), self._longs(out), threads_for(len(column))
        )
        return out

    def compress(
        self, first: NDArray[np.int8], last_level: int, parent: NDArray[Any] | None, parents: int, column: NDArray[Any], heads: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        kind, count = index_dtype(heads), len(first)
        pos, crd, child = _empty(parents + 1, kind), _empty(heads, column.dtype), _empty(count, kind)
        self._lib.st_compress(
            *(count, self._bytes(first), last_level, *self._index(parent), parents, *self._index(column)),
            *(*self._index(crd), *self._index(pos), *self._index(child), threads_for(count + parents)),
        )
        return pos, crd, child

    def count_children(self, first: NDArray[np.int8], level: int, parent: NDArray[np.int64], parents: int) -> NDArray[np.int64]:
        counts = np.zeros(parents, np.int64)
        count = len(first)
        self._lib.st_count_children(count, self._bytes(first), level, self._longs(parent), self._longs(counts), threads_for(count))
        return counts

    def place_children(
        self, first: NDArray[np.int8], level: int, parent: NDArray[np.int64], starts: NDArray[np.int64], column: NDArray[Any], hashed: bool
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        count = len(first)
        crd, child = aligned_full(int(starts[-1]), -1, column.dtype), _empty(count, np.int64)
        self._lib.st_place_children(
            *(count, self._bytes(first), level, self._longs(parent), self._longs(starts), *self._index(column), *self._index(crd)),
            *(int(hashed), self._longs(child), threads_for(count)),
        )
        return crd, child

    def scatter(self, values: NDArray[Any], position: NDArray[Any], out: NDArray[Any]) -> None:
        self._lib.st_scatter(
            len(values), self._at(values), values.itemsize, *self._index(position), self._at(out), threads_for(len(values))
        )

    def gather(self, values: NDArray[Any], position: NDArray[Any]) -> NDArray[Any]:
        out = _empty(len(position), values.dtype)
        self._lib.st_gather(len(out), self._at(values), values.itemsize, *self._index(position), self._at(out), threads_for(len(out)))
        return out

    def copied(self, array: NDArray[Any]) -> NDArray[Any]:
        out = (aligned_empty if array.flags.c_contiguous else pooled_empty)(array.size, array.dtype)
        self.copy(array, out)
        return out

    def copy(self, array: NDArray[Any], out: NDArray[Any]) -> None:
        threads = threads_for(array.size)
        if array.flags.c_contiguous:
            self._lib.st_copy(array.nbytes, self._at(array), self._at(out), threads)
            return
        address, unit = array.__array_interface__["data"][0], min(array.itemsize, 8)
        if array.ndim != 2 or any(place % unit for place in (address, *array.strides)):
            super().copy(array, out)  # NumPy copies other orders, and items that lie askew in memory
            return
        begin = self._ffi.cast("void *", address)
        self._lib.st_copy_strided(*array.shape, *array.strides, begin, array.itemsize, self._at(out), threads)

    def transpose(
        self, pos: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], columns: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        rows, count, threads = len(pos) - 1, len(crd), _counting_threads(len(crd), columns)
        out_pos = _empty(columns + 1, index_dtype(count))
        out_crd, out_values = _empty(count, index_dtype(rows)), _empty(count, values.dtype)
        room = self._transposing_room(crd, columns, values, out_pos, out_crd)
        places = _transposing_places(room, count, out_pos, threads)
        failed = self._lib.st_transpose(
            *(rows, columns, *self._index(pos), *self._index(crd), self._at(values), values.itemsize),
            *(*self._index(out_pos), *self._index(out_crd), self._at(out_values), self._at(room), self._at(places), threads),
        )
        if failed:
            raise ResourceError(f"there is no memory to transpose {count} entries")
        return out_pos, out_crd, out_values

    def transpose_entries(
        self, rows: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], columns: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        count, threads = len(crd), _counting_threads(len(crd), columns)
        out_pos = _empty(columns + 1, index_dtype(count))
        out_crd, out_values = _empty(count, rows.dtype), _empty(count, values.dtype)
        room = self._transposing_room(crd, columns, values, out_pos, out_crd)
        places = _transposing_places(room, count, out_pos, threads)
        failed = self._lib.st_transpose_entries(
            *(count, columns, *self._index(rows), *self._index(crd), self._at(values), values.itemsize),
            *(*self._index(out_pos), self._at(out_crd), self._at(out_values), self._at(room), self._at(places), threads),
        )
        if failed:
            raise ResourceError(f"there is no memory to transpose {count} entries")
        return out_pos, out_crd, out_values

    def _transposing_room(self, crd: NDArray[Any], columns: int, values: NDArray[Any], *made: NDArray[Any]) -> NDArray[Any] | None:
        """Return memory that helps to transpose entries; None if none would, or there is none."""
        if len(crd) < self._lib.ST_SCATTERED_LEAST:
            return None
        wide = int(any(array.itemsize == 8 for array in (crd, *made)))
        cache = this_machine().last_level_cache
        room = self._lib.st_transpose_room(len(crd), columns, self._at(crd), wide, values.itemsize, cache)
        with suppress(ResourceError):
            return pooled_empty(room, np.uint8) if room else None
        return None

    def shortened(self, array: NDArray[np.int64]) -> NDArray[np.int32]:
        short = _empty(len(array), np.int32)
        self._lib.st_shorten(len(array), self._longs(array), self._ffi.cast("int32_t *", self._at(short)), threads_for(len(array)))
        return short

    def check_segments(self, pos: NDArray[Any], crd: NDArray[Any], stored: int, extent: int) -> int:
        return self.check_segments_at(*self._index(pos), *self._index(crd), len(pos) - 1, stored, extent)

    def check_segments_at(self, pos: Any, pos_is_wide: int, crd: Any, crd_is_wide: int, segments: int, stored: int, extent: int) -> int:
        """Do the same as ``check_segments`` on addresses; ``..._is_wide`` says whether an index array has 64 bits."""
        return self._lib.st_check_segments(segments, pos, pos_is_wide, crd, crd_is_wide, stored, extent, threads_for(stored))

    def _at(self, array: NDArray[Any] | None) -> Any:
        return self._ffi.NULL if array is None else self._ffi.from_buffer(array)

    def _bytes(self, array: NDArray[Any]) -> Any:
        return self._ffi.cast("int8_t *", array.__array_interface__["data"][0])

    def _longs(self, array: NDArray[Any]) -> Any:
        return self._ffi.cast("int64_t *", array.__array_interface__["data"][0])

    def _keys_at(self, array: NDArray[Any]) -> Any:
        return self._ffi.cast("uint64_t *", array.__array_interface__["data"][0])

    def _index(self, array: NDArray[Any] | None) -> tuple[Any, int]:
        """Return the pointer to an index array, and whether it has 64 bits."""
        return self._at(array), int(array is not None and array.itemsize == 8)

    def _columns(self, columns: Columns) -> tuple[Any, Any]:
        pointers = self._ffi.new("void *[]", [self._at(column) for column in columns])
        return pointers, self._ffi.new("int8_t[]", [int(column.itemsize == 8) for column in columns])


def _empty(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array for a result. The C library keeps memory below a size for later arrays; for larger ones that of results that are
    not used any more is taken, as new pages take up to a third of a conversion."""
    return (pooled_empty if int(count) * np.dtype(dtype).itemsize > KEPT_BY_LIBRARY else aligned_empty)(count, dtype)


def _transposing_places(room: NDArray[Any] | None, count: int, pos: NDArray[Any], threads: int) -> NDArray[Any] | None:
    """Return memory for the places of entries in all columns, for each thread; None if they are kept where the positions go, or not at
    all. It comes from a pool: threads would get new pages no sooner than one."""
    kind = np.dtype(np.uint32 if count < 2**32 - 1 else np.int64)
    if room is not None or (threads == 1 and kind.itemsize == pos.itemsize):
        return None
    return pooled_empty(threads * (len(pos) - 1), kind)


def _counting_threads(count: int, columns: int) -> int:
    """Return the number of threads of a transposition. Each counts all columns, which does not pay if columns outnumber entries. Of short
    ones most lines go from the cache of one core to that of another, which takes as long as writing them."""
    return min(threads_for(2 * count // 5), max(1, 4 * count // max(1, columns)))
