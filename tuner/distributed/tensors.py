"""Tensors whose entries are on many ranks: sparse ones cyclic over a grid, dense ones in shares of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.format import Format
from ...compiler.frozen import frozen
from ...compiler.native.memory import claim
from ...compiler.storage.aligned import index_dtype
from ...compiler.storage.construct import from_entries
from ...compiler.storage.tensor import Tensor
from .grid import checked_grid, coordinates_of, local_extent, ranks_of
from .layout import Layout
from .pattern import Pattern
from .world import World, world


@frozen(eq=False, repr=False)
class DistributedTensor:
    """A sparse tensor, cyclic over a processor grid: the rank at place p of a mode's P has the coordinates p, p + P, p + 2 P ...

    It keeps its distribution from call to call. Its methods are collective: every rank has to call them.

    Attributes:
        shape: extents of the whole tensor.
        grid: extents of the processor grid, one a mode.
        local: this rank's entries, at coordinate divided by P.
    """

    shape: tuple[int, ...]
    grid: tuple[int, ...]
    local: Tensor

    is_sparse = True

    @property
    def order(self) -> int:
        return len(self.shape)

    ndim = order

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.local.dtype

    @property
    def format(self) -> Format:
        return self.local.format

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Stored entries of every rank."""
        return tuple(world().counts(self.local.nnz))

    @property
    def nnz(self) -> int:
        """Stored entries of all ranks together."""
        return sum(self.counts)

    @property
    def imbalance(self) -> float:
        """Stored entries of the rank that has most over the mean."""
        return max(self.counts) * len(self.counts) / self.nnz if self.nnz else 1.0

    @cached_property
    def pattern(self) -> Pattern:
        """The coordinates of all entries, on every rank; they are gathered at the first use."""
        return Pattern.of(self.gather())

    def entries(self) -> tuple[tuple[NDArray[np.int64], ...], NDArray[Any]]:
        """Return this rank's entries: coordinates in the whole tensor, one array a mode, and values."""
        columns, values = self.local.to_coordinates()
        places = coordinates_of(world().rank, self.grid)
        return tuple(column * parts + place for column, parts, place in zip(columns, self.grid, places, strict=True)), values

    def with_values(self, values: NDArray[Any]) -> DistributedTensor:
        """Return a tensor of the same pattern.

        Args:
            values: one for each of ``local.values``, in its order.
        """
        local = Tensor(self.local.shape, self.format, self.local.levels, np.ascontiguousarray(values), self.local.fill_value)
        return DistributedTensor(self.shape, self.grid, local)

    def redistribute(self, grid: Sequence[int]) -> DistributedTensor:
        """Return the same entries over another grid; the tensor itself if it has that grid."""
        wanted = checked_grid(grid, world().size, self.order)
        return self if wanted == self.grid else place(world(), self.shape, *self.entries(), wanted, self.format)

    def gather(self) -> Tensor:
        """Return the whole tensor, on every rank."""
        return gather_entries(world(), self.shape, *self.entries(), self.format)

    def __repr__(self) -> str:
        grid = " x ".join(map(str, self.grid))
        return f"DistributedTensor(shape={self.shape}, grid={grid}, format='{self.format}', dtype={self.dtype}, here={self.local.nnz})"


@frozen(eq=False, repr=False)
class DistributedArray:
    """A dense tensor of which every element is on one rank.

    Attributes:
        layout: where the elements are.
        share: those of this rank, flat.
    """

    layout: Layout
    share: NDArray[Any]

    is_sparse = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.share.dtype

    def redistribute(self, layout: Layout) -> DistributedArray:
        """Return the same elements in another layout. Sender and receiver know which elements are sent, so only values are sent."""
        here = world()
        if layout == self.layout or here.size == 1:
            return DistributedArray(layout, self.share)
        mine, wanted = self.layout.elements(here.rank), layout.elements(here.rank)
        receiver, sender = layout.owners(mine), self.layout.owners(wanted)
        sent_order, wanted_order = np.lexsort((mine, receiver)), np.lexsort((wanted, sender))
        going, coming = np.bincount(receiver, minlength=here.size), np.bincount(sender, minlength=here.size)
        share = np.empty(len(wanted), self.dtype)
        share[wanted_order] = here.send(self.share[sent_order], going, coming)
        return DistributedArray(layout, share)

    def block(self, layout: Layout) -> NDArray[Any]:
        """Return the block of this rank in a layout, which all ranks of its sub-grid get."""
        return world().replicate(layout, self.redistribute(layout).share)

    def gather(self) -> NDArray[Any]:
        """Return the whole tensor, on every rank."""
        return world().gather(self.layout, self.share)

    def __repr__(self) -> str:
        grid = " x ".join(map(str, self.layout.grid))
        return f"DistributedArray(shape={self.shape}, grid={grid}, dtype={self.dtype})"


def place(
    here: World,
    shape: tuple[int, ...],
    columns: Sequence[NDArray[Any]],
    values: NDArray[Any],
    grid: tuple[int, ...],
    format: Format | str | None,
) -> DistributedTensor:
    """Send entries to the ranks that own them in a grid, and return the tensor; entries of equal coordinates are summed."""
    if here.size == 1:
        return place_own(here, shape, columns, values, grid, format)
    arrived = here.exchange(_records(shape, columns, values), ranks_of(columns, grid))
    return place_own(here, shape, *_fields(shape, arrived), grid, format)


def place_own(
    here: World,
    shape: tuple[int, ...],
    columns: Sequence[NDArray[Any]],
    values: NDArray[Any],
    grid: tuple[int, ...],
    format: Format | str | None,
) -> DistributedTensor:
    """Store entries that are on the right rank already."""
    places = coordinates_of(here.rank, grid)
    extents = tuple(local_extent(*mode) for mode in zip(shape, grid, places, strict=True))
    local = from_entries(extents, tuple(column // parts for column, parts in zip(columns, grid, strict=True)), values, format)
    return DistributedTensor(shape, grid, local)


def gather_entries(
    here: World, shape: tuple[int, ...], columns: Sequence[NDArray[Any]], values: NDArray[Any], format: Format | str | None
) -> Tensor:
    """Return the tensor of the entries that all ranks have, each of which one rank has."""
    if here.size > 1:
        records = _records(shape, columns, values)
        sizes = here.counts(len(records))
        claim(sum(sizes) * records.dtype.itemsize, "the entries of all ranks together", "use gather=False")
        columns, values = _fields(shape, np.concatenate(here.gather_pieces(records, sizes)))
    return from_entries(shape, tuple(columns), values, format)


def _fields(shape: tuple[int, ...], records: NDArray[Any]) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    return [np.ascontiguousarray(records[name]) for name in _names(shape)], np.ascontiguousarray(records["value"])


def _names(shape: Sequence[int]) -> list[str]:
    return [f"mode{mode}" for mode in range(len(shape))]


def _records(shape: tuple[int, ...], columns: Sequence[NDArray[Any]], values: NDArray[Any]) -> NDArray[Any]:
    """Return entries in the form in which they are sent: coordinates as wide as their extents need, then the value, without gaps."""
    fields = [(name, index_dtype(extent)) for name, extent in zip(_names(shape), shape, strict=True)]
    records = np.empty(len(values), np.dtype([*fields, ("value", values.dtype)]))
    for name, column in zip(_names(shape), columns, strict=True):
        records[name] = column
    records["value"] = values
    return records
