"""How often loops over positions write to the result: once for each row that they sum, and once more where two pieces share a row.

A loop over the positions of several levels, as ``collapse(i, j, f); pos(f, p, A)`` makes it, is a loop over rows and one over the positions
of each row. A row is summed over the indices that the result lacks before it is written; only rows that two pieces share need atomic adds:
one for each element of the row if it is short enough to be kept beside the result, else one for each entry too.

Loops over coordinates sum rows too; those of few entries are summed without vectors (``passes.batches``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

from ..compiler.concrete.nodes import Assign, Forall
from ..compiler.ir.limits import SHORT
from ..compiler.notation.nodes import accesses
from ..compiler.schedule.addresses import Address, frames
from .iterations import Iterations


class CutRows(Iterations):
    """The rows that loops over positions sum up; see ``Iterations`` for its arguments."""

    def _summed_first(self, leaf: Assign, loops: Sequence[str]) -> set[str]:
        """Return the original indices over which loops through positions sum before they write to the result; empty if that is all."""
        own, found = self._originals(leaf.target.indices), set[str]()
        for loop in self._through_positions(loops):
            names = self._graph.originals(loop)
            inner = list(takewhile(lambda name: name not in own, reversed(names)))
            found.update(inner if len(inner) < len(names) else ())
        return found

    def _sums_short_rows(self, address: Address, leaf: Assign, loops: Sequence[str]) -> bool:
        """Whether the innermost loop of more than one iteration does nothing but sum rows of one stored operand, which have few entries on
        average. Loops over operands that meet have a cost of their own (``stepping``)."""
        loops = [loop for loop in loops if self._graph.constant_extent(loop, self._problem.constants) != 1]
        if not loops or not isinstance(frames(self._program.statement, address)[-1], Forall):
            return False
        by_row = self._summed_first(leaf, loops) if self._graph.space(loops[-1]) == "position" else set[str]()
        summed = by_row or self._originals(loops[-1:])
        stored = [access for access in accesses(leaf.value) if self._is_stored(access) and not summed.isdisjoint(access.indices)]
        if len(stored) != 1 or not summed.isdisjoint(self._originals(leaf.target.indices)):
            return False
        around = self._originals(loops) - summed if by_row else self._originals(loops[:-1])
        return self._points(self._originals(loops), address, leaf) <= SHORT * self._points(around, address, leaf)

    def _through_positions(self, loops: Sequence[str]) -> list[str]:
        return [loop for loop in loops if self._graph.space(loop) == "position"]

    def _row_sums(self, address: Address, leaf: Assign, loops: Sequence[str], first: set[str]) -> float:
        """Return how many sums of rows, or of parts of rows, loops make that sum over some indices first."""
        return self._points(self._originals(loops) - first, address, leaf) + self._cut(address, leaf, loops) / 2

    def _entries_of_a_row(self, address: Address, leaf: Assign, loops: Sequence[str], first: set[str]) -> float:
        """Return how many entries loops sum to a row, on average."""
        around = self._originals(loops)
        return self._points(around, address, leaf) / max(1.0, self._points(around - first, address, leaf))

    def _cut(self, address: Address, leaf: Assign, loops: Sequence[str]) -> float:
        """Return how many rows at most are shared by neighbouring pieces of the positions: two a piece."""
        through = self._through_positions(loops)
        *outer, each = (self._graph.constant_extent(loop, self._problem.extents) for loop in through)
        positions = self._points(self._originals(through), address, leaf)
        pieces = positions / each if each else math.prod(length or 1 for length in outer)
        return 2.0 * min(pieces, positions) * self._everywhere(self._originals([loop for loop in loops if loop not in through]))
