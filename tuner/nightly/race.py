"""Two versions of sparsetune that run the same task in turn, in a process each.

Two times that were taken on different nights say little; two taken one after the other, again and again, say which is faster whatever the
machine does meanwhile. A race goes on until its interval lies on one side of the margin. The place of a process in memory may make it
faster, so a difference counts only if a second race with new processes finds it too. A process that does not answer is replaced once, since
a system may suspend or end a process for reasons of its own.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...compiler.errors import DataError, TuningError
from ...compiler.format import dense_format
from ...compiler.native.scratch import new_scratch
from ...compiler.storage.tensor import Tensor
from ..measure.finals import Comparison, compare
from ..measure.handover import make_folder, total_bytes
from ..measure.order_statistics import median
from ..measure.turn import Turn
from ..measure.worker_process import Lost, LostProcess, Worker
from ..problem import Problem

ROOT = Path(__file__).resolve().parents[2]
"""The folder of this version."""

CALLS = ("bound", "call", "pack")
"""The kinds of timed calls: of a bound kernel, of a kernel with its operands, and the packing of an operand's coordinates."""

MIN_ROUNDS, MOST_ROUNDS = 9, 45
_MOST_SECONDS = 20.0  # time limit of one race
_MOST_RACES = 3
_LOAD_SECONDS = 300.0
_BURST_SECONDS = 0.01
_LEAST_SAMPLE = 5e-5
_SAMPLES = 3

Found = TypeVar("Found")


@dataclass(frozen=True)
class Task:
    """What is raced.

    Attributes:
        problem: expression and operands.
        schedule: in the problem's names.
        call: one of ``CALLS``.
    """

    problem: Problem
    schedule: str
    call: str = "bound"


@dataclass(frozen=True)
class Outcome:
    """The outcome of the races of two versions.

    Attributes:
        verdict: on the newer version: "same", "regression", "improvement" or "undecided".
        change: times of the newer version over those of the older, from the last race.
        before, now: seconds, medians of the last race.
        races: how many there were.
    """

    verdict: str
    change: Comparison
    before: float
    now: float
    races: int


