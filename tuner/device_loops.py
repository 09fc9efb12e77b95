"""The loops around an assignment as a GPU carries them out: how long they are, who takes their iterations, and how neighbours move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..compiler.concrete.loop_tag import LoopTag
from ..compiler.concrete.nodes import Assign, Forall
from ..compiler.concrete.provenance import Provenance
from ..compiler.concrete.relations.collapse import CollapseRelation
from ..compiler.concrete.relations.positions import MergePathRelation, PosRelation
from ..compiler.concrete.relations.split import SplitRelation
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import Access, accesses
from ..compiler.schedule.addresses import Address, frames
from ..compiler.storage.positions import level_extent
from ..compiler.storage.tensor import Tensor
from ..compiler.views import View
from .iterations import Iterations
from .remembered import remembered

WIDE = 16
"""Iterations of an innermost loop of known length up to which it is unrolled."""


@frozen
class Stride:
    """How consecutive iterations of a loop move.

    Attributes:
        index: the original index that they change; None: they take consecutive stored entries.
        count: iterations until another index changes.
        step: by how much each changes the index, or how many entries are between them.
    """

    index: str | None
    count: float
    step: float


@frozen
class Loop:
    """A loop around an assignment.

    Attributes:
        tag: who takes its iterations.
        originals: the original indices that it comes from.
        length: iterations on average.
        after: how often its body runs.
        known: iterations of a part of a variable, where they are known.
        counts_entries: whether it goes through positions of stored entries.
        stride: how its iterations move.
    """

    tag: LoopTag
    originals: tuple[str, ...]
    length: float
    after: float
    known: int | None
    counts_entries: bool
    stride: Stride

    @property
    def is_share(self) -> bool:
        """Whether iterations are shares of stored entries, whatever their rows."""
        return self.counts_entries and len(self.originals) > 1

    @property
    def together(self) -> int:
        """How many iterations load at the same time, as far as the schedule says; a loop that looks for its rows waits in each."""
        own = self.known if self.known is not None and self.known <= WIDE and not self.counts_entries else 1
        return self.tag.unroll or own


class DeviceLoops(Iterations):
    """The loops of a program on the operands of a problem; see ``Iterations`` for its arguments."""

    def loops(self, address: Address, leaf: Assign) -> list[Loop]:
        """Return the loops around an assignment, outermost first."""
        around = self._opened([frame for frame in frames(self._program.statement, address) if isinstance(frame, Forall)])
        made: list[Loop] = []
        for place, frame in enumerate(around):
            before, known = made[-1].after if made else 1.0, self._known(frame.index)
            covered = self._originals([each.index for each in around[: place + 1]])
            after = before * known if known is not None else self._points(covered, address, leaf) / self._cut(around[place + 1 :], covered)
            originals, counts = self._graph.originals(frame.index), self._graph.space(frame.index) == "position"
            stride = stride_of(self._graph, frame.index, self._problem.extents)
            made.append(Loop(frame.tag, originals, after / before if before else 0.0, after, known, counts, stride))
        return made

    def _opened(self, around: Sequence[Forall]) -> list[Forall]:
        """Return loops with those in place of a collapsed one that it is carried out as, if one of its operands stores the rows: units
        get rows then, not pairs."""
        opened: list[Forall] = []
        for frame in around:
            pair = self._graph.maker(frame.index)
            if not isinstance(pair, CollapseRelation) or self._graph.space(frame.index) == "position" or not self._are_stored(pair.outer):
                opened.append(frame)
            else:
                opened += [replace(frame, index=pair.outer), Forall(pair.inner, frame.body)]
        return opened

    def _are_stored(self, index: str) -> bool:
        """Whether an operand stores coordinates of an index."""
        read = (access for _, leaf in self._leaves for access in accesses(leaf.value) if self._has_levels(access))
        return any(access.has_coordinates(index, self._formats[access.tensor]) for access in read)

    def _has_levels(self, access: Access) -> bool:
        """Whether an access is of stored coordinates, each of which is an index."""
        return access.tensor in self._prefixes and access.is_plain and not isinstance(self._formats[access.tensor], View)

    def _known(self, loop: str) -> int | None:
        """Return the iterations of a loop over a part of a variable, where they are known."""
        return None if self._graph.originals(loop) == (loop,) else self._graph.constant_extent(loop, self._problem.extents)

    def _cut(self, inside: Sequence[Forall], covered: set[str]) -> float:
        """Return into how many iterations loops inside cut one iteration of a loop over the same indices."""
        parts = (self._known(each.index) for each in inside if covered.issuperset(self._graph.originals(each.index)))
        return math.prod(float(part) for part in parts if part is not None)


def stride_of(graph: Provenance, variable: str, extents: Mapping[str, int]) -> Stride:
    """Return how consecutive values of a variable move."""
    match graph.maker(variable):
        case None:
            return Stride(variable, float(extents.get(variable, 1)), 1.0)
        case SplitRelation() as split:
            _, inner = split.children
            moves, inside = stride_of(graph, split.parents[0], extents), float(graph.constant_extent(inner, extents) or 1)
            if variable == inner:
                return Stride(moves.index, min(moves.count, inside), moves.step)
            return Stride(moves.index, max(1.0, moves.count / inside), moves.step * inside)
        case CollapseRelation() as collapse:
            return stride_of(graph, collapse.inner, extents)
        case PosRelation() | MergePathRelation():
            return Stride(None, math.inf, 1.0)
        case relation:
            return stride_of(graph, relation.parents[0], extents)


def stored_below(tensor: Tensor, outer: int, inner: int) -> tuple[float, float]:
    """Return how many positions of a level are below one of an outer level: at most, and on average. Levels count from 1; 0 is the root."""
    most = remembered(tensor, ("most below", outer, inner), lambda: float(_below(tensor, outer, inner).max(initial=0)))
    mean = remembered(tensor, ("mean below", outer, inner), lambda: float(_mean(_below(tensor, outer, inner))))
    return most, mean


def _below(tensor: Tensor, outer: int, inner: int) -> NDArray[np.int64]:
    parents = 1
    for number in range(outer):
        parents = tensor.format.levels[number].positions(tensor.levels[number].parts, parents, level_extent(tensor, number))
    ends = np.arange(parents + 1, dtype=np.int64)
    for number in range(outer, inner):
        pos, kind = tensor.levels[number].pos, tensor.format.levels[number]
        if pos is not None:
            ends = np.asarray(pos)[ends].astype(np.int64)
        elif kind.full:
            ends = ends * level_extent(tensor, number)
    return np.diff(ends)


def _mean(counts: NDArray[np.int64]) -> float:
    return float(counts.mean()) if len(counts) else 0.0
