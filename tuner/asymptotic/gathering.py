"""The workspace that a sparse result needs where it is written out of order, as part of what a schedule stores.

``lowering.collect`` inserts it once a schedule is chosen (Ahrens et al., section 6.8). It changes no asymptotic time, but it takes memory,
by which schedules differ. The leading modes of the result whose loops come first around all writes, in the order of storage, need no
workspace; it covers the modes below them.
"""

from __future__ import annotations

from ...compiler.concrete.nodes import Block, Forall, Stmt, Where
from ...compiler.format import Format
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import Access

Progress = int
"""How many leading modes have their loops open in order: n as long as the next may follow, -1 - n after another loop was opened."""


@frozen
class Gathering:
    """How a sparse result is stored, and which of its modes a workspace has to cover.

    Attributes:
        modes: its indices in the order of storage.
        sparse: how many leading modes there are down to the last sparse one; writes below are never out of order.
    """

    modes: tuple[str, ...]
    sparse: int

    def opened(self, progress: Progress, name: str) -> Progress:
        """Return the progress inside a loop."""
        if progress < 0 or progress == len(self.modes):
            return progress
        return progress + 1 if self.modes[progress] == name else self.stopped(progress)

    def stopped(self, progress: Progress) -> Progress:
        """Return the progress after which no further mode can follow in order; it keeps the count of those that did."""
        return progress if progress < 0 else -1 - progress

    def workspace(self, progress: Progress) -> frozenset[str]:
        """Return the indices of the workspace that a write at this place needs; none if it needs none."""
        shared = _count(progress)
        return frozenset(self.modes[shared:]) if shared < self.sparse else frozenset()

    def of_statement(self, statement: Stmt) -> Progress:
        """Return the progress at the writes to the result in a whole program."""
        progress = 0
        while not isinstance(statement, Block):
            match statement:
                case Forall(index, body):
                    progress, statement = self.opened(progress, index), body
                case Where(consumer, _):
                    statement = consumer
                case _:
                    break
        return self.stopped(progress)


def _count(progress: Progress) -> int:
    return progress if progress >= 0 else -1 - progress


def goes_further(one: Progress, other: Progress) -> bool:
    """Whether the first place never needs a larger workspace than the second, however the program continues."""
    return one == other or (other < 0 and _count(one) >= _count(other))


def gathering_of(target: Access, form: Format) -> Gathering | None:
    """Return how a sparse result is gathered; None if it is dense."""
    sparse = max((level + 1 for level, kind in enumerate(form.levels) if not kind.full), default=0)
    return Gathering(tuple(target.subscripts[mode].index for mode in form.order), sparse) if sparse else None
