"""The parent's side of measurement: a worker process that is asked, watched, and replaced when it dies or hangs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from ...compiler.deadline import TimeOver
from ...compiler.errors import TuningError
from ...compiler.native.machine import allowed_cores
from ..awake import TICK, Awake
from ..kernels import Task
from ..problem import Problem
from ..records import Status
from . import handover
from .policy import Policy
from .resources import CORES
from .sampling import PATIENCE, Sample, burst_size
from .turn import WAIT_SECONDS, Turn
from .worker import BUILD_SECONDS

_LOAD_SECONDS = 300.0
_DEFAULT_SECONDS = 60.0  # that the default schedule may take at least, beside whatever it is timed
_WAITING_SHARE = 0.2  # of the time that is left, to wait for other campaigns
_GRACE_SECONDS = 10.0  # beside the runs themselves: page faults, checking the result, a busy machine

WORKER = (sys.executable, "-P", "-m", __package__ or "")


@dataclass(frozen=True)
class Built:
    """Outcome of compiling a candidate; ``source`` is the digest of the generated code, empty where there is none."""

    status: Status
    source: str = ""
    seconds: float | None = None
    compiler: str = ""
    flags: str = ""
    message: str = ""


@dataclass(frozen=True)
class Rival:
    """What a candidate is timed beside: the best schedule so far, and the seconds it took when it was measured itself."""

    schedule: str
    seconds: float


@dataclass(frozen=True)
class Measured:
    """Outcome of running a candidate.

    Attributes:
        seconds: of the fastest undisturbed run; in a disturbed window, see ``from_reply``.
        low, high: around ``seconds``, see ``records.Measurement``.
        samples: a row each, in order, with the figures of ``records.SAMPLE``.
        disturbed: whether the times stand by themselves no more (``timing.Timing``).
        policy: how it was timed.
        stopped: why it was not run more often.
    """

    status: Status
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    samples: tuple[tuple[float, ...], ...] = ()
    disturbed: bool = False
    policy: Mapping[str, Any] = field(default_factory=dict)
    stopped: str = ""
    message: str = ""

    @property
    def times(self) -> tuple[float, ...]:
        """Seconds a run of every sample."""
        return tuple(row[0] for row in self.samples)

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any], rival: Rival | None, policy: Policy) -> Measured:
        """Return what a worker's reply says of a candidate.

        In a disturbed window it took the rival's seconds times the ratio of the two, but no less than its own threads ran: where others
        keep the cores, several threads are no faster than one, and the ratio alone would flatter a candidate of one thread.
        """
        status, message = Status(reply["status"]), reply.get("message", "")
        if status is not Status.OK:
            return cls(status, message=message)
        samples = tuple(tuple(row) for row in reply["samples"])
        seconds, (low, high), disturbed = reply["seconds"], reply["interval"], reply["disturbed"]
        if disturbed and rival is not None and reply["ratio"] is not None:
            alone = min(Sample.from_row(row).least for row in samples)
            seconds, low, high = (max(alone, ratio * rival.seconds) for ratio in (reply["ratio"], *reply["ratio_interval"]))
        return cls(status, seconds, low, high, samples, disturbed, policy.as_dict(), reply["stopped"], message)


class Lost(Exception):
    """A worker did not answer; ``status`` says how it ended."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class LostProcess(TuningError):
    """A process that measures did not answer: it ended, or took too long. Another one may answer."""


class Worker:
    """One worker process, started when it is first needed and again after each loss.

    Args:
        threads: of what it runs.
        command: starts it.
        path: folders where it looks for modules first.
    """

    def __init__(self, threads: int, command: Sequence[str] = WORKER, path: Sequence[str] = ()) -> None:
        self.threads = threads
        self.starts = 0
        self._command = list(command)
        self._path = list(path)
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._log: IO[bytes] | None = None  # what the process writes to standard error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        self.stop()

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables that decide how many threads run."""
        return {"SPARSETUNE_THREADS": str(self.threads)}

    def _environment(self) -> dict[str, str]:
        cores = ",".join(map(str, sorted(allowed_cores())))
        return {**os.environ, **self.settings, CORES: cores, "PYTHONPATH": os.pathsep.join(filter(None, [*self._path, *sys.path]))}

    @property
    def running(self) -> bool:
        return self._process is not None

    def ask(self, seconds: float, action: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the reply. Raises ``Lost`` if none comes in time or the process dies.

        Time in which this process was suspended does not count, since the worker was suspended too, as likely as not.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"action": action, **arguments}).encode() + b"\n")
            process.stdin.flush()
            return json.loads(self._receive(process, seconds))
        except BrokenPipeError:
            raise self._died(process) from None
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process, and with it a compiler that it started; another request starts a new one."""
        process, self._process, self._received = self._process, None, b""
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, self._log):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # has no name, so that nothing is left behind
        # a session of its own: Ctrl-C goes to the parent alone
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self._environment(),
            start_new_session=True,
        )
        self.starts += 1
        return self._process

    def _receive(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None
        awake = Awake()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(min(TICK, max(0.0, seconds - awake.look()))):
                    if awake.look() >= seconds:
                        raise Lost(Status.TIMEOUT, f"no answer within {seconds:.0f} s")
                    continue
                part = os.read(process.stdout.fileno(), 2**16)
                if not part:
                    raise self._died(process)
                self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _died(self, process: subprocess.Popen[bytes]) -> Lost:
        code = process.wait()
        assert self._log is not None
        last = (os.pread(self._log.fileno(), 2**20, 0).decode(errors="replace").strip().splitlines() or [""])[-1]
        self.stop()
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        return Lost(Status.CRASH, f"the process ended with {how}" + (f": {last}" if last else ""))


class Runner:
    """Candidates of one problem, run in a worker. Whatever is asked of it raises ``TimeOver`` if it is not done by ``end``.

    Attributes:
        end: on the monotonic clock; what runs then is ended.
        asked: when the worker was asked last, on the same clock.

    Args:
        grace: seconds that a candidate may take beside what the policy grants it; None: so many that a busy machine loses none.
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
        """Build candidates (``worker.AHEAD`` of them at most), with a compiler on every core. One that takes the process with it spoils
        itself alone: they are then built one by one."""
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

    def burst(self, schedule: str, seconds: float, expected: float) -> tuple[float, ...] | None:
        """Return the fastest sample (``records.SAMPLE``) of a finalist in a burst of so many seconds; None where it fails.

        Args:
            expected: seconds that one run takes.
        """
        cold = self.policy.is_cold
        batch, batches = burst_size(seconds, expected, cold)
        limit = _GRACE_SECONDS + 100 * (batch * batches + 1) * expected
        try:
            with self._in_turn():
                reply = self._ask(limit, "burst", schedule=schedule, batch=batch, batches=batches, cold=cold)
        except Lost:
            return None
        return tuple(reply["sample"]) if reply["status"] == "ok" else None

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
        """Return the turn to wait for, but only for a part of the time that is left: what is measured beside others counts less, and no
        measurement at all counts nothing."""
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
        operands = self._folder / "operands"  # may lie in memory: there only while they are handed over
        try:
            operands.mkdir()
            handover.save(operands, problem.operands)
            self._in_time(_LOAD_SECONDS, "load", folder=str(self._folder), task=task)
        except Lost as lost:
            raise TuningError(f"the measuring process does not start: {lost.message}") from None
        finally:
            shutil.rmtree(operands, ignore_errors=True)
        self._loaded = self._worker.starts
