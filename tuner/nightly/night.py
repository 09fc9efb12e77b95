"""One night: every item of a suite is checked, measured in turn with a reference, compared, and looked at over the nights.

Where a base is given, the two versions race (``race``). Else times of two nights are compared, each over the time of a reference kernel of
the same kind that ran in turn with it (``reference``), since a machine is not equally fast every night. Either way a change is measured a
second time before it counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...compiler.errors import SparsetuneError, TuningError
from ...compiler.native.devices import gpu_state
from ...compiler.native.machine import this_machine
from ..config import Suite
from ..database import Database
from ..environment import code_version, describe_environment
from ..measure.order_statistics import median, median_interval_ranks
from ..measure.runner import Runner
from ..measure.sampling import PATIENCE
from ..measure.turn import Turn
from ..measure.worker_process import LostProcess, Worker
from ..problem import Problem
from ..records import Measurement, Status
from ..suite import first_line, open_items
from . import changes, probes
from .baseline import Baseline, Entry
from .changes import Change
from .drift import MOST_NIGHTS, change_point
from .race import ROOT, OlderFails, Side, Task, contest, repeated, saved
from .reference import CLOCK, LIBRARY, Reference

ROUNDS, MIN_QUIET = 11, 6
_LEAST_SAMPLE, _BURST_SECONDS, _SAMPLES = 5e-5, 0.01, 3


@dataclass(frozen=True)
class Place:
    """An item of a night, by its names in the suite."""

    kernel: str
    input: str


Choose = Callable[[Place, Problem], str]


@dataclass(frozen=True)
class Plan:
    """What a night measures, and with what it compares.

    Attributes:
        suite: what is measured.
        baseline: that of an earlier night; without entries on the first night.
        base: folder of the version to race against; None: there is none.
        margin: a relative change up to this counts as none.
        store: the database that keeps the nights.
        choose: returns the schedule of an item that the baseline does not know.
    """

    suite: Suite
    baseline: Baseline
    base: Path | None
    margin: float
    store: Database
    choose: Choose


def run_night(plan: Plan, begin: Callable[[Place], None] = lambda place: None) -> Iterator[tuple[Entry, Change]]:
    """Yield the measurement of every item, and the verdict on it.

    Args:
        plan: what to do.
        begin: called before each item.
    """
    with ExitStack() as stack:
        sides: dict[tuple[Path, int], Side] = {}

        def side(root: Path, threads: int) -> Side:
            if (root, threads) not in sides:
                sides[root, threads] = Side(root, threads)
                stack.callback(sides[root, threads].close)
            return sides[root, threads]

        for place, task, worker in _tasks(plan):
            begin(place)
            yield _Item(plan, place, task, worker, side).judged()


def _tasks(plan: Plan) -> Iterator[tuple[Place, Callable[[], Task], Worker | None]]:
    """Yield the items of the suite and its probes, each with a function that returns its task, and a worker that checks results."""

    def task(place: Place, problem: Callable[[], Problem], call: str) -> Task:
        opened = problem()
        known = plan.baseline.entries.get((place.kernel, place.input))
        return Task(opened, known.schedule if known is not None else plan.choose(place, opened), call)

    for item, problem, worker in open_items(plan.suite):
        place = Place(item.label, item.input.name)
        yield place, lambda place=place, problem=problem: task(place, problem, "bound"), worker
    for probe in () if plan.suite.is_on_device else probes.chosen(plan.suite.probes):
        place = Place(probe.name, probe.input)
        yield place, lambda place=place, probe=probe: task(place, probe.problem, probe.call), None


class _Item:
    """One item while it is measured and judged."""

    def __init__(
        self, plan: Plan, place: Place, task: Callable[[], Task], worker: Worker | None, side: Callable[[Path, int], Side]
    ) -> None:
        self._plan, self._place, self._open, self._worker, self._side = plan, place, task, worker, side
        self._before = plan.baseline.entries.get((place.kernel, place.input))

    def judged(self) -> tuple[Entry, Change]:
        schedule = ""
        try:
            task = self._open()
            schedule = task.schedule
            repeated(lambda: self._check(task))
            entry, samples = repeated(lambda: self._measured(task))
            change = self._compared(task, entry)
            return entry, self._over_the_nights(task, entry, samples, change)
        except SparsetuneError as error:
            entry = Entry(self._place.kernel, self._place.input, schedule, None, (), first_line(error))
            return entry, changes.failed(entry, self._before)

    def _check(self, task: Task) -> None:
        """Refuse a schedule that does not run, or whose result is not that of the default schedule. Raises ``TuningError``."""
        if self._worker is None:
            return
        with Runner(task.problem, self._worker, self._plan.suite.settings.policy) as runner:
            runner.prepare()
            built = runner.build(task.schedule)
            found = built if built.status is not Status.OK else runner.measure(task.schedule)
            if found.status is not Status.OK:
                failure = LostProcess if found.status in (Status.CRASH, Status.TIMEOUT) else TuningError
                raise failure(f"the schedule '{task.schedule}' fails ({found.status}): {found.message}")

    def _measured(self, task: Task) -> tuple[Entry, list[tuple[float, ...]]]:
        """Return the entry of this version and the fastest sample of each round. Raises ``TuningError``."""
        newer = self._side(ROOT, task.problem.threads)
        with saved(task) as folder:
            newer.load(folder)
        with Turn():
            batch, count, seconds = _burst_size(newer)
            reference = self._reference(task, newer, seconds)
            newer.ask(60, "reference", **asdict(reference))
            rounds = _rounds(newer, batch, count, seconds)
        samples = [sample for sample, _ in rounds]
        ratios = tuple(sample[0] * reference.units / beside for sample, beside in rounds)
        times = [sample[0] for sample in samples]
        return Entry(self._place.kernel, self._place.input, task.schedule, median(times), ratios, "", reference), samples

    def _reference(self, task: Task, newer: Side, seconds: float) -> Reference:
        """Return the reference of the baseline, or one of the item's kind."""
        if task.problem.is_on_gpu:
            return CLOCK
        before = self._before and self._before.reference
        if before is not None and before.library == LIBRARY and before.threads == task.problem.threads:
            return before
        size = sum(operand.nbytes for operand in task.problem.operands.values())
        kind = "memory" if size > this_machine().last_level_cache else "arithmetic"
        found = newer.ask(60, "fitting", kind=kind, threads=task.problem.threads, length=seconds)
        del found["status"]
        return Reference(**found)

    def _compared(self, task: Task, entry: Entry) -> Change:
        plan, threads = self._plan, task.problem.threads
        if plan.base is not None:
            try:
                return changes.raced(entry, contest(self._side(plan.base, threads), self._side(ROOT, threads), task, plan.margin, Turn()))
            except OlderFails as failure:
                return replace(self._by_baseline(task, entry), message=f"the base does not run it: {first_line(failure)}")
        return self._by_baseline(task, entry)

    def _by_baseline(self, task: Task, entry: Entry) -> Change:
        """Compare an entry with the baseline; a change is measured again by a new process."""
        found = changes.without_base(entry, self._before, self._plan.margin)
        if found.verdict in ("same", "new"):
            return found
        self._side(ROOT, task.problem.threads).restart()
        again, _ = repeated(lambda: self._measured(task))
        return changes.agreed(found, changes.without_base(again, self._before, self._plan.margin))

    def _over_the_nights(self, task: Task, entry: Entry, samples: list[tuple[float, ...]], change: Change) -> Change:
        """Record the night, and return the change with a drift over the nights, if there is one."""
        store, name = self._plan.store, f"nightly {self._plan.suite.key}: {self._place.kernel} on {self._place.input}"[:1000]
        store.add(_as_record(name, task, entry, samples))
        machine = task.problem.workload.machine
        series = list(nights(store, name, entry, self._plan.baseline.created, machine))[-MOST_NIGHTS:]
        drift = change_point(series)
        change = replace(change, nights=tuple(ratio for _, ratio in series))
        return change if drift is None else changes.drifted(change, drift)


