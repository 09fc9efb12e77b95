"""The whole space as texts, and the named filters that narrow it: how many schedules each leaves, and which filters drop a given
schedule.

Filters that close stages or narrow ranges are counted exactly. How many schedules the language takes can only be estimated, from
draws. Rules that say where to search first (``structures``) are not filters: they only order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import ScheduleError
from ..frozen import frozen
from ..schedule.apply import apply_schedule
from ..schedule.schedule import Schedule
from .finding import found_in
from .moves import Moves
from .options import Options
from .whole import WholeSpace
from .whole_plan import Plan
from .writing import written

ACCEPTED = "accepted"
"""Name of the filter that drops schedules which the language refuses."""

_TRIES = 64  # draws from which the share of legal schedules is estimated
_MOST_TRIES = 512  # most draws for each schedule that is wanted
_STEPS = 4  # draws in a row, each a step from the one before


@frozen
class Filter:
    """A filter that narrows the choices of the space.

    Attributes:
        name: what it is called.
        narrow: what it leaves of what may be chosen.
    """

    name: str
    narrow: Callable[[Options], Options]


class FullSpace:
    """All schedules of an expression, those included that are refused.

    Args:
        whole: the space.
        extents: compile-time constants, by index.
        filters: what narrows it, in the order in which they apply.
    """

    def __init__(self, whole: WholeSpace, extents: Mapping[str, int] | None = None, filters: Sequence[Filter] = ()) -> None:
        self.whole = whole
        self._extents = dict(extents or {})
        self._filters = tuple(filters)

    def count(self) -> int:
        """Return how many schedules there are; none is listed."""
        return self.whole.count()

    def __contains__(self, schedule: object) -> bool:
        found = found_in(schedule, self.whole, self._extents) if isinstance(schedule, Schedule | str) else None
        return found is not None and self.whole.holds(*found)

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules drawn uniformly from those that the language takes, with replacement; fewer where nearly all are refused."""
        legal = (schedule for schedule in self._texts(_MOST_TRIES * count, seed) if schedule is not None)
        return [schedule for schedule, _ in zip(legal, range(count), strict=False)]

    def drawn(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules that the language takes, drawn stage by stage (``moves``); fewer where nearly all are refused.

        Nothing is counted.
        """
        moves, found = Moves(self.whole, seed), list[Schedule]()
        for _ in range(_MOST_TRIES * count):
            near = self.near(found[-1], moves) if len(found) % _STEPS else None
            schedule = self.anywhere(moves) if near is None else near
            found += [] if schedule is None else [schedule]
            if len(found) == count:
                break
        return found

    def __iter__(self) -> Iterator[Schedule]:
        """Yield every schedule that the language takes, in canonical order; the space may be too large to list."""
        return (schedule for plan in map(self.whole.plan, range(self.count())) if (schedule := self._accepted(plan)) is not None)

    def anywhere(self, moves: Moves) -> Schedule | None:
        """Return a schedule drawn independently of others; None where the language refuses it."""
        chosen = moves.anywhere()
        return None if chosen is None else self._accepted(self.whole.planned(chosen))

    def near(self, schedule: Schedule, moves: Moves) -> Schedule | None:
        """Return a schedule that differs in one choice from one of the space; None where the language refuses it, or the given
        one is not in the space."""
        found = found_in(schedule, self.whole, self._extents)
        chosen = None if found is None else self.whole.derived(*found)
        other = None if chosen is None else moves.near(chosen)
        return None if other is None else self._accepted(self.whole.planned(other))

    def stages(self) -> Iterator[dict[str, Any]]:
        """Yield {"stage", "kept"} for what every stage adds, then for what every filter leaves; a stage that is estimated says so."""
        for name, count in self.whole.stages:
            yield {"stage": name, "kept": count()}
        narrowed = self
        for narrowed, one in self._narrowed():
            yield {"stage": one.name, "kept": narrowed.count()}
        texts = list(narrowed._texts(_TRIES, 0))
        share = sum(text is not None for text in texts) / max(1, len(texts))
        yield {"stage": f"{ACCEPTED}, estimated", "kept": round(share * narrowed.count())}

    def filtered(self) -> FullSpace:
        """Return what the filters leave; what the language refuses is still in it."""
        *_, (narrowed, _) = [(self, None), *self._narrowed()]
        return narrowed

    def dropped_by(self, schedule: Schedule | str) -> list[str]:
        """Return the filters that drop a schedule of the space, each by itself.

        Raises:
            ScheduleError: it is not in the space.
        """
        found = found_in(schedule, self.whole, self._extents)
        if found is None or not self.whole.holds(*found):
            raise ScheduleError(f"'{schedule}' is not in the space of {self.whole.structures.assignment.text or 'the expression'}")
        return [one.name for one in self._filters if not self.whole.with_options(one.narrow(self.whole.options)).holds(*found)]

    def _narrowed(self) -> Iterator[tuple[FullSpace, Filter]]:
        options = self.whole.options
        for one in self._filters:
            options = one.narrow(options)
            yield FullSpace(self.whole.with_options(options), self._extents, self._filters), one

    def _texts(self, count: int, seed: int) -> Iterator[Schedule | None]:
        """Yield draws as texts, None for what the language refuses."""
        return map(self._accepted, self.whole.draws(count, seed))

    def _accepted(self, plan: Plan) -> Schedule | None:
        """Return a schedule as a text; None where the language refuses it."""
        default = self.whole.default
        self.whole.watch()
        try:
            schedule = written(plan, self.whole)
            apply_schedule(default.program, schedule, default.formats, self._extents)
        except ScheduleError:
            return None
        return schedule
