"""Hash tables of hashed levels: open addressing with linear probing, and the hash function of ``csrc/st_hash.h`` and generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..numpy_later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


GOLDEN_RATIO = 0x9E3779B97F4A7C15
"""The odd number next to 2**64 divided by the golden ratio, for Fibonacci hashing (Knuth, TAOCP volume 3, section 6.4)."""


def table_sizes(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the numbers of slots of tables for ``counts`` coordinates: 0 for none, else the least power of two from twice the count on."""
    wanted = np.maximum(2 * counts.astype(np.int64) - 1, 1)
    sizes = np.left_shift(np.int64(1), np.frexp(wanted.astype(np.float64))[1].astype(np.int64))
    return np.where(counts > 0, sizes, 0)


def home_slots(coordinates: NDArray[Any], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the search for each coordinate begins in a table of each size (a power of two, at least 2)."""
    shifts = (65 - np.frexp(sizes.astype(np.float64))[1]).astype(np.uint64)
    hashed = coordinates.astype(np.uint64) * np.uint64(GOLDEN_RATIO)
    return (hashed >> shifts).astype(np.int64)


def insert(crd: NDArray[Any], starts: NDArray[np.int64], parents: NDArray[np.int64], coordinates: NDArray[Any]) -> NDArray[np.int64]:
    """Write unique coordinates into the tables of their parents; return the slot of each as a position of ``crd``.

    In each round, all coordinates without a slot probe one more slot; the first of those that meet at a free slot takes it. So
    every slot between a coordinate's home and its place is taken, as a search requires.
    """
    sizes = starts[parents + 1] - starts[parents]
    home = home_slots(coordinates, sizes) if len(coordinates) else np.zeros(0, np.int64)
    found = np.empty(len(coordinates), np.int64)
    seeking = np.arange(len(coordinates))
    step = 0
    while len(seeking):
        slots = starts[parents[seeking]] + ((home[seeking] + step) & (sizes[seeking] - 1))
        free = np.flatnonzero(crd[slots] < 0)
        _, winners = np.unique(slots[free], return_index=True)
        taken = free[winners]
        crd[slots[taken]] = coordinates[seeking[taken]]
        found[seeking[taken]] = slots[taken]
        seeking = np.delete(seeking, taken)
        step += 1
    return found
