"""The passes of ``kernels.Kernels`` in NumPy, for machines without a C compiler, and as the oracle of the native ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..numpy_later import np
from . import hashing
from .aligned import aligned_copy, aligned_empty, aligned_full, index_dtype
from .segment_state import segment_state

if TYPE_CHECKING:
    from numpy.typing import NDArray

Columns: TypeAlias = "tuple[NDArray[Any], ...]"


class NumpyKernels:
    """The methods of ``kernels.Kernels`` in NumPy."""

    def order_state(self, columns: Columns) -> int:
        state = np.ones(max(0, len(columns[0]) - 1), np.int8)
        for column in reversed(columns):
            state[column[1:] > column[:-1]] = 0
            state[column[1:] < column[:-1]] = 2
        return int(state.max(initial=0))

    def first_differences(self, columns: Columns) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        first = np.full(len(columns[0]), len(columns), np.int8)
        for level in reversed(range(len(columns))):
            first[1:][columns[level][1:] != columns[level][:-1]] = level
        first[:1] = 0
        return first, np.bincount(first, minlength=len(columns) + 1).astype(np.int64)

    def sort(
        self, columns: Columns, extents: tuple[int, ...], values: NDArray[Any], leading: int, unique: bool
    ) -> tuple[Columns, NDArray[Any]]:
        permutation = self.sorting_permutation(columns[:leading], extents[:leading])
        columns, values = tuple(column[permutation] for column in columns), values[permutation]
        return (columns, values) if unique else self.summed(columns, values)

    def sorting_permutation(self, columns: Columns, extents: tuple[int, ...]) -> NDArray[np.int64]:
        """Return, as int64, the order that sorts entries by their coordinates, the first column first; equal entries keep their order."""
        widths = [max(0, extent - 1).bit_length() for extent in extents]
        if sum(widths) > 63:
            return np.lexsort(columns[::-1])
        key = np.zeros(len(columns[0]), np.int64)
        for column, width in zip(columns, widths, strict=True):
            key <<= width
            key |= column
        return np.argsort(key, kind="stable")

    def summed(self, columns: Columns, values: NDArray[Any]) -> tuple[Columns, NDArray[Any]]:
        """Return sorted entries with their duplicates summed."""
        heads = np.flatnonzero(self.first_differences(columns)[0] < len(columns))
        if len(heads) == len(values):
            return columns, values
        return tuple(column[heads] for column in columns), np.add.reduceat(values, heads).astype(values.dtype, copy=False)

    def segments(self, parent: NDArray[Any], parents: int, count: int) -> NDArray[Any]:
        return aligned_copy(np.searchsorted(parent, np.arange(parents + 1)), index_dtype(count))

    def expand(self, pos: NDArray[Any], column: NDArray[Any] | None, dtype: np.dtype[Any]) -> NDArray[Any]:
        parents = np.arange(len(pos) - 1, dtype=dtype) if column is None else column.astype(dtype, copy=False)
        return np.repeat(parents, np.diff(pos))

    def distances(self, pos: NDArray[Any], crd: NDArray[Any], kind: np.dtype[Any]) -> tuple[NDArray[np.uint16], NDArray[Any], int]:
        filled = np.flatnonzero(pos[1:] > pos[:-1])
        base = aligned_full(len(pos) - 1, 0, kind)
        base[filled] = crd[pos[filled]]
        reach = int((crd[pos[filled + 1] - 1] - base[filled]).max(initial=-1)) + 1
        return aligned_copy((crd - self.expand(pos, base, kind)).astype(np.uint16)), base, reach

    def patterns(self, pos: NDArray[Any], crd: NDArray[Any], kind: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        lengths, each = np.diff(pos), crd - self.expand(pos, None, np.dtype(np.int64))
        start = np.zeros(len(lengths), np.int64)
        first = np.arange(len(lengths))
        for length in np.unique(lengths[lengths > 0]):
            (parents,) = np.nonzero(lengths == length)
            rows = each[pos[parents][:, None] + np.arange(length)]
            _, heads, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
            first[parents] = parents[heads[which.reshape(-1)]]
        kept = first == np.arange(len(lengths))
        np.cumsum(np.where(kept, lengths, 0)[:-1], out=start[1:])
        start = np.where(lengths > 0, start[first], 0)
        return aligned_copy(start, index_dtype(len(crd))), aligned_copy(each[np.repeat(kept, lengths)], kind)

    def slices(self, pos: NDArray[Any], rows: int) -> NDArray[np.int64]:
        counts = np.diff(pos)
        whole = np.zeros(-(-len(counts) // rows) * rows, np.int64)
        whole[: len(counts)] = counts
        return _segment_starts(whole.reshape(-1, rows).max(axis=1, initial=0))

    def place_beside(
        self, pos: NDArray[Any], crd: NDArray[Any], rows: int, starts: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        parents, places = np.arange(len(pos) - 1, dtype=np.int64), rows * int(starts[-1])
        kind, firsts, pasts = index_dtype(places), starts[parents // rows], starts[parents // rows + 1]
        ends = firsts + np.diff(pos)
        slots = np.arange(len(crd)) * rows + np.repeat(rows * (firsts - pos[:-1]) + parents % rows, np.diff(pos))
        beside = aligned_full(places, 0, crd.dtype)
        beside[slots] = crd
        left = np.where(pos[1:] > pos[:-1], pasts - ends, 0)
        behind = np.arange(left.sum()) * rows + np.repeat(rows * (ends - np.cumsum(left) + left) + parents % rows, left)
        beside[behind] = np.repeat(crd[pos[1:][left > 0] - 1], left[left > 0])
        return beside, aligned_copy(ends, kind), aligned_copy(slots, kind)

    def below_dense(self, position: NDArray[Any], extent: int, column: NDArray[Any]) -> NDArray[np.int64]:
        return position.astype(np.int64) * extent + column

    def compress(
        self, first: NDArray[np.int8], last_level: int, parent: NDArray[Any] | None, parents: int, column: NDArray[Any], heads: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        new = first <= last_level
        of_heads = np.zeros(heads, np.int64) if parent is None else parent[new]
        return self.segments(of_heads, parents, heads), aligned_copy(column[new]), (np.cumsum(new) - 1).astype(index_dtype(heads))

    def count_children(self, first: NDArray[np.int8], level: int, parent: NDArray[np.int64], parents: int) -> NDArray[np.int64]:
        return np.bincount(parent[first <= level], minlength=parents).astype(np.int64)

    def place_children(
        self, first: NDArray[np.int8], level: int, parent: NDArray[np.int64], starts: NDArray[np.int64], column: NDArray[Any], hashed: bool
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        new = first <= level
        parents, coordinates = parent[new], column[new]
        if hashed:
            crd = aligned_full(int(starts[-1]), -1, column.dtype)
            children = hashing.insert(crd, starts, parents, coordinates)
        else:
            crd = aligned_empty(len(parents), column.dtype)
            children = starts[parents] + _ranks(parents)
            crd[children] = coordinates
        return crd, children[np.cumsum(new) - 1]

    def scatter(self, values: NDArray[Any], position: NDArray[Any], out: NDArray[Any]) -> None:
        out[position] = values

    def gather(self, values: NDArray[Any], position: NDArray[Any]) -> NDArray[Any]:
        return values[position]

    def copied(self, array: NDArray[Any]) -> NDArray[Any]:
        return aligned_copy(array)

    def copy(self, array: NDArray[Any], out: NDArray[Any]) -> None:
        out.reshape(array.shape)[...] = array

    def transpose(
        self, pos: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], columns: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.transpose_entries(self.expand(pos, None, index_dtype(len(pos) - 1)), crd, values, columns)

    def transpose_entries(
        self, rows: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], columns: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        permutation = np.argsort(crd, kind="stable")
        out_pos = aligned_copy(_segment_starts(np.bincount(crd, minlength=columns)), index_dtype(len(crd)))
        return out_pos, aligned_copy(rows[permutation]), aligned_copy(values[permutation])

    def shortened(self, array: NDArray[np.int64]) -> NDArray[np.int32]:
        short = aligned_copy(array, np.int32)
        short[short != array] = -1
        return short

    def check_segments(self, pos: NDArray[Any], crd: NDArray[Any], stored: int, extent: int) -> int:
        return segment_state(pos, crd, stored, extent)


def _segment_starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _ranks(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each head among those of its parent; the heads of one parent are consecutive."""
    places = np.arange(len(parents))
    if not len(parents):
        return places
    begins = np.flatnonzero(np.diff(parents, prepend=parents[:1] - 1))
    return places - np.repeat(begins, np.diff(begins, append=len(parents)))
