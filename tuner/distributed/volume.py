"""Communication volume, memory and load of an expression on a processor grid, exactly and without running anything.

Bytes are those that all ranks together send to other ranks: in an all-gather over n ranks every share goes to n - 1 others, in a
reduce-scatter every rank sends all of its block but its own share, in an all-to-all each rank sends what belongs to others. These are the
bytes in the buffers at the calls of MPI; the algorithms inside MPI may send more or less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.errors import ExpressionError, ShapeError
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import Access
from ...compiler.notation.value_types import result_dtype
from ..extents import all_indices, known_extents
from .contraction import Contraction
from .grid import choose_grid, grid_shapes, ranks_of
from .layout import Layout, moved_elements
from .pattern import Pattern, local_shapes, record_bytes

COUNT_BYTES = 8
"""Bytes of the number of entries, which a rank sends another before the entries."""


@frozen
class Costs:
    """The bytes that a call moves and holds on a grid.

    Attributes:
        grid: extents of the processor grid.
        replicate: bytes sent so that each rank has its blocks of the dense operands, by operand.
        reduce: bytes sent to sum the result over sub-grids.
        gather: bytes sent so that each rank has the whole result.
        memory: bytes on the rank that holds most: its part of the sparse operand, its blocks, its part of the result.
        imbalance: stored entries of the rank that has most over the mean.
    """

    grid: tuple[int, ...]
    replicate: Mapping[str, int]
    reduce: int
    gather: int
    memory: int
    imbalance: float

    @property
    def bytes(self) -> int:
        """Bytes that all ranks together send, of operands and the result."""
        return sum(self.replicate.values()) + self.reduce + self.gather


@frozen(eq=False)
class Request:
    """An expression on operands of certain sizes, to be computed over ranks.

    Attributes:
        pattern: the stored entries of the sparse operand.
        shapes, itemsizes: of the dense operands, by name; the result's itemsize under its name.
        held: the layouts of dense operands that are distributed already; "original" for those in the original mapping of whatever
            grid is chosen. Every rank has the others whole.
        gather: whether each rank wants the whole result.
        sparse_result: whether the result is sparse.
    """

    contraction: Contraction
    pattern: Pattern
    shapes: Mapping[str, tuple[int, ...]]
    itemsizes: Mapping[str, int]
    held: Mapping[str, Layout | str]
    gather: bool
    sparse_result: bool
    extents: Mapping[str, int]

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Extents of the whole result, mode by mode."""
        return tuple(self.extents[index] for index in self.contraction.assignment.target.indices)

    def result_layout(self, grid: tuple[int, ...]) -> Layout:
        """Return how a dense result is distributed on a grid."""
        return self.contraction.layout(self.contraction.assignment.target, self.result_shape, grid)

    def operand_layout(self, access: Access, grid: tuple[int, ...]) -> Layout:
        """Return how the dense operand of an access is distributed on a grid."""
        return self.contraction.layout(access, self.shapes[access.tensor], grid)

    def choose(self, ranks: int) -> tuple[int, ...]:
        """Return the grid that moves and holds least; see ``grid.choose_grid``."""
        grids = self.contraction.grids(ranks)
        if not grids:
            raise ExpressionError(f"no grid of {ranks} ranks distributes '{self.contraction.assignment.text}'")
        if self.sparse_result:
            grids = [grid for grid in grids if self.contraction.stays_in_place(grid)] or grids
        return choose_grid(grids, self.moved_by_blocks, self._held_about, self._held_by_fullest)

    def moved_by_blocks(self, grid: tuple[int, ...]) -> int:
        """Return the bytes that dense operands and a dense result take, from sizes alone."""
        return sum(self.replicate(grid).values()) + (0 if self.sparse_result else sum(self._dense_result(grid)))

    def costs(self, grid: tuple[int, ...]) -> Costs:
        """Return what the call moves and holds on a grid."""
        counts = self.pattern.counts(grid)
        reduce, gather = self._sparse_result(grid) if self.sparse_result else self._dense_result(grid)
        return Costs(
            grid=grid,
            replicate=self.replicate(grid),
            reduce=reduce,
            gather=gather,
            memory=int((self.pattern.bytes(grid) + self._block_bytes(grid)).max()) + self._gathered_bytes,
            imbalance=int(counts.max()) * len(counts) / int(counts.sum()) if counts.any() else 1.0,
        )

    def replicate(self, grid: tuple[int, ...]) -> dict[str, int]:
        """Return the bytes that bring each rank its blocks of the dense operands, and its share of what ``+=`` starts from."""
        found = {access.tensor: self._replicated(access, grid) for access in self.contraction.dense}
        target = self.contraction.assignment.target.tensor
        start = self.held.get(target)
        if isinstance(start, Layout):
            found[target] = moved_elements(start, self.result_layout(grid)) * self.itemsizes[target]
        return found

    def _replicated(self, access: Access, grid: tuple[int, ...]) -> int:
        source = self.held.get(access.tensor)
        if source is None:
            return 0
        layout = self.operand_layout(access, grid)
        moved = 0 if isinstance(source, str) else moved_elements(source, layout)
        return (moved + (layout.replicas - 1) * layout.size) * self.itemsizes[access.tensor]

    def _dense_result(self, grid: tuple[int, ...]) -> tuple[int, int]:
        layout = self.result_layout(grid)
        size = layout.size * self._result_itemsize
        return (layout.replicas - 1) * size, (math.prod(grid) - 1) * size if self.gather else 0

    @property
    def _result_itemsize(self) -> int:
        return self.itemsizes[self.contraction.assignment.target.tensor]

    @property
    def _gathered_bytes(self) -> int:
        """Bytes of the whole result on a rank; of a sparse one, none are counted."""
        return math.prod(self.result_shape) * self._result_itemsize if self.gather and not self.sparse_result else 0

    def _block_bytes(self, grid: tuple[int, ...]) -> NDArray[np.int64]:
        """Return the bytes of each rank's blocks of the dense operands and, where it is dense, of the result."""
        layouts = [(self.operand_layout(access, grid), self.itemsizes[access.tensor]) for access in self.contraction.dense]
        if not self.sparse_result:
            layouts.append((self.result_layout(grid), self._result_itemsize))
        total, extents = np.zeros(math.prod(grid), np.int64), local_shapes(self.pattern.shape, grid)
        for layout, itemsize in layouts:
            size = np.full(len(total), itemsize, np.int64)
            for extent, dim in zip(layout.shape, layout.dims, strict=True):
                size *= extent if dim is None else extents[:, dim]
            total += size
        return total

    def _held_about(self, grid: tuple[int, ...]) -> float:
        """Return an estimate of the memory of ``costs`` from sizes alone, with entries spread as evenly as the extents allow."""
        places = math.prod(min(parts, max(1, extent)) for parts, extent in zip(grid, self.pattern.shape, strict=True))
        stored = self.pattern.nnz / places * record_bytes(self.pattern.shape, self.pattern.itemsize)
        layouts = [(self.operand_layout(access, grid), self.itemsizes[access.tensor]) for access in self.contraction.dense]
        layouts += [] if self.sparse_result else [(self.result_layout(grid), self._result_itemsize)]
        return stored + sum(math.prod(layout.block_shape(0)) * itemsize for layout, itemsize in layouts)

    def _held_by_fullest(self, grid: tuple[int, ...]) -> float:
        """Return an estimate of what the fullest rank holds, from how many entries each rank has."""
        stored = self.pattern.counts(grid) * record_bytes(self.pattern.shape, self.pattern.itemsize)
        return float((stored + self._block_bytes(grid)).max())

    @cached_property
    def _kept_modes(self) -> tuple[int, ...]:
        """The modes of the sparse operand that the result has, in the result's order."""
        dims = self.contraction.dim_of
        return tuple(dims[index] for index in self.contraction.assignment.target.indices if index in dims)

    def _sparse_result(self, grid: tuple[int, ...]) -> tuple[int, int]:
        """Return the bytes that bring entries of a sparse result together where several ranks make parts of them, and that gather it.

        The result has the operand's pattern, its other modes projected out, and all of its dense modes.
        """
        check_sparse_result(self.contraction)
        ranks, dims = math.prod(grid), self.contraction.dim_of
        record = record_bytes(self.result_shape, self._result_itemsize)
        wide = math.prod(self.extents[index] for index in self.contraction.assignment.target.indices if index not in dims)
        reduce = gather = 0
        if ranks > 1 and not (self.contraction.stays_in_place(grid) and (self.gather or self.contraction.keeps_modes)):
            reduce = ranks * (ranks - 1) * COUNT_BYTES + self._leaving(grid) * wide * record
        if self.gather:
            entries = len(_distinct(self._kept_columns[0])[0]) * wide
            gather = (ranks - 1) * (entries * record + ranks * COUNT_BYTES)
        return reduce, gather

    @cached_property
    def _kept_columns(self) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
        """Coordinates of the entries that can be in a sparse result, by its sparse modes, and which entries of the operand these are."""
        diagonal = np.ones(self.pattern.nnz, bool)
        for mode in self.contraction.repeated:
            first = self.contraction.dim_of[self.contraction.sparse.subscripts[mode].index]
            diagonal &= self.pattern.columns[mode] == self.pattern.columns[first]
        return [self.pattern.columns[mode][diagonal] for mode in self._kept_modes], diagonal

    def _leaving(self, grid: tuple[int, ...]) -> int:
        """Return how many entries of a sparse result are made on another rank than the one that they are brought together on."""
        columns, diagonal = self._kept_columns
        made = _distinct([self.pattern.owners(grid)[diagonal], *columns])
        kept = [index in self.contraction.dim_of for index in self.contraction.assignment.target.indices]
        spread = spread_grid(self.result_shape, math.prod(grid), kept)
        return int(np.count_nonzero(ranks_of(made[1:], [parts for parts, keep in zip(spread, kept, strict=True) if keep]) != made[0]))


