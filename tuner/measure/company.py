"""Company: what else the machine did while something was timed.

A time says little if threads waited for a core, if the hypervisor or a quota took cores away, or if other processes ran at the same time.
The system counts all of that. The counters are read before and after each sample, outside of what is timed; they are kept with the sample
and decide whether it counts (``timing``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Protocol

_WAITED = 0.05  # share of a sample that threads may wait for cores before it counts as disturbed
_LEAST_WAIT = 5e-5  # seconds of waiting that never count: on an idle machine too, woken threads wait that long
_STOLEN = 0.02  # share of a sample, on each core, that may be taken away before it counts as disturbed
_CROWD = 0.5  # cores that others keep busy from which on samples are crowded
_TICK = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
_UNSURE = 3 * _TICK  # seconds of others' work that may be an error of counting in ticks


@dataclass(frozen=True)
class Company:
    """What disturbed one sample, in seconds summed over threads or cores.

    Attributes:
        seconds: how long the sample was.
        waited: threads of this process were ready to run and had no core.
        stolen: the hypervisor gave the cores to other machines.
        throttled: the quota of a control group or the heat of a core held this process back.
        others: other processes ran: the busy time of all cores less that of this process. The system counts both in ticks, so that in one
            sample it is up to a tick a core too large or too small, and may be negative; over many samples that evens out.
        load: threads of the whole machine, without the one that asks, that ran or were ready to run at the end of the sample.
        lacked: threads that parallel loops did without, since other programs had their cores then or shortly before.
    """

    seconds: float
    waited: float = 0.0
    stolen: float = 0.0
    throttled: float = 0.0
    others: float = 0.0
    load: float = 0.0
    lacked: float = 0.0

    @property
    def disturbed(self) -> bool:
        """Whether the sample is longer than it would have been alone."""
        waited = self.waited > max(_WAITED * self.seconds, _LEAST_WAIT)
        stolen = self.stolen > max(_STOLEN * self.seconds, _TICK)
        return waited or stolen or self.throttled > 0 or self.lacked > 0

    def as_row(self) -> list[float]:
        """Return the figures that are recorded with a sample, in the order of ``records.SAMPLE``."""
        return list(astuple(self))

    def within(self, seconds: float) -> Company:
        """Return the company of the part of a sample that was timed: so long, in one piece.

        Reading the counters takes time too. If the process lost its core only while reading them, the timed part is as fast as without
        company: a short run fits between two turns of other processes.
        """
        return replace(self, waited=max(0.0, self.waited - max(0.0, self.seconds - seconds)))

    def missing(self, idle: float) -> Company:
        """Return the company of a sample in which no thread of this process worked for so many seconds.

        Threads wait for each other, but not for long. A process that is stopped neither runs nor waits for a core, so that no counter shows
        it: what is missing beyond a tick, by which counts of processor time may be wrong, is waiting too.
        """
        stopped = idle - self.waited
        return replace(self, waited=idle) if stopped > _TICK else self


def share_of_others(found: Sequence[Company]) -> float:
    """Return how many cores other processes kept busy over several samples; 0 if these are too few and short for ticks to tell."""
    seconds = sum(company.seconds for company in found)
    return max(0.0, sum(company.others for company in found) - _UNSURE) / seconds if seconds > 0 else 0.0


def crowded(found: Sequence[Company]) -> bool:
    """Return whether others kept half a core busy over several samples, so that they shared memory and caches all the time."""
    return share_of_others(found) > _CROWD


@dataclass(frozen=True)
class Look:
    """The counters at one moment, in seconds, as in ``Company``; ``busy`` is of all cores, ``own`` of this process. ``alone`` counts calls
    that ran on one thread although they had work for several."""

    clock: float
    waited: float = 0.0
    stolen: float = 0.0
    throttled: float = 0.0
    busy: float = 0.0
    own: float = 0.0
    alone: int = 0


class Team(Protocol):
    """Reports on the threads that parallel loops run on (``compiler.native.team``)."""

    def alone_calls(self) -> int:
        """Return how many calls of parallel loops so far worked on one thread because other programs had the cores."""
        ...

    def workers(self) -> int:
        """Return how many threads the team has, without the calling ones."""
        ...

    def gather(self) -> None:
        """Let the next calls use all threads again."""
        ...


class Witness:
    """Reads the counters of Linux and of a team of threads; the figure of a counter that does not exist is 0."""

    def __init__(self, team: Team | None = None) -> None:
        self._team = team
        self._throttles = tuple(_throttle_files())

    def begin(self) -> Look:
        """Return the counters before a sample, and give loops back all their threads: after a disturbance they run on one thread for a
        while, which says nothing about the next sample."""
        if self._team is not None:
            self._team.gather()
        return self.look()

    def look(self) -> Look:
        """Return the counters now; this takes some tens of microseconds a thread."""
        busy, stolen = _machine_times()
        throttled, alone = sum(map(_throttled, self._throttles)), 0 if self._team is None else self._team.alone_calls()
        return Look(time.perf_counter(), _waited(), stolen, throttled, busy, time.process_time(), alone)

    def worked(self) -> float:
        """Return the processor time of this process in seconds."""
        return time.process_time()

    def since(self, before: Look) -> Company:
        """Return what happened since an earlier look."""
        now = self.look()
        others = (now.busy - before.busy) - (now.own - before.own)
        return Company(
            now.clock - before.clock, max(0.0, now.waited - before.waited), now.stolen - before.stolen,
            now.throttled - before.throttled, others, _ready(),
            float(self._team.workers()) if self._team is not None and now.alone > before.alone else 0.0,
        )  # fmt: skip


class Alone:
    """Stands in for a ``Witness`` on a machine without other work, for tests with clocks of their own."""

    def begin(self) -> Look:
        return Look(0.0)

    def worked(self) -> float:
        return 0.0

    def since(self, before: Look) -> Company:
        return Company(0.0)


def _waited() -> float:
    """Return the seconds that the threads of this process were ready to run and waited for a core."""
    total = 0
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return 0.0
    for thread in threads:
        fields = _read(f"/proc/self/task/{thread}/schedstat").split()
        total += int(fields[1]) if len(fields) > 1 else 0
    return total * 1e-9


def _machine_times() -> tuple[float, float]:
    """Return the seconds that all cores were busy, and those that the hypervisor took (proc(5), /proc/stat)."""
    fields = _read("/proc/stat").partition("\n")[0].split()[1:9]
    if len(fields) < 8:
        return 0.0, 0.0
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = (int(field) * _TICK for field in fields)
    return user + nice + system + interrupts + soft, stolen


def _ready() -> float:
    """Return how many threads of the machine run or are ready to run, without this one (proc(5), /proc/loadavg)."""
    ready = _read("/proc/loadavg").split()[3:4]
    return float(max(0, int(ready[0].partition("/")[0]) - 1)) if ready else 0.0


def _throttle_files() -> Iterator[Path]:
    """Yield the files that count how long this process was held back by its control group (both versions) or by the heat of cores."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        roots = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if not controllers else ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
        if not controllers or "cpu" in controllers.split(","):
            yield from (file for root in roots if (file := Path(root + path) / "cpu.stat").exists())
    yield from sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_total_time_ms"))


def _throttled(path: Path) -> float:
    """Return the seconds that a file of ``_throttle_files`` counts."""
    text = _read(str(path)).split()
    if path.name != "cpu.stat":
        return float(text[0]) * 1e-3 if text else 0.0
    counts = dict(zip(text[::2], text[1::2], strict=False))
    return int(counts["throttled_usec"]) * 1e-6 if "throttled_usec" in counts else int(counts.get("throttled_time", 0)) * 1e-9


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
