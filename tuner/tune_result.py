"""The result of ``st.tune``: the best schedule, how sure that is, and all measurements."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..compiler.frozen import frozen
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.template import Template
from .campaign import Campaign
from .converted import Converted
from .payoff import calls_to_pay, conversion_seconds
from .problem import Problem
from .prune import counted_stages
from .records import Decision
from .searched import Searched
from .trials import Trial, Trials, as_rows

if TYPE_CHECKING:
    import pandas


@frozen(eq=False)
class TuneResult:
    """What a campaign found.

    Attributes:
        problem: what was tuned.
        best: the schedule to use; the default one where no other is surely faster.
        best_time, default_time: seconds, from the finals; None for a default schedule that did not run within the time budget.
        speedup_low, speedup_high: 95% interval of the speed-up; None where ``default_time`` is.
        ties: schedules that are not surely slower than the best, which is the simplest of them, or the default.
        pruned: what each stage of pruning kept, {"stage", "kept", "seconds"}; templates are counted.
        templates: where the search began, the most promising first.
        measured: every trial, those of earlier runs of the campaign included.
        database: where it is recorded.
        seconds: that this run took; 0 where an earlier one had decided.
        also: stages that were open beside the usual ones.
        default_stopped: seconds after which the default schedule was ended, where its time is not known.
        converted: a schedule that is surely faster than the best in a bound kernel, which converts its operands once and not in every
            call: ``schedule``, ``time`` and ``conversion_time`` in seconds, ``speedup`` over the best with its 95% interval (``low``,
            ``high``), ``pays_after`` so many calls; None where there is none.
    """

    problem: Problem
    best: Schedule
    best_time: float
    default_time: float | None
    speedup_low: float | None
    speedup_high: float | None
    ties: tuple[Schedule, ...]
    pruned: list[dict[str, Any]]
    templates: tuple[Template, ...]
    measured: tuple[Trial, ...]
    database: str
    seconds: float = 0.0
    also: tuple[str, ...] = ()
    default_stopped: float | None = None
    converted: Converted | None = None

    @property
    def speedup(self) -> float | None:
        """Time of the default schedule over that of the best; None if the former is not known."""
        return None if self.default_time is None else self.default_time / self.best_time

    @property
    def shown_speedup(self) -> str:
        """The speed-up with its interval as people read it."""
        if self.speedup is None:
            return f"unknown: the default schedule did not end within {self.default_stopped:.3g} s"
        return f"{self.speedup:.2f} ({self.speedup_low:.2f} to {self.speedup_high:.2f})"

    @cached_property
    def stages(self) -> list[dict[str, Any]]:
        """How many schedules the whole space has, stage by stage, as far as counting is quick; then ``pruned``."""
        return [*counted_stages(self.problem, self.also), *self.pruned]

    @cached_property
    def space(self) -> Searched:
        """The space that was searched, with all schedules that were tried: ``count()``, ``iter``, ``sample(n, seed)``, ``in``."""
        tried = [Schedule(trial.schedule) for trial in self.measured]
        return Searched(self.problem, self.also, tried, self.stages)

    @cached_property
    def trials(self) -> pandas.DataFrame:
        """A table, a row a trial (``trials.COLUMNS``, then a column a parameter)."""
        import pandas

        return pandas.DataFrame(as_rows(self.measured))

    @property
    def reason(self) -> str:
        """The schedule and why it won, in one line."""
        if self.default_time is None:
            stopped = f"the default schedule did not end within {self.default_stopped:.3g} s"
            return f"{self.best} (fastest of {len(self.measured)} trials: {self.best_time:.3g} s; {stopped})"
        times = f"{self.best_time:.3g} s, the default schedule {self.default_time:.3g} s"
        interval = f"{self.speedup:.2f} times as fast, 95% interval {self.speedup_low:.2f} to {self.speedup_high:.2f}"
        more = "" if self.converted is None else f"; {self.converted}"
        if not self.best.directives:
            return f"the default schedule (none of {len(self.measured)} trials was surely faster than its {self.default_time:.3g} s{more})"
        return f"{self.best} (finals of {len(self.measured)} trials: {times}; {interval}{more})"

    @cached_property
    def conversion_time(self) -> float:
        """Seconds that converting operands for the best schedule takes; ``best_time`` counts them in every call."""
        return conversion_seconds(self.problem, self.best)

    @property
    def pays_after(self) -> dict[str, int | None]:
        """Calls of a bound kernel, which converts once, after which the best schedule has paid for itself; None: never.

        Under "conversion" for converting operands, under "build" for compiling too, under "tuning" for the whole of this search.
        """
        default = self.default_time if self.default_stopped is None else self.default_stopped  # a lower bound
        gain = (default or 0.0) - max(0.0, self.best_time - self.conversion_time)
        build = next((trial.build_seconds or 0.0 for trial in self.measured if trial.schedule == str(self.best)), 0.0)
        build = build if self.best.directives else 0.0
        prices = {"conversion": self.conversion_time, "build": self.conversion_time + build}
        prices["tuning"] = max(self.seconds, prices["build"])
        return {name: calls_to_pay(price, gain) for name, price in prices.items()}

    @property
    def failed_trials(self) -> int:
        """Number of schedules that were tried and have no time."""
        return sum(trial.seconds is None for trial in self.measured)

    def __repr__(self) -> str:
        default = "not run" if self.default_time is None else f"{self.default_time:.3g} s"
        speedup = "unknown" if self.speedup is None else f"{self.speedup:.2f}"
        return (
            f"TuneResult({self.problem.expression!r}: best {self.best_time:.3g} s, default {default}, "
            f"speedup {speedup}, {len(self.measured)} trials, best schedule {str(self.best)!r})"
        )

    def plot(self) -> Any:
        """Return how the search went, the best time by trial, as a figure of plotly, which notebooks draw and ``write_html`` saves."""
        from .report.figures import trials

        return trials([1000 * trial.seconds for trial in self.measured if trial.seconds is not None])

    def _repr_html_(self) -> str:
        from .notebook import result_html

        return result_html(self)


def result_of(
    campaign: Campaign,
    trials: Trials,
    stages: list[dict[str, Any]],
    templates: tuple[Template, ...],
    decision: Decision,
    also: tuple[str, ...] = (),
) -> TuneResult:
    """Return the result of a campaign that has decided."""
    stopped, converted = decision.default_stopped, Converted.of(decision.environment)
    return TuneResult(
        problem=campaign.problem,
        best=campaign.problem.from_canonical(decision.schedule),
        best_time=decision.seconds,
        default_time=None if stopped else decision.default_seconds,
        speedup_low=None if stopped else decision.speedup_low,
        speedup_high=None if stopped else decision.speedup_high,
        ties=tuple(campaign.problem.from_canonical(schedule) for schedule in decision.ties),
        pruned=stages,
        templates=templates,
        measured=tuple(trials),
        database=campaign.store.url,
        also=also,
        default_stopped=decision.default_seconds if stopped else None,
        converted=converted and replace(converted, schedule=campaign.problem.from_canonical(str(converted.schedule))),
    )
