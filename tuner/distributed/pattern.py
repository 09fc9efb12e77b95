"""The stored entries of a sparse operand as a grid distributes them: how many each rank gets, and how much memory they take there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...compiler.format import Format
from ...compiler.frozen import frozen
from ...compiler.levels import COMPRESSED, DENSE
from ...compiler.storage.aligned import INDEX_LIMIT, index_dtype
from ...compiler.storage.construct import from_entries
from ...compiler.storage.tensor import Tensor
from .grid import coordinates_of, local_extent, ranks_of


@frozen(eq=False)
class Pattern:
    """The coordinates of a sparse operand.

    Attributes:
        shape: extents by mode.
        columns: coordinates by mode, each entry once, in lexicographic order.
        format: how ranks store their part.
        itemsize: bytes of a value.
    """

    shape: tuple[int, ...]
    columns: tuple[NDArray[np.int64], ...]
    format: Format
    itemsize: int

    @classmethod
    def of(cls, tensor: Tensor) -> Pattern:
        """Return the pattern of a tensor, with the coordinates of its stored entries."""
        columns, _ = tensor.to_coordinates()
        return cls(tensor.shape, tuple(columns), tensor.format, tensor.dtype.itemsize)

    @property
    def nnz(self) -> int:
        """How many entries there are over all ranks."""
        return len(self.columns[0])

    def owners(self, grid: Sequence[int]) -> NDArray[np.int64]:
        """Return the rank that owns each entry on a grid, as an array of int64 in the order of ``columns``."""
        return ranks_of(self.columns, grid)

    def counts(self, grid: Sequence[int]) -> NDArray[np.int64]:
        """Return how many entries each rank has."""
        return np.bincount(self.owners(grid), minlength=math.prod(grid))

    def bytes(self, grid: Sequence[int]) -> NDArray[np.int64]:
        """Return how many bytes each rank's tensor takes: positions, coordinates and values of its level arrays."""
        plain = {DENSE, COMPRESSED}
        if not set(self.format.levels) <= plain:
            return self._built_bytes(grid)
        ranks = math.prod(grid)
        owner = self.owners(grid)
        columns = [self.columns[mode] for mode in self.format.order]
        in_order = self.format.order == tuple(range(len(columns)))
        order = np.argsort(owner, kind="stable") if in_order else np.lexsort((*reversed(columns), owner))
        shapes = local_shapes(self.shape, grid)
        owner, fresh = owner[order], np.zeros(len(order), bool)
        fresh[:1] = True
        fresh[1:] = owner[1:] != owner[:-1]
        parents = np.ones(ranks, np.int64)
        total = np.zeros(ranks, np.int64)
        for kind, mode, column in zip(self.format.levels, self.format.order, columns, strict=True):
            sorted_column = column[order]
            fresh[1:] |= sorted_column[1:] != sorted_column[:-1]
            if kind is DENSE:
                parents = parents * shapes[:, mode]
                continue
            stored = np.bincount(owner[fresh], minlength=ranks)
            total += (parents + 1) * index_sizes(stored) + stored * index_sizes(shapes[:, mode])
            parents = stored
        return total + parents * self.itemsize

    def _built_bytes(self, grid: Sequence[int]) -> NDArray[np.int64]:
        owner, found = self.owners(grid), []
        for rank, shape in enumerate(local_shapes(self.shape, grid)):
            columns = [column[owner == rank] // parts for column, parts in zip(self.columns, grid, strict=True)]
            made = from_entries(tuple(map(int, shape)), tuple(columns), np.zeros(len(columns[0])), self.format)
            found.append(made.nbytes - made.values.nbytes + made.values.size * self.itemsize)
        return np.array(found, np.int64)


def index_sizes(largest: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes of an index up to each number."""
    return np.where(largest > INDEX_LIMIT, 8, 4)


def local_shapes(shape: Sequence[int], grid: Sequence[int]) -> NDArray[np.int64]:
    """Return the extents of every rank's part, a row a rank."""
    places = [coordinates_of(rank, grid) for rank in range(math.prod(grid))]
    rows = [[local_extent(*mode) for mode in zip(shape, grid, place, strict=True)] for place in places]
    return np.array(rows, np.int64).reshape(len(places), len(grid))


def record_bytes(shape: Sequence[int], itemsize: int) -> int:
    """Return the bytes that an entry takes when it is sent: its coordinates, each as wide as its extent needs, and its value."""
    return sum(index_dtype(extent).itemsize for extent in shape) + itemsize