def nights(store: Database, campaign: str, entry: Entry, since: str, machine: str = "") -> Iterator[tuple[str, float]]:
    """Yield when an item was measured and its time over its reference, oldest first, on nights that can be compared.

    Args:
        campaign: key of the item's records.
        since: when the baseline was taken; nights before that were accepted with it and do not count. Empty: all nights count.
        machine: the machine or device of the nights; empty: this machine.
    """
    assert entry.reference is not None
    for record in store.measurements(campaign=campaign, role="night", machine=machine or this_machine().fingerprint):
        found = record.policy.get("reference")
        ratio = record.policy.get("ratio")
        same = isinstance(found, Mapping) and {**found, "units": 0} == {**asdict(entry.reference), "units": 0}
        if same and record.created >= since and isinstance(ratio, float) and ratio > 0:
            yield record.created, ratio


def _as_record(campaign: str, task: Task, entry: Entry, samples: list[tuple[float, ...]]) -> Measurement:
    assert entry.reference is not None
    times = sorted(sample[0] for sample in samples)
    low, high = median_interval_ranks(len(times))
    environment = describe_environment({"SPARSETUNE_THREADS": str(task.problem.threads)})
    policy: dict[str, Any] = {"reference": asdict(entry.reference), "ratio": median(entry.ratios), "rounds": ROUNDS, "call": task.call}
    return Measurement(
        workload=task.problem.workload,
        input=task.problem.input,
        campaign=campaign,
        role="night",
        schedule=task.problem.to_canonical(_schedule(task)),
        status=Status.OK,
        seconds=entry.seconds,
        low=times[low],
        high=times[high],
        samples=tuple(samples),
        origin="nightly",
        policy=policy,
        environment={**environment, "gpu": gpu_state()} if task.problem.is_on_gpu else environment,
        code=code_version(),
    )


def _schedule(task: Task) -> Any:
    from ...compiler.schedule.schedule import Schedule

    return Schedule(task.schedule)


def _rounds(side: Side, batch: int, count: int, seconds: float) -> list[tuple[tuple[float, ...], float]]:
    """Return the fastest sample of the task and the seconds of the reference, round by round: undisturbed rounds, if there are enough."""
    taken, quiet = [], []
    while len(quiet) < ROUNDS and len(taken) < PATIENCE * ROUNDS:
        sample, crowded = side.burst(batch, count, seconds)
        beside = side.ask(60, "reference_burst", samples=_SAMPLES)
        taken.append((sample, beside["sample"][0]))
        if not crowded and not beside["disturbed"]:
            quiet.append(taken[-1])
    return quiet if len(quiet) >= MIN_QUIET else taken


def _burst_size(side: Side) -> tuple[int, int, float]:
    """Return the runs a sample, the samples a burst, and the seconds that a run takes."""
    batch, seconds = 1, 1.0
    for _ in range(2):
        sample, _ = side.burst(batch, _SAMPLES, seconds)
        seconds = sample[0]
        batch = max(1, math.ceil(_LEAST_SAMPLE / seconds))
    return batch, max(_SAMPLES, round(_BURST_SECONDS / (batch * seconds))), seconds
