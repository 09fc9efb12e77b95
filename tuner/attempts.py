"""What a campaign tries, and in which order: what the user gives, what is used untuned, what is known of similar inputs, the search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice

from ..compiler.native.machine import allowed_cores
from .campaign import Campaign
from .features import distance
from .legality import usable
from .lookup import known_inputs
from .measure.helpers import Helpers
from .measure.runner import Runner
from .measure.service import AHEAD
from .progress import Progress, Report
from .search.samplers import Search, choose_strategy
from .search.strategy import Proposal, Strategy
from .settings import Budget
from .shipped import shipped_decisions
from .trials import Trials

_ALWAYS_TRIED = 4  # schedules, the default among them, that are tried even if the time for the search is over
_KNOWN_FIRST = 4  # schedules that won on the nearest known inputs, tried before the search
_AHEAD = 2  # candidates per core that are built together, since compilers finish at different times


def try_all(
    campaign: Campaign, trials: Trials, search: Search, sampler: str, runner: Runner, budget: Budget, deadline: float, report: Report,
    first: Mapping[str, Sequence[str]], helpers: Helpers | None,
) -> None:  # fmt: skip
    """Try schedules by their origin and what is known of similar inputs, then what the sampler proposes, until the budget is spent or,
    on the monotonic clock, ``deadline`` is over."""

    def spent(begun: int = 0) -> bool:
        count = len(trials) + begun
        return count >= budget.trials or (time.monotonic() > deadline and count >= _ALWAYS_TRIED)

    for origin, schedules in (*first.items(), ("known", _known_schedules(campaign))):
        for schedule in schedules:
            if schedule not in trials and not spent():
                trials.run(schedule, runner, origin)
    with closing(choose_strategy(search, sampler)) as strategy:
        for trial in trials:
            strategy.know(trial.canonical, trial.seconds)
        if helpers is not None:
            _search_together(strategy, trials, helpers, spent, runner.end, lambda: report(progress_of("searching", trials, budget)))
        while ahead := _proposed(strategy, spent):
            for proposal, built in zip(ahead, trials.build([one.schedule for one in ahead], runner), strict=True):
                if not spent():
                    report(progress_of("searching", trials, budget))
                    trial = trials.run(proposal.schedule, runner, "search", proposal.parameters, built=built)
                    strategy.tell(proposal, trial.seconds)


def _proposed(strategy: Strategy, spent: Callable[[int], bool]) -> list[Proposal]:
    """Return a few proposals, which are built together and then measured one by one, so that nothing else runs while one is timed.

    They are few because the strategy proposes the last of them without the times of those before it.
    """
    found: list[Proposal] = []
    while len(found) < min(AHEAD, _AHEAD * len(allowed_cores())) and not spent(len(found)) and (proposal := strategy.ask()) is not None:
        found.append(proposal)
    return found


def _search_together(
    strategy: Strategy, trials: Trials, helpers: Helpers, spent: Callable[[int], bool], end: float, report: Callable[[], object]
) -> None:
    """Have helpers measure what the strategy proposes, until the budget is spent, nothing is left to propose, or no helper is left."""
    over = False
    while helpers.some:
        report()
        while helpers.idle and not over and not spent(helpers.busy):
            proposal = strategy.ask()
            if proposal is None:
                over = True
            else:
                helpers.start(proposal, trials.question(proposal.schedule), end - time.monotonic())
        if not helpers.busy:
            return
        for answer in helpers.answers():
            proposal, built = answer.proposal, answer.built
            told = None if built is None else trials.note(proposal.schedule, built, answer.measured, "search", proposal.parameters)
            strategy.tell(proposal, None if told is None else told.seconds)


def _known_schedules(campaign: Campaign) -> list[str]:
    """Return schedules, in canonical names, that won on the nearest inputs of the kernel and are legal here.

    Those of this machine come first, then those of others in the database and of the file that ships.
    """
    problem, workload = campaign.problem, campaign.problem.workload
    here = [decision for _, decision in known_inputs(problem, campaign.store)]
    same = {"kernel": workload.kernel, "formats": workload.formats, "dtype": workload.dtype, "target": workload.target}
    elsewhere = [*campaign.store.decisions(**same), *shipped_decisions(workload, any_threads=True)]
    elsewhere.sort(key=lambda decision: (decision.workload.threads != workload.threads, distance(problem.input, decision.input)))
    texts = dict.fromkeys(decision.schedule for decision in (*here, *elsewhere))
    legal = (text for text in texts if text and usable(problem, text) is not None)
    return list(islice(legal, _KNOWN_FIRST))


def progress_of(phase: str, trials: Trials, budget: Budget) -> Progress:
    """Return how far a campaign is."""
    best, default = trials.best, trials.default
    return Progress(phase, len(trials), budget.trials, trials.failed, best and best.seconds, default and default.seconds)
