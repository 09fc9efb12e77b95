"""``st.tune``: the space of an expression, pruned, searched, measured; the finalists in turn; the outcome to the database."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..compiler.attention import is_watched, tell
from ..compiler.concrete.affine import Boundary
from ..compiler.deadline import Deadline, TimeOver
from ..compiler.errors import ScheduleError, TuningError
from ..compiler.format import Format
from ..compiler.schedule.schedule import Schedule
from ..compiler.shown import shown
from ..compiler.source import quoted
from .attempts import progress_of, try_all
from .beginning import begun
from .campaign import DEFAULT, Campaign
from .converted import once_converted
from .database import Database, open_database, studies_folder
from .decision import decided, played
from .encodings import foremost_encoded
from .kernels import compile_problem
from .limits import make_limits, workspace_elements
from .lookup import NOTHING, lookup_problem
from .measure.handover import sweep_folders
from .measure.helpers import Helpers
from .measure.policy import Policy
from .measure.runner import Runner
from .measure.worker_process import Worker
from .model import FAR, expected_gain
from .problem import Problem
from .progress import Progress, Report, shown_progress
from .prune import check_stages, surviving_space
from .resolve import make_problem
from .search.samplers import USUAL_SAMPLER, Search, check_sampler
from .search.space import Space
from .settings import MOST_SEED, Budget, Settings
from .trials import Trials
from .tune_result import TuneResult, result_of

_PRUNING_SHARE = 0.2  # most of a time budget that static pruning may take
_FINAL_SHARE = 0.25  # share of a time budget that is kept for the finals
_LEAST_SECONDS = 4.0  # with a smaller budget the search ends in time, but what runs then may go on until so many seconds are over
_MUCH = 0.05  # a default schedule that is expected to take this share of a time budget does not make the reference result
_ENCODED_SHARE = 0.1  # share of the trials that other encodings of operands may have before the search begins
_OVERTIME = 1.0  # seconds after the end of a budget at which whatever runs is stopped


def tune(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    trials: int = 100,
    time_budget: float | None = None,
    target: str = "cpu",
    threads: int | None = None,
    database: str | os.PathLike[str] | None = None,
    seed: int = 0,
    skip: Sequence[str] = (),
    schedules: Iterable[Schedule | str] = (),
    cache: str = "warm",
    memory_bound: float | None = None,
    cache_share: float | None = None,
    semiring: tuple[str, str] | None = None,
    dtype: DTypeLike | None = None,
    shape: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    callback: Report | None = None,
    also: Sequence[str] = (),
    sampler: str = USUAL_SAMPLER,
    boundary: Boundary = None,
    start: float | None = None,
) -> TuneResult:
    """Find the fastest schedule of an expression for these operands on this machine, and remember it: ``sparsetune.tune``.

    Args:
        start: when the time budget began, on the monotonic clock; None: now.

    Raises:
        ScheduleError: a given schedule is no schedule of this expression; the message names it.
        SparsetuneError: the expression, an operand, the database or an option is not meaningful; no valid schedule was found, or
            none within the memory bound; nothing ran within the time budget.
    """
    start = time.monotonic() if start is None else start
    budget = make_budget(trials, time_budget)
    check_stages(skip, also)
    settings = Settings(policy=Policy(cache=cache), skip=tuple(skip), also=tuple(also), sampler=check_sampler(sampler))
    limits = make_limits(memory_bound, cache_share)
    problem = make_problem(expression, operands, output_format, target, threads, "", shape, None, limits, semiring, dtype, boundary)
    given = check_schedules(problem, schedules)
    with ExitStack() as stack:
        report = stack.enter_context(_reported(verbose, callback))
        store, worker = stack.enter_context(open_database(database)), stack.enter_context(Worker(problem.threads))
        return tune_problem(problem, store, worker, budget, settings, seed, report, given, start=start)


@contextmanager
def _reported(verbose: bool | None, callback: Report | None) -> Iterator[Report]:
    """Yield a function that is called with the progress of a campaign: it shows progress where somebody watches, or as ``verbose`` says,
    and calls the user's function.

    Raises:
        TuningError: ``callback`` is no function, or ``verbose`` no choice.
    """
    if callback is not None and not callable(callback):
        raise TuningError(f"callback is a function that takes a Progress, not {type(callback).__name__}")
    if verbose is not None and not isinstance(verbose, bool):
        raise TuningError(f"verbose is True, False or None, not {shown(verbose)}")
    is_shown = is_watched() if verbose is None else verbose
    with shown_progress("tune", "sparsetune") if is_shown else nullcontext() as show:

        def report(progress: Progress) -> None:
            for one in (show, callback):
                if one is not None:
                    one(progress)

        yield report


def tune_problem(
    problem: Problem,
    store: Database,
    worker: Worker,
    budget: Budget,
    settings: Settings | None = None,
    seed: int = 0,
    report: Report = lambda progress: None,
    given: Sequence[str] = (),
    helpers: Helpers | None = None,
    since: str = "",
    ended: bool = False,
    start: float | None = None,
) -> TuneResult:
    """Tune one problem with an open database and a worker; both stay open. See ``tune``.

    Args:
        given: schedules to try first, in canonical names (``check_schedules``).
        helpers: measure what the search proposes, as long as some are left.
        since: a moment (``records.now``); what was measured before it does not count.
        ended: whether a decision made since then had the whole budget of trials and seconds.
        start: when the time budget began, on the monotonic clock; None: now.
    """
    seed = check_seed(seed)
    sweep_folders()
    settings = settings or Settings()
    start = time.monotonic() if start is None else start
    allowed = math.inf if budget.seconds is None else budget.seconds
    deadline, limit = start + (1 - _FINAL_SHARE) * allowed, start + max(allowed, _LEAST_SECONDS)
    campaign = Campaign(problem, store, seed, worker.settings, settings.policy, since)
    trials = Trials(campaign)
    pruning = None if budget.seconds is None else Deadline(_PRUNING_SHARE * budget.seconds, time.monotonic)
    space, stages = surviving_space(problem, settings.skip, pruning, settings.also, seed)
    if (finished := _finished(campaign, trials, space, stages, budget, given, settings.also, ended)) is not None:
        return finished
    report(Progress("preparing", len(trials), budget.trials))
    untuned = _untuned(problem)
    folder = studies_folder(store.url)
    search = Search(space, budget.trials, seed, folder and folder / f"{campaign.key}.journal", campaign.key)
    with Runner(problem, worker, settings.policy) as runner:
        stand_in = begun(trials, runner, _quickest(problem, space, untuned, allowed), start, allowed, limit + _OVERTIME)
        runner.end = limit - _FINAL_SHARE / 2 * allowed if limit < math.inf and allowed > _LEAST_SECONDS else limit
        with suppress(TimeOver):
            encoded = foremost_encoded(problem, space.templates, int(_ENCODED_SHARE * budget.trials))
            first = {"given": given, "untuned": [untuned], "search": [problem.to_canonical(one) for one in encoded]}
            try_all(campaign, trials, search, settings.sampler, runner, budget, deadline, report, first, helpers)
        runner.end = limit + _OVERTIME
        report(progress_of("finals", trials, budget))
        seconds = math.inf if budget.seconds is None else _FINAL_SHARE * budget.seconds
        verdict, samples = played(trials, runner, settings.policy, seconds, untuned, stand_in)
        converted = once_converted(trials, runner, settings.policy, verdict.winner, limit - time.monotonic())
    decision = decided(campaign, trials, stages, verdict, samples, settings.policy, stand_in, converted)
    found = result_of(campaign, trials, stages, space.templates, decision, settings.also)
    found = replace(found, seconds=time.monotonic() - start)
    tell(f"tuned '{problem.expression}': {found.reason}")
    return found


def _quickest(problem: Problem, space: Space, untuned: str, allowed: float) -> str:
    """Return the schedule that makes the reference result: the one expected to be the fastest, if it is far faster than the default one or
    the default may take much of the ``allowed`` seconds; else the default.

    It is the first of the space or what is used untuned: where time was too short for pruning, nothing but the default is in the space. It
    goes through canonical names, so that its code is that of the trial that may stand in for the default's.
    """
    first = problem.to_canonical(space.templates[0].fill()) if space.templates else DEFAULT
    written = [problem.from_canonical(name) for name in dict.fromkeys((first, untuned)) if name != DEFAULT]
    found = [(*expected_gain(problem, schedule), str(schedule)) for schedule in written]
    gain, seconds, quickest = max(found, key=itemgetter(0), default=(1.0, 0.0, DEFAULT))
    return quickest if gain > FAR or (gain > 1 and seconds > _MUCH * allowed) else DEFAULT


def make_budget(trials: int, seconds: float | None) -> Budget:
    """Return a checked budget.

    Raises:
        TuningError: a number is out of range.
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise TuningError(f"trials is {shown(trials)}: a whole number from 1 on is expected")
    if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds < math.inf):
        raise TuningError(f"time_budget is {shown(seconds)}: a positive number of seconds is expected")
    return Budget(trials=trials, seconds=seconds)


