"""Candidates of one problem, built and measured in a worker process: the requests to it, and how long to wait for each."""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from ...compiler.deadline import TimeOver
from ...compiler.errors import TuningError
from ..kernels import Task
from ..problem import Problem
from ..records import Status
from . import handover
from .finals import Burst
from .outcomes import Built, Measured, Rival
from .policy import Policy
from .sampling import PATIENCE, Sample, burst_size
from .service import BUILD_SECONDS
from .turn import WAIT_SECONDS, Turn
from .worker_process import Lost, LostProcess, Worker

_LOAD_SECONDS = 300.0
_DEFAULT_SECONDS = 60.0  # least time limit of a run of the default schedule
_WAITING_SHARE = 0.2  # share of the time that is left for which a campaign waits for its turn
_GRACE_SECONDS = 10.0  # allowed besides the runs themselves: page faults, checking the result, a busy machine


class Runner:
    """Candidates of one problem, run in a worker. Whatever is asked of it raises ``TimeOver`` if it is not done by ``end``.

    Attributes:
        end: on the monotonic clock; what runs then is ended.
        asked: when the worker was asked last, on the same clock.

    Args:
        grace: seconds that a candidate may take besides what the policy grants it; None: enough that none is lost on a busy machine.
    """

    def __init__(self, problem: Problem, worker: Worker, policy: Policy | None = None, grace: float | None = None) -> None:
        self.policy = policy or Policy()
        self._grace = grace
        self.problem = problem
        self.end, self.asked = math.inf, -math.inf
        self._worker = worker
        self._turn = Turn()
        self._loaded = -1  # the worker's start at which it was given the operands
        self._slowest = 1.0  # seconds of the default schedule, once known
        self._scratch = handover.make_folder(handover.total_bytes(problem.operands))
        self._folder = self._scratch.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was handed over, in the worker too, which goes on."""
        self._scratch.remove()
        if self._worker.running and self._loaded == self._worker.starts:
            with contextlib.suppress(Lost):
                self._worker.ask(_GRACE_SECONDS, "forget")

    @property
    def folder(self) -> Path:
        return self._folder

    def prepare(self, quickest: str = "") -> Rival | None:
        """Compile the default schedule and make the reference result.

        Args:
            quickest: a schedule that is likely to give the result far sooner than the default one, which is then checked against it.

        Returns:
            That schedule and the seconds of its run, if it has made the reference result.

        Raises:
            TuningError: the default schedule cannot be compiled or run, or is wrong: there is nothing to compare with.
        """
        built = self.build("")
        if built.status is not Status.OK:
            raise TuningError(f"the default schedule cannot be compiled ({built.status}): {built.message}")
        if quickest and (seconds := self._makes_reference(quickest)) is not None:
            return Rival(quickest, seconds)
        try:
            reply = self._ask(_LOAD_SECONDS, "reference", schedule="")
        except Lost as lost:
            raise LostProcess(f"the default schedule does not run ({lost.status}): {lost.message}") from None
        if reply["status"] != "ok":
            raise TuningError(f"the default schedule gives no result to compare with: {reply['message']}")
        return None

    def _makes_reference(self, schedule: str) -> float | None:
        """Return the seconds that a schedule took to make the reference result; None where it has not."""
        if self.build(schedule).status is not Status.OK:
            return None
        try:
            reply = self._ask(_LOAD_SECONDS, "reference", schedule=schedule)
        except Lost:
            return None
        return reply["seconds"] if reply["status"] == "ok" else None

    def build(self, schedule: str, known: Iterable[str] = ()) -> Built:
        """Generate and compile a candidate; one whose source has a digest among those known is not compiled again."""
        return self.build_together([schedule], known)[0]

    def build_together(self, schedules: Sequence[str], known: Iterable[str] = ()) -> list[Built]:
        """Build candidates (``worker.AHEAD`` of them at most), with a compiler on every core. If one of them ends the process, all are
        built one by one, so that only that one fails."""
        known = list(known)
        try:
            reply = self._ask(_GRACE_SECONDS + len(schedules) * BUILD_SECONDS, "build", schedules=list(schedules), known=known)
        except Lost as lost:
            if len(schedules) > 1:
                return [self.build(schedule, known) for schedule in schedules]
            return [Built(Status.CRASH if lost.status is Status.CRASH else Status.COMPILE, message=lost.message)]
        return [Built(Status(one.pop("status")), **one) for one in reply["built"]]

    def measure(self, schedule: str, rival: Rival | None = None) -> Measured:
        """Run, check and time a candidate that was built, in turn with the best so far where there is one."""
        grace = _GRACE_SECONDS if self._grace is None else self._grace
        slowest = rival.seconds if rival else self._slowest
        limit = grace + 2 * PATIENCE * self.policy.max_seconds + 10 * self.policy.hopeless * slowest
        limit = max(limit, _DEFAULT_SECONDS) if schedule == "" else limit
        try:
            with self._in_turn():
                beside = {"rival": rival and rival.schedule, "rival_seconds": rival and rival.seconds}
                reply = self._ask(limit, "measure", schedule=schedule, policy=self.policy.as_dict(), **beside)
        except Lost as lost:
            return Measured(lost.status, message=lost.message)
        found = Measured.from_reply(reply, rival, self.policy)
        if schedule == "" and found.seconds:
            self._slowest = found.seconds
        return found

    def burst(
        self, schedule: str, seconds: float, expected: float, converted: bool = False
    ) -> tuple[tuple[float, ...], Burst] | None:
        """Return the fastest sample (``records.SAMPLE``) of a finalist in a burst of so many seconds, and the burst; None where it fails.

        Args:
            expected: seconds that one run takes.
            converted: whether to leave out the time of conversions.
        """
        cold = self.policy.is_cold
        batch, batches = burst_size(seconds, expected, cold)
        limit = _GRACE_SECONDS + 100 * (batch * batches + 1) * expected
        try:
            with self._in_turn():
                reply = self._ask(limit, "burst", schedule=schedule, batch=batch, batches=batches, cold=cold, converted=converted)
        except Lost:
            return None
        if reply["status"] != "ok":
            return None
        sample = Sample.from_row(reply["sample"])
        return tuple(reply["sample"]), Burst(sample.alone, sample.company.disturbed, reply["crowded"], reply["by_work"])

    def move(self) -> None:
        """Have operands and result moved to other memory before the next burst. (If the process is lost, the next one moves them too.)"""
        if not self.problem.is_on_gpu:
            with contextlib.suppress(Lost):
                self._ask(_LOAD_SECONDS, "move")

    def yardstick(self) -> float:
        """Return the time of a fixed piece of work in the same process, which tells how fast the machine is now.

        Raises:
            TuningError: the process died.
        """
        try:
            with self._in_turn():
                return self._ask(_GRACE_SECONDS, "yardstick")["seconds"]
        except Lost as lost:
            raise LostProcess(f"the measuring process was lost: {lost.message}") from None

    def _in_turn(self) -> Turn:
        """Return the turn, to be waited for during a part of the time that is left: a measurement beside other campaigns is worth less than
        one alone, but more than none."""
        self._turn.wait = min(WAIT_SECONDS, max(0.0, _WAITING_SHARE * (self.end - time.monotonic())))
        return self._turn

    def _ask(self, seconds: float, action: str, **arguments: Any) -> dict[str, Any]:
        if not self._worker.running or self._loaded != self._worker.starts:
            self._load()
        return self._in_time(seconds, action, **arguments)

    def _in_time(self, seconds: float, action: str, **arguments: Any) -> dict[str, Any]:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeOver
        self.asked = time.monotonic()
        try:
            return self._worker.ask(min(seconds, left), action, **arguments)
        except Lost as lost:
            if lost.status is Status.TIMEOUT and left < seconds:
                raise TimeOver from None
            raise

    def _load(self) -> None:
        problem, task = self.problem, asdict(Task.of(self.problem))
        operands = self._folder / "operands"  # may lie in memory, so it exists only while they are handed over
        try:
            operands.mkdir()
            handover.save(operands, problem.operands)
            self._in_time(_LOAD_SECONDS, "load", folder=str(self._folder), task=task)
        except Lost as lost:
            raise TuningError(f"the measuring process does not start: {lost.message}") from None
        finally:
            shutil.rmtree(operands, ignore_errors=True)
        self._loaded = self._worker.starts
