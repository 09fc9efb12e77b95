"""Outcomes of building a candidate, and of measuring it beside a rival, as measuring processes, helpers and campaigns pass them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ..records import Status
from .policy import Policy
from .sampling import Sample


@dataclass(frozen=True)
class Built:
    """Outcome of compiling a candidate; ``source`` is the digest of the generated code, empty where there is none."""

    status: Status
    source: str = ""
    seconds: float | None = None
    compiler: str = ""
    flags: str = ""
    message: str = ""


SLOWER = 1.1
"""The machine counts as slowed if the rival takes this many times its own measured time. Beside a candidate the rival has fewer samples, so
its fastest one is a little longer anyway."""


@dataclass(frozen=True)
class Rival:
    """What a candidate is timed in turn with: the best schedule so far.

    Attributes:
        schedule: its text.
        seconds: the time it took when it was measured itself.
        disturbed: whether that time was disturbed. If so, it does not tell whether the machine is slower now.
    """

    schedule: str
    seconds: float
    disturbed: bool = False


@dataclass(frozen=True)
class Measured:
    """Outcome of running a candidate.

    Attributes:
        seconds: of the fastest undisturbed run; in a disturbed window, see ``from_reply``.
        low, high: around ``seconds``, see ``records.Measurement``.
        samples: a row each, in order, with the figures of ``records.SAMPLE``.
        disturbed: whether all its times were disturbed, so that ``seconds`` come from the ratio to the rival (``timing.Timing``).
        policy: how it was timed.
        stopped: why it was not run more often.
        conversion: the part of ``seconds`` that converting the operands takes, as every call does that is not bound.
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
    conversion: float = 0.0

    @property
    def times(self) -> tuple[float, ...]:
        """The seconds a run of every sample."""
        return tuple(row[0] for row in self.samples)

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any], rival: Rival | None, policy: Policy) -> Self:
        """Return the outcome in a worker's reply.

        If all its samples were disturbed, its time is the rival's time times the ratio of the two, but no less than the processor time of
        its threads: while others keep the cores, several threads are no faster than one, so the ratio would flatter one of one thread.

        If the rival took longer than when it was measured itself, something slowed the machine that no counter shows, such as other
        programs on the same memory. The time comes from the ratio then too, and the processor time is reduced by as much as the rival
        was slowed.
        """
        status, message = Status(reply["status"]), reply.get("message", "")
        if status is not Status.OK:
            return cls(status, message=message)
        samples = tuple(tuple(row) for row in reply["samples"])
        seconds, (low, high), slower = reply["seconds"], reply["interval"], _slower(reply, rival)
        disturbed = reply["disturbed"] or slower > 1
        if disturbed and rival is not None and reply["ratio"] is not None:
            alone = min(Sample.from_row(row).least for row in samples) / slower
            seconds, low, high = (max(alone, ratio * rival.seconds) for ratio in (reply["ratio"], *reply["ratio_interval"]))
        return cls(status, seconds, low, high, samples, disturbed, policy.as_dict(), reply["stopped"], message, reply["conversion"])


def _slower(reply: Mapping[str, Any], rival: Rival | None) -> float:
    """Return how many times its own measured time the rival took beside a candidate; 1 if that is at most ``SLOWER``, or not known."""
    if rival is None or rival.disturbed or reply["rival_least"] is None:
        return 1.0
    slower = reply["rival_least"] / rival.seconds
    return slower if slower > SLOWER else 1.0