MOST_SCHEDULES = 10_000
"""Schedules that a user gives to be tried first, at most: an endless iterator ends there."""


def check_schedules(problem: Problem, schedules: Iterable[Schedule | str]) -> tuple[str, ...]:
    """Return schedules that a user gives in canonical names, each once.

    Raises:
        ScheduleError: one is no schedule, or not one of this expression.
    """
    if isinstance(schedules, str | Schedule):
        raise ScheduleError(f"schedules is a list of schedules or their texts, not {quoted(str(schedules), 60)} alone; put it in brackets")
    try:
        given = list(islice(schedules, MOST_SCHEDULES + 1))
    except Exception:  # an object of any type may be given, and may raise anything
        raise ScheduleError(f"schedules is a list of schedules or their texts, not {shown(schedules)}; put it in brackets") from None
    if len(given) > MOST_SCHEDULES:
        raise ScheduleError(f"schedules has more than {MOST_SCHEDULES} of them; nobody could measure so many")
    found = []
    for number, one in enumerate(given, 1):
        schedule = Schedule(one)
        try:
            program = compile_problem(problem, schedule).compiled.concretized.program
        except ScheduleError as error:
            raise ScheduleError(f"schedule {number} of those given: {error}") from None
        if problem.limits.binds(elements := workspace_elements(program, problem)):
            bound = f"{elements:g} elements of workspaces, and memory_bound is {problem.limits.memory_bound:g}"
            raise ScheduleError(f"schedule {number} of those given has {bound}")
        found.append(problem.to_canonical(schedule))
    return tuple(dict.fromkeys(found))


