"""Where the elements of a dense tensor are: blocks by cyclic distribution over some dimensions of a grid, shares within a block.

A mode that the tensor shares with the sparse one is distributed as there; the ranks that stand in the same places of these dimensions
make up a *sub-grid* and need the same block (Kanakagiri, Solomonik, section 5.2). In the original mapping each rank of the sub-grid
holds its share of the block; all-gathering the shares replicates it, and a reduce-scatter of results leads back.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...compiler.frozen import frozen
from .grid import coordinates_of, local_extent


@frozen
class Layout:
    """Where the elements of a dense tensor are.

    Attributes:
        shape: extents of the tensor.
        grid: extents of the processor grid.
        dims: by mode, the dimension of the grid that distributes it; None where none does. No dimension stands twice.
    """

    shape: tuple[int, ...]
    grid: tuple[int, ...]
    dims: tuple[int | None, ...]

    @property
    def size(self) -> int:
        """How many elements the whole tensor has."""
        return math.prod(self.shape)

    @property
    def used(self) -> tuple[int, ...]:
        """The dimensions of the grid that distribute a mode, in the grid's order."""
        return tuple(sorted(dim for dim in self.dims if dim is not None))

    @property
    def replicas(self) -> int:
        """How many ranks a sub-grid has, which all need the same block."""
        return math.prod(self.grid) // math.prod(self.grid[dim] for dim in self.used)

    def block_shape(self, rank: int) -> tuple[int, ...]:
        """Return the extents of the block that a rank needs."""
        places = coordinates_of(rank, self.grid)
        return tuple(
            extent if dim is None else local_extent(extent, self.grid[dim], places[dim])
            for extent, dim in zip(self.shape, self.dims, strict=True)
        )

    def block(self, rank: int) -> tuple[slice, ...]:
        """Return the slices of the whole tensor that are a rank's block."""
        places = coordinates_of(rank, self.grid)
        return tuple(slice(None) if dim is None else slice(places[dim], None, self.grid[dim]) for dim in self.dims)

    def position(self, rank: int) -> int:
        """Return the number of a rank in its sub-grid."""
        found = 0
        for dim, place in enumerate(coordinates_of(rank, self.grid)):
            found = found if dim in self.used else found * self.grid[dim] + place
        return found

    def share(self, rank: int) -> tuple[int, int]:
        """Return where the share of a rank begins and ends in its block, flattened in C order."""
        size, number, count = math.prod(self.block_shape(rank)), self.position(rank), self.replicas
        return number * size // count, (number + 1) * size // count

    def share_sizes(self, rank: int) -> list[int]:
        """Return the sizes of the shares of a rank's block, in the order of its sub-grid."""
        size, count = math.prod(self.block_shape(rank)), self.replicas
        return [(number + 1) * size // count - number * size // count for number in range(count)]

    def elements(self, rank: int) -> NDArray[np.int64]:
        """Return the flat places, in the whole tensor, of the elements of a rank's share, in its order."""
        begin, end = self.share(rank)
        local = np.unravel_index(np.arange(begin, end), self.block_shape(rank)) if self.shape and end > begin else ()
        places, found = coordinates_of(rank, self.grid), np.zeros(end - begin, np.int64)
        for extent, dim, column in zip(self.shape, self.dims, local, strict=bool(local)):
            found *= extent
            found += column if dim is None else column * self.grid[dim] + places[dim]
        return found

    def owners(self, flat: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rank whose share holds each element, given by its flat place in the whole tensor."""
        columns = np.unravel_index(flat, self.shape) if self.shape else ()
        places: dict[int, NDArray[np.int64]] = {}
        within, size = np.zeros(len(flat), np.int64), np.ones(len(flat), np.int64)
        for extent, dim, column in zip(self.shape, self.dims, columns, strict=True):
            parts = 1 if dim is None else self.grid[dim]
            if dim is not None:
                places[dim] = column % parts
            local = (extent - (places[dim] if dim is not None else 0) + parts - 1) // parts
            within, size = within * local + column // parts, size * local
        number = ((within + 1) * self.replicas - 1) // size  # the share that holds it: the inverse of ``share``
        for dim in reversed([dim for dim in range(len(self.grid)) if dim not in self.used]):
            number, places[dim] = np.divmod(number, self.grid[dim])
        found = np.zeros(len(flat), np.int64)
        for dim, extent in enumerate(self.grid):
            found = found * extent + places[dim]
        return found


def moved_elements(source: Layout, target: Layout) -> int:
    """Return how many elements change their rank when shares of one layout become those of another."""
    if source == target:
        return 0
    piece = 1 << 20
    pieces = (np.arange(begin, min(begin + piece, source.size)) for begin in range(0, source.size, piece))
    return sum(int(np.count_nonzero(source.owners(flat) != target.owners(flat))) for flat in pieces)
