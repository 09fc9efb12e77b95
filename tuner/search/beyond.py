"""The proposals of a sampler, and between them schedules that no rule lists, drawn from the whole space.

Draws are rare at first, and more frequent as long as one of the last few was the fastest so far.
"""

from __future__ import annotations

from .space import Draws
from .strategy import Proposal, Strategy

_FIRST = 6
"""How many proposals of the sampler, which begins with what is known to be good, come before the first draw."""

_SELDOM, _OFTEN = 5, 2
"""One in so many proposals is a draw: where the last draws gained nothing, and where one of them did."""

_MEMORY = 3
"""How many draws a draw that was the fastest of all is remembered for."""


class WithDraws:
    """A sampler and draws between its proposals; draws alone once the sampler has no more.

    Args:
        sampler: proposes.
        draws: draws.
    """

    def __init__(self, sampler: Strategy, draws: Draws) -> None:
        self._sampler, self._draws = sampler, draws
        self._times: dict[str, float | None] = {}
        self._asked = 0
        self._since_draw = 0
        self._fruitless = _MEMORY  # draws since one was the fastest
        self._drawn: set[str] = set()
        self._pending: set[str] = set()  # proposals of the sampler that were not told yet

    def ask(self) -> Proposal | None:
        due = self._asked >= _FIRST and self._since_draw + 1 >= (_OFTEN if self._fruitless < _MEMORY else _SELDOM)
        first, second = (self._draw, self._sampled) if due else (self._sampled, self._draw)
        self._asked += 1
        return first() or second()

    def tell(self, proposal: Proposal, seconds: float | None) -> None:
        if proposal.schedule in self._drawn:
            best = min((time for time in self._times.values() if time is not None), default=None)
            better = seconds is not None and (best is None or seconds < best)
            self._fruitless = 0 if better else self._fruitless + 1
            self._sampler.know(proposal.schedule, seconds)
        else:
            self._sampler.tell(proposal, seconds)
        self._times[proposal.schedule] = seconds

    def know(self, schedule: str, seconds: float | None) -> None:
        self._times[schedule] = seconds
        self._sampler.know(schedule, seconds)

    def close(self) -> None:
        self._sampler.close()

    def _sampled(self) -> Proposal | None:
        self._since_draw += 1
        found = self._sampler.ask()
        if found is not None:
            self._pending.add(found.schedule)
        return found

    def _draw(self) -> Proposal | None:
        self._since_draw = 0
        best = sorted((seconds, schedule) for schedule, seconds in self._times.items() if seconds is not None)
        schedule = self._draws.draw(best, {*self._times, *self._drawn, *self._pending})
        if schedule is None:
            return None
        self._drawn.add(schedule)
        return Proposal(schedule, None)