def check_seed(seed: Any) -> int:
    """Return a seed as an integer. Raises ``TuningError`` for what is none."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed <= MOST_SEED:
        raise TuningError(f"seed has to be a whole number from 0 to {MOST_SEED}")
    return int(seed)


def _finished(
    campaign: Campaign, trials: Trials, space: Space, stages: list[dict[str, Any]], budget: Budget, given: Sequence[str],
    also: tuple[str, ...], ended: bool,
) -> TuneResult | None:  # fmt: skip
    """Return what the campaign decided before, where there is nothing left to measure."""
    exhausted = space.beyond is None and space.size <= len(trials) and all(space.schedule(point) in trials for point in space.points())
    exhausted = exhausted and all(schedule in trials for schedule in given)
    decisions = list(campaign.store.decisions(campaign=campaign.key))
    last = max((measurement.created for measurement in campaign.recorded()), default="")
    over = bool(decisions) and decisions[-1].created >= last  # false where a run ended between its trials and its finals
    if over and (exhausted or ended or len(trials) >= budget.trials):
        return result_of(campaign, trials, stages, space.templates, decisions[-1], also)
    return None


def _untuned(problem: Problem) -> str:
    """Return the schedule, in canonical names, that is used where nothing was tuned; the default one where none keeps the memory bound."""
    with suppress(TuningError):
        return problem.to_canonical(lookup_problem(problem, NOTHING).schedule)
    return DEFAULT
