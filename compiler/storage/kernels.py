"""The passes over entries for packing and conversion, in C if there is a compiler, else in NumPy."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ..numpy_later import np
from . import numpy_kernels
from .numpy_kernels import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Kernels(Protocol):
    """The functions of ``numpy_kernels`` and ``native_kernels``. Columns are by level, outermost first, int32 or int64.

    ``first`` and ``histogram`` are the first level at which each entry differs from the one before, and how many entries
    have each; an entry begins a new position of level l where ``first <= l``.
    """

    def order_state(self, columns: Columns) -> int:
        """Return 0 where each entry is lexicographically greater than the one before, 1 where some are equal, 2 else."""
        ...

    def first_differences(self, columns: Columns) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Return (first, histogram) of sorted entries."""
        ...

    def sort(
        self, columns: Columns, extents: tuple[int, ...], values: NDArray[Any], leading: int, unique: bool
    ) -> tuple[Columns, NDArray[Any]]:
        """Return sorted columns and values, duplicates summed.

        Args:
            leading: by how many leading columns a stable sort has to sort; the others are in order then.
            unique: whether it is known that there are no duplicates.
        """
        ...

    def segments(self, parent: NDArray[Any], parents: int, count: int) -> NDArray[Any]:
        """Return where the entries of each of ``parents`` parents begin, and ``count`` at the end; parents do not decrease."""
        ...

    def expand(self, pos: NDArray[Any], column: NDArray[Any] | None, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return for each child the column's element of its parent, or the parent itself."""
        ...

    def distances(self, pos: NDArray[Any], crd: NDArray[Any], kind: np.dtype[Any]) -> tuple[NDArray[np.uint16], NDArray[Any], int]:
        """Return (distances, base, reach) of sorted segments.

        ``base`` is the first coordinate of each parent, 0 if it has none, of type ``kind``. ``distances`` are coordinates minus the base,
        modulo 2**16. ``reach`` is how many coordinates the widest segment spans.
        """
        ...

    def patterns(self, pos: NDArray[Any], crd: NDArray[Any], kind: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return (start, distances) of segments; equal segments, relative to their parents, are stored once.

        ``distances`` has coordinates minus the parent's number, of type ``kind``, for each different segment in order of first appearance.
        ``start`` is where those of each parent begin, 0 if it has none.

        Raises:
            ResourceError: there is no memory.
        """
        ...

    def slices(self, pos: NDArray[Any], rows: int) -> NDArray[np.int64]:
        """Return the first column of each slice of ``rows`` segments, and in the end the number of columns. A slice has as many columns
        as its longest segment has elements."""
        ...

    def place_beside(
        self, pos: NDArray[Any], crd: NDArray[Any], rows: int, starts: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return (coordinates, ends, slots) of segments, as ``levels.sliced`` stores them; ``starts`` are the first columns of slices.

        ``slots`` has the slot of each element of ``crd``. ``ends`` has the column after the last coordinate of each segment; the slots
        from there on repeat that coordinate, or hold 0 if there is none.
        """
        ...

    def below_dense(self, position: NDArray[Any], extent: int, column: NDArray[Any]) -> NDArray[np.int64]:
        """Return ``position * extent + column``."""
        ...

    def compress(
        self, first: NDArray[np.int8], last_level: int, parent: NDArray[Any] | None, parents: int, column: NDArray[Any], heads: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return (pos, crd, child) of a compressed level below parents that do not decrease (None: one parent).

        ``child`` is the position of each entry; ``heads`` is how many entries begin a position.
        """
        ...

    def count_children(self, first: NDArray[np.int8], level: int, parent: NDArray[np.int64], parents: int) -> NDArray[np.int64]:
        """Return how many children each parent has; the entries of one parent stand together."""
        ...

    def place_children(
        self, first: NDArray[np.int8], level: int, parent: NDArray[np.int64], starts: NDArray[np.int64], column: NDArray[Any], hashed: bool
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return (crd, child): the children of each parent in line from ``starts`` on, or in hash tables between starts."""
        ...

    def scatter(self, values: NDArray[Any], position: NDArray[Any], out: NDArray[Any]) -> None:
        """Write ``out[position] = values``."""
        ...

    def gather(self, values: NDArray[Any], position: NDArray[Any]) -> NDArray[Any]:
        """Return ``values[position]``."""
        ...

    def copied(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a flat copy, in C order."""
        ...

    def copy(self, array: NDArray[Any], out: NDArray[Any]) -> None:
        """Write an array, in C order, to a flat one."""
        ...

    def transpose(
        self, pos: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], columns: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the arrays of the transpose of a matrix, both a dense level above a compressed one."""
        ...

    def transpose_entries(
        self, rows: NDArray[Any], crd: NDArray[Any], values: NDArray[Any], columns: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the same for entries in the order of their ``rows``."""
        ...

    def shortened(self, array: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return integers in 32 bits; -1 for each that does not fit."""
        ...

    def check_segments(self, pos: NDArray[Any], crd: NDArray[Any], stored: int, extent: int) -> int:
        """Return 0 for segments of strictly increasing coordinates, 1 where they do not increase, 2 where one is out of
        range, 3 for positions that are no segments of ``stored`` coordinates."""
        ...


@cache
def _native() -> Kernels | None:
    from . import native  # imported late: small operands need no C, and first kernels and lookups neither

    levels, entries = ("st_pack", "st_children", "st_patterns", "st_slices"), ("st_strided", "st_order", "st_distinct", "st_transpose")
    loaded = native.library(*levels, *entries, "st_check")
    if loaded is None:
        return None
    from .native_kernels import NativeKernels

    return NativeKernels(*loaded)


def active() -> Kernels:
    """Return the kernels of this process."""
    return _native() or numpy_kernels.NumpyKernels()


LIGHT = 1 << 18
"""How many elements a process leaves to NumPy before ``light`` loads the native kernels: loading takes as long as NumPy for these."""

_light_work = 0


def light(work: int) -> Kernels:
    """Return the kernels for a pass over ``work`` elements: NumPy's, as long as loading the native ones does not pay."""
    global _light_work
    _light_work += work
    return active() if _light_work >= LIGHT or _native.cache_info().currsize else numpy_kernels.NumpyKernels()