def check_sparse_result(contraction: Contraction) -> None:
    """Refuse sparse results that the sparse operand gives no pattern. Raises ``ExpressionError``."""
    assignment = contraction.assignment
    if not any(index in contraction.dim_of for index in assignment.target.indices):
        raise ExpressionError(f"a sparse result needs an index of {contraction.sparse.tensor}: '{assignment.text}'")
    if assignment.operator == "+=":
        raise ExpressionError(f"'{assignment.text}' has a sparse result: over ranks it is made with '=', and added afterwards")


def _distinct(columns: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return the distinct tuples of columns, sorted."""
    order = np.lexsort(tuple(reversed(columns)))
    fresh = np.zeros(len(order), bool)
    fresh[:1] = True
    for column in columns:
        ordered = column[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    return [column[order[fresh]] for column in columns]


def spread_grid(shape: tuple[int, ...], ranks: int, allowed: list[bool] | None = None) -> tuple[int, ...]:
    """Return the grid for a sparse tensor of which nothing but its shape is known.

    It moves least when one column of a factor along every mode is replicated, as in a sweep of MTTKRPs over all modes: mode m costs
    I_m times the ranks that share its blocks, less one.

    Args:
        allowed: by mode, whether it may be distributed.
    """
    free = allowed or [True] * len(shape)
    grids = [grid for grid in grid_shapes(ranks, len(shape)) if all(may or parts == 1 for may, parts in zip(free, grid, strict=True))]

    def moved(grid: tuple[int, ...]) -> float:
        return sum((ranks // parts - 1) * extent for extent, parts in zip(shape, grid, strict=True))

    def held(grid: tuple[int, ...]) -> float:
        """The most that a rank holds of a tensor that is spread evenly: places that no coordinate reaches hold nothing."""
        return -math.prod(min(parts, max(1, extent)) for extent, parts in zip(shape, grid, strict=True))

    return choose_grid(grids, moved, held, lambda grid: held(grid))


def checked_extents(contraction: Contraction, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, int]) -> dict[str, int]:
    """Return the extent of every index.

    Raises:
        ShapeError: extents disagree, or an index of the result has none.
    """
    found = known_extents(contraction.assignment, shapes, given)
    for index in all_indices(contraction.assignment):
        if index not in found:
            raise ShapeError(f"no operand gives the extent of index {index} of the result: give it by shape={{'{index}': N}}")
    return found


def result_kind(contraction: Contraction, dtypes: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the dtype of the result from those of the operands."""
    return np.dtype(result_dtype(contraction.assignment, [np.dtype(kind).name for kind in dtypes.values()]))