class Side:
    """One version, in a process that is started when it is needed and again after ``restart``.

    Args:
        root: the folder of the version: a checkout, or an installed package.
        threads: of the tasks that it runs.
    """

    def __init__(self, root: Path, threads: int) -> None:
        self.root = root
        self._threads = threads
        self._links = new_scratch(Path(tempfile.gettempdir()), "sparsetune-race-")
        (self._links.path / "sparsetune").symlink_to(root, target_is_directory=True)
        self._worker: Worker | None = None

    def ask(self, seconds: float, action: str, **given: Any) -> dict[str, Any]:
        """Return the reply to a request. Raises ``SideFails``: the task fails in this version; ``SideLost``: the process did not answer."""
        if self._worker is None:
            command = (sys.executable, "-P", str(Path(__file__).with_name("racer.py")))
            self._worker = Worker(self._threads, command, (str(self._links.path),))
        try:
            reply = self._worker.ask(seconds, action, **given)
        except Lost as lost:
            raise SideLost(self, lost.message) from None
        if reply["status"] != "ok":
            raise SideFails(self, reply["message"])
        return reply

    def load(self, folder: Path) -> None:
        """Take a task that ``saved`` wrote. Raises ``SideFails``."""
        reply = self.ask(_LOAD_SECONDS, "load", folder=str(folder))
        if Path(reply["package"]) != self.root.resolve():
            raise SideFails(self, f"{reply['package']} was run in place of {self.root}")

    def burst(self, batch: int, samples: int, expected: float) -> tuple[tuple[float, ...], bool]:
        """Return the fastest sample (``records.SAMPLE``) and whether all were disturbed. Raises ``SideFails``."""
        reply = self.ask(10 + 100 * (batch * samples + 1) * expected, "burst", batch=batch, samples=samples)
        return tuple(reply["sample"]), reply["disturbed"]

    def restart(self) -> None:
        """End the process; the next request starts another."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def close(self) -> None:
        """End the process, and remove the folder from which it finds the package."""
        self.restart()
        self._links.remove()


class SideFails(TuningError):
    """A version cannot do what it is asked.

    Attributes:
        side: the version.
    """

    def __init__(self, side: Side, message: str) -> None:
        super().__init__(message)
        self.side = side


class SideLost(SideFails, LostProcess):
    """The process of a version did not answer."""


class OlderFails(TuningError):
    """The older version cannot run a task, so that there is nothing to race against."""


def repeated(attempt: Callable[[], Found]) -> Found:
    """Return the outcome of an attempt; of a second one if a process was lost in the first.

    Args:
        attempt: what is attempted. It hands the task to the processes first, so that a new process gets it too.
    """
    try:
        return attempt()
    except LostProcess:
        return attempt()


def checkout(path: Path) -> Path:
    """Return the folder of a version of sparsetune at a path: a checkout, or a folder that holds it as ``sparsetune``.

    Raises:
        DataError: there is none.
    """
    for place in (path, path / "sparsetune"):
        if (place / "__init__.py").is_file() and (place / "compiler").is_dir() and (place / "csrc").is_dir():
            return place.resolve()
    raise DataError(f"{path} is no checkout of sparsetune: it has no __init__.py, compiler and csrc")


@contextlib.contextmanager
def saved(task: Task) -> Iterator[Path]:
    """Write a task into a folder that lasts as long as the context: operands as coordinates and values, which every version takes."""
    problem = task.problem
    with make_folder(total_bytes(problem.operands)) as folder:
        operands = {operand: _save_operand(folder, number, stored) for number, (operand, stored) in enumerate(problem.operands.items())}
        content = {
            "call": task.call,
            "expression": problem.expression,
            "result": problem.assignment.target.tensor,
            "formats": {tensor: str(form) for tensor, form in problem.stored.items()},
            "extents": problem.constants,
            "schedule": task.schedule,
            "threads": problem.threads,
            "target": problem.target,
            "on_device": problem.is_on_gpu,
            "operands": operands,
        }
        (folder / "task.json").write_text(json.dumps(content))
        yield folder


def _save_operand(folder: Path, number: int, operand: Tensor) -> dict[str, Any]:
    if operand.format == dense_format(operand.order):
        np.save(folder / f"{number}.npy", operand.to_numpy())
        return {"array": f"{number}.npy"}
    coordinates, values = operand.to_coordinates()
    order = np.random.default_rng(0).permutation(len(values))  # as in a file whose entries are not sorted
    coordinates, values = coordinates[:, order], values[order]
    np.save(folder / f"{number}-coordinates.npy", coordinates)
    np.save(folder / f"{number}-values.npy", values)
    names = {"coordinates": f"{number}-coordinates.npy", "values": f"{number}-values.npy"}
    return {**names, "shape": operand.shape, "format": str(operand.format)}


def contest(older: Side, newer: Side, task: Task, margin: float, turn: Turn | None = None) -> Outcome:
    """Race two versions, again with new processes until two races agree.

    Args:
        older, newer: the versions; their processes may have run other tasks.
        task: what they run.
        margin: a relative change up to this counts as none.
        turn: the lock to hold while something is timed.

    Raises:
        OlderFails: the older version cannot run the task.
        SideFails: the newer one cannot.
    """
    verdicts: list[str] = []

    def race() -> list[tuple[float, float]]:
        for side in (older, newer):
            side.load(folder)
        with turn or contextlib.nullcontext():
            return _race(older, newer, margin)

    with saved(task) as folder:
        while True:
            try:
                pairs = repeated(race)
            except SideFails as failure:
                if failure.side is older:
                    raise OlderFails(str(failure)) from None
                raise
            found = compare([now for _, now in pairs], [before for before, _ in pairs])
            verdicts.append(verdict(found, margin) or "undecided")
            agreed = verdicts[-1] == "same" or (verdicts[-1] != "undecided" and verdicts.count(verdicts[-1]) > 1)
            if agreed or len(verdicts) == _MOST_RACES:
                before, now = (median([pair[side] for pair in pairs]) for side in (0, 1))
                return Outcome(verdicts[-1] if agreed else "undecided", found, before, now, len(verdicts))
            older.restart()
            newer.restart()


def verdict(found: Comparison, margin: float) -> str | None:
    """Return the verdict that the interval of a change makes sure; None if the interval reaches over the margin."""
    if found.low > 1 + margin:
        return "regression"
    if found.high < 1 / (1 + margin):
        return "improvement"
    return "same" if found.low >= 1 / (1 + margin) and found.high <= 1 + margin else None


def _race(older: Side, newer: Side, margin: float) -> list[tuple[float, float]]:
    """Run both in turn until a verdict is sure or the time is up; return the seconds of both, round by round. Disturbed rounds count only
    if there are no others."""
    sides = (older, newer)
    sizes = [_size(side) for side in sides]
    quiet: list[tuple[float, float]] = []
    pairs: list[tuple[float, float]] = []
    start = time.monotonic()
    for number in range(MOST_ROUNDS):
        times, disturbed = [0.0, 0.0], False
        for place in (0, 1) if number % 2 else (1, 0):
            side, (batch, samples, expected) = sides[place], sizes[place]
            sample, crowded = side.burst(batch, samples, expected)
            times[place], disturbed = sample[0], disturbed or crowded
        pairs.append((times[0], times[1]))
        if not disturbed:
            quiet.append(pairs[-1])
        if len(quiet) >= MIN_ROUNDS and verdict(compare(*_columns(quiet)), margin) is not None:
            return quiet
        if time.monotonic() - start > _MOST_SECONDS and len(pairs) >= MIN_ROUNDS:
            break
    return quiet if len(quiet) >= MIN_ROUNDS else pairs


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return the times of the newer, then those of the older."""
    return [now for _, now in pairs], [before for before, _ in pairs]


def _size(side: Side) -> tuple[int, int, float]:
    """Return the runs a sample, the samples a burst, and the seconds that a run is expected to take."""
    sample, _ = side.burst(1, _SAMPLES, 1.0)
    batch = max(1, math.ceil(_LEAST_SAMPLE / sample[0]))
    sample, _ = side.burst(batch, _SAMPLES, sample[0])
    batch = max(1, math.ceil(_LEAST_SAMPLE / sample[0]))
    return batch, max(_SAMPLES, round(_BURST_SECONDS / (batch * sample[0]))), sample[0]
