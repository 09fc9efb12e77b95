"""The nightly job: a suite measured again, and compared with what it took before.

Machines drift, so a time by itself proves nothing: every kernel runs in turn with a fixed yardstick (a STREAM triad in numpy), and what
is compared is their ratio, round by round. A kernel has regressed when the median ratio is worse than the baseline's by more than a
margin and the two intervals do not meet; it has improved in the opposite case. Times below a floor are noise and not judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ..compiler.errors import DatabaseError, DataError, SparsetuneError, TuningError
from ..compiler.native.machine import this_machine
from .config import Suite
from .database import fields
from .database.gate import SECONDS, read_json
from .measure.order_statistics import median, median_interval_ranks
from .measure.runner import Runner, Worker
from .problem import Problem
from .suite import Item, first_line, open_items

BASELINE_SCHEMA = 1
ROUNDS = 11
FLOOR_SECONDS = 20e-6


@dataclass(frozen=True)
class Entry:
    """One kernel on one input: its schedule, its time, and its times over the yardstick's, one a round.

    Where it failed there is no time, and ``failure`` says why.
    """

    kernel: str
    input: str
    schedule: str
    seconds: float | None
    ratios: tuple[float, ...]
    failure: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.kernel, self.input


_ENTRY: dict[str, fields.Check] = {
    "kernel": fields.text(),
    "input": fields.text(plain=False),
    "schedule": fields.text(fields.TEXT_LETTERS),
    "seconds": fields.optional(fields.number(*SECONDS)),
    "ratios": fields.list_of(fields.number(1e-18, 1e18)),
    "failure": fields.text(fields.TEXT_LETTERS, plain=False),
}


@dataclass(frozen=True)
class Change:
    """An entry beside its baseline; ``change`` is the new ratio over the old one, None where there is no old one."""

    kernel: str
    input: str
    baseline_time: float | None
    time: float | None
    change: float | None
    verdict: str  # "same", "regression", "improvement", "new", "too short"
    message: str = ""


def measure_suite(suite: Suite, choose: Callable[[Item, Problem], str], begin: Callable[[Item], None]) -> Iterator[Entry]:
    """Measure every item of a suite in turn with the yardstick.

    Args:
        choose: returns the schedule to measure.
        begin: called before each item.
    """
    for item, problem, worker in open_items(suite):
        begin(item)
        try:
            yield _measure_item(item, problem(), worker, suite, choose)
        except SparsetuneError as error:
            yield Entry(item.label, item.input.name, "", None, (), first_line(error))


def _measure_item(item: Item, problem: Problem, worker: Worker, suite: Suite, choose: Callable[[Item, Problem], str]) -> Entry:
    schedule = choose(item, problem)
    try:
        with Runner(problem, worker, suite.settings.policy) as runner:
            return _measure(item, schedule, runner, suite.settings.policy.burst_seconds)
    except TuningError as error:
        return Entry(item.label, item.input.name, schedule, None, (), first_line(error))


def compare_entries(entries: list[Entry], baseline: Mapping[tuple[str, str], Entry], margin: float) -> list[Change]:
    """Return every entry beside its baseline.

    Args:
        margin: how much slower counts as a regression; 0.25 is a quarter.
    """
    return [_compare(entry, baseline.get(entry.key), margin) for entry in entries]


def read_baseline(path: Path) -> dict[tuple[str, str], Entry]:
    """Return the entries of a baseline file.

    Raises:
        DataError: it cannot be read, is no baseline, or one of another machine.
    """
    try:
        content = read_json(path.read_text(encoding="utf-8"))
        schema, machine, processor = content["schema"], content["machine"], fields.shown(content["processor"])
        if schema != BASELINE_SCHEMA:
            raise DataError(f"{path} is a baseline of schema {fields.shown(schema)}; this program knows {BASELINE_SCHEMA}")
        if machine != this_machine().fingerprint:
            raise DataError(f"{path} was measured on another machine ({processor}); make a new baseline here")
        found = [Entry(**fields.read_fields(entry, Entry, _ENTRY, "entry.")) for entry in content["entries"]]
    except OSError as error:
        raise DataError(f"cannot read the baseline {path}: {error.strerror or error}") from None
    except DatabaseError as error:
        raise DataError(f"{path} is no baseline file of 'tune-kernel nightly': {error}") from None
    except (UnicodeDecodeError, KeyError, TypeError):
        raise DataError(f"{path} is no baseline file of 'tune-kernel nightly'") from None
    for entry in found:
        if entry.seconds is not None and not entry.ratios:
            raise DataError(f"{path} is no baseline file of 'tune-kernel nightly': {fields.shown(entry.kernel)} has a time, but no ratios")
    return {entry.key: entry for entry in found}


def write_baseline(path: Path, entries: list[Entry]) -> None:
    """Write entries as the baseline for later nights.

    Raises:
        DataError: the file cannot be written.
    """
    machine = this_machine()
    content = {
        "schema": BASELINE_SCHEMA,
        "machine": machine.fingerprint,
        "processor": machine.model,
        "entries": [asdict(entry) for entry in entries],
    }
    try:
        scratch = path.with_name(path.name + ".part")
        scratch.write_text(json.dumps(content, indent=1), encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        raise DataError(f"cannot write the baseline {path}: {error.strerror or error}") from None


def _measure(item: Item, schedule: str, runner: Runner, seconds: float) -> Entry:
    """Measure one item. Raises ``TuningError`` where the schedule fails."""
    runner.prepare()
    measured = runner.measure(schedule)
    if measured.seconds is None:
        raise TuningError(f"the schedule '{schedule}' fails ({measured.status}): {measured.message}")
    times, ratios = [], []
    for _ in range(ROUNDS):
        mine, yardstick = runner.burst(schedule, seconds, measured.seconds), runner.yardstick()
        if mine is None:
            raise TuningError(f"the schedule '{schedule}' failed after it had run")
        times.append(mine[0])
        ratios.append(mine[0] / yardstick)
    return Entry(item.label, item.input.name, schedule, median(times), tuple(ratios))


def _compare(entry: Entry, before: Entry | None, margin: float) -> Change:
    if entry.seconds is None:
        return Change(entry.kernel, entry.input, before and before.seconds, None, None, "regression", entry.failure)
    if before is None or before.seconds is None:
        return Change(entry.kernel, entry.input, None, entry.seconds, None, "new")
    change = median(entry.ratios) / median(before.ratios)
    (low, high), (low_before, high_before) = _interval(entry.ratios), _interval(before.ratios)
    verdict = "same"
    if max(entry.seconds, before.seconds) < FLOOR_SECONDS:
        verdict = "too short"
    elif change > 1 + margin and low > high_before:
        verdict = "regression"
    elif change < 1 / (1 + margin) and high < low_before:
        verdict = "improvement"
    return Change(entry.kernel, entry.input, before.seconds, entry.seconds, change, verdict)


def _interval(ratios: tuple[float, ...]) -> tuple[float, float]:
    low, high = median_interval_ranks(len(ratios))
    return sorted(ratios)[low], sorted(ratios)[high]
