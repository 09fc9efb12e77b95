"""What the schedule database holds, as values: workloads, inputs, measurements and decisions, with their JSON form.

A *workload* is what a schedule is good for, an *input* on which it was run, a *measurement* one schedule run on one input,
a *decision* the outcome of one tuning campaign. Records are only ever added. Every text in them is canonical
(``compiler.notation.canonical``): names of operands and indices do not matter. ``database.gate`` checks which of them
are believed. This module is on the run-time path and imports the standard library alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from ..compiler.frozen import frozen

SCHEMA_VERSION = 3
"""Version of the tables and of the JSON lines; newer ones are refused, older ones are read."""

SAMPLE = ("seconds", "length", "waited", "stolen", "throttled", "others", "load", "lacked", "worked", "threads")
"""The figures of a sample: seconds a run, seconds of the whole sample, its company (``measure.company``), processor time a run, and how
many threads were to share it. Older samples lack the last two or three, and those of schema 1 have the first alone."""

SAMPLE_LENGTHS = (1, len(SAMPLE) - 3, len(SAMPLE) - 2, len(SAMPLE))
"""How many figures a sample may have."""


SEPARATOR = " | "
"""Separates the formats of a workload, and its dtypes."""

USUAL_SEMIRING = "+,*"
"""The semiring of records that are older than the choice of semirings."""


class Status(StrEnum):
    """How a trial ended."""

    OK = "ok"
    ILLEGAL = "illegal"  # a directive's precondition does not hold
    COMPILE = "compile"  # the C compiler failed or took too long
    CRASH = "crash"  # the process that ran it died
    TIMEOUT = "timeout"  # it ran past its limit
    WRONG = "wrong"  # its result differs from the reference result


def semiring_text(pair: tuple[str, str]) -> str:
    """Return (add, multiply) as records have it, ``min,+``."""
    return ",".join(pair)


def edges_text(given: Collection[str], wrapped: Collection[str]) -> tuple[str, ...]:
    """Return the text that follows the formats of a workload with compound subscripts, empty if there is none: ``i0 given, i1 wrap``.

    Args:
        given: canonical indices whose extents the user tells, so that subscripts may lead out of operands.
        wrapped: those at whose ends subscripts wrap.
    """
    words = [*(f"{index} given" for index in sorted(given)), *(f"{index} wrap" for index in sorted(wrapped))]
    return (", ".join(words),) if words else ()


def formats_and_edges(formats: str, tensors: int) -> tuple[list[str], frozenset[str], dict[str, str]]:
    """Parse the formats of a workload with so many tensors: return the formats, the given indices, and the boundary by index."""
    parts = formats.split(SEPARATOR)
    words = [word.split(" ") for part in parts[tensors:] for word in part.split(", ")]
    return (
        parts[:tensors] if all(len(word) == 2 for word in words) else parts,
        frozenset(word[0] for word in words if word[1:] == ["given"]),
        {word[0]: "wrap" for word in words if word[1:] == ["wrap"]},
    )


def digest(*parts: object) -> str:
    """Return 16 hexadecimal digits that depend on every part."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def now() -> str:
    """Return the time as ISO 8601, UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


STOPPED = "default_stopped_after"
"""Key of a decision's environment: seconds after which the default schedule was stopped, if it did not run to its end."""


CONVERSION = "conversion_seconds"
"""Key of a measurement's environment: the part of its seconds that converting the operands takes, if any is converted."""


@frozen
class Workload:
    """Machine, kernel and the way it is called.

    Attributes:
        machine: fingerprint of the machine.
        kernel: canonical expression, such as ``T0(i0) = T1(i0,i1) * T2(i1)``.
        formats: formats of the tensors in canonical order, the result first, separated by `` | ``; then, for compound subscripts, how
            they are read at the edges of operands (``edges_text``).
        dtype: dtypes of the tensors in canonical order, the result first, or one where all are equal.
        target: "cpu" or "cuda".
        threads: exact number of threads.
        semiring: operators of sum and product, such as ``min,+``.
    """

    machine: str
    kernel: str
    formats: str
    dtype: str
    target: str
    threads: int
    semiring: str = USUAL_SEMIRING

    @property
    def key(self) -> str:
        """A digest of all fields, equal for equal workloads."""
        return digest(_as_before(asdict(self)))


@frozen
class Input:
    """Sizes and sparsity of the operands.

    Attributes:
        extents: extent of every canonical index.
        features: numbers that tell inputs apart, see ``tuner.features``; operands have canonical names.
        pattern: digest of a sample of the stored coordinates; equal for equal patterns.
        name: where the data came from, for people; does not take part in comparisons.
    """

    extents: tuple[tuple[str, int], ...]
    features: tuple[tuple[str, float], ...]
    pattern: str
    name: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """A digest of extents and pattern, equal for inputs that records do not tell apart."""
        return digest(self.extents, self.pattern)


@frozen(kw_only=True)
class Measurement:
    """One schedule run on one input.

    Attributes:
        role: "default", "trial", "final" (measured in turn with the other finalists) or "night" (by ``tune-kernel nightly``).
        seconds: of the fastest run; None unless the status is ok. For role final: the median over rounds of such times.
        low, high: seconds between which the fastest tenth of runs ends, at 95% confidence; of a disturbed trial, the interval of
            its ratio to what ran beside it, in seconds. None where it is not known.
        samples: every sample in order, with the figures of ``SAMPLE``. For role final: the fastest of every round.
        disturbed: whether nothing was timed without company, so that ``seconds`` come from ratios to what ran beside.
        origin: who proposed the schedule: "default", "given" (by the user), "untuned" (what is used where nothing was tuned), "known" (of
            similar inputs), "search".
        parameters: the numbers and words that the search chose for the open places of a template, by name.
        compiler, flags: what the kernel was compiled with.
        message: why it failed, in one line.
        source: digest of the generated source; equal sources are measured once.
        policy: how it was timed and judged (``measure.policy.Policy``).
        environment: machine, compiler and settings in words and numbers.
        load: load average a core when it ran.
        code: version of the compiler that generated it.
    """

    workload: Workload
    input: Input
    campaign: str
    role: str
    schedule: str
    status: Status
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    samples: tuple[tuple[float, ...], ...] = ()
    disturbed: bool = False
    origin: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    compiler: str = ""
    flags: str = ""
    message: str = ""
    source: str = ""
    build_seconds: float | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    load: float | None = None
    code: str = ""
    created: str = field(default_factory=now)

    @property
    def times(self) -> tuple[float, ...]:
        """The seconds a run of every sample."""
        return tuple(sample[0] for sample in self.samples)

    @property
    def conversion(self) -> float:
        """The part of ``seconds`` that converting the operands takes."""
        found = self.environment.get(CONVERSION)
        return float(found) if isinstance(found, (int, float)) else 0.0

    @property
    def key(self) -> str:
        """A digest of the record, by which the database tells whether it has it already."""
        return _key(self)


@frozen(kw_only=True)
class Decision:
    """The outcome of one campaign: the schedule to use for its input.

    Attributes:
        schedule: the winner; empty text is the default schedule.
        seconds, default_seconds: medians from the rounds in which finalists ran in turn; of a default that was ended (``default_stopped``)
            the seconds until then.
        speedup_low, speedup_high: 95% interval of the paired ratio default / winner.
        ties: schedules that are not surely slower than the winner, which is the simplest of them.
        policy: how trials were timed and finals judged (``measure.policy.Policy``).
        compiler, flags: what the winner was compiled with.
    """

    workload: Workload
    input: Input
    campaign: str
    schedule: str
    seconds: float
    default_seconds: float
    speedup_low: float
    speedup_high: float
    ties: tuple[str, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    compiler: str = ""
    flags: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    created: str = field(default_factory=now)

    @property
    def speedup(self) -> float:
        """How many times as fast the winner is as the default: the ratio of their medians."""
        return self.default_seconds / self.seconds

    @property
    def default_stopped(self) -> bool:
        """Whether the default schedule was ended before it had run once, so that only a lower bound of its time is known."""
        return STOPPED in self.environment

    @property
    def key(self) -> str:
        """A digest of the record, by which the database tells whether it has it already."""
        return _key(self)


Record = Measurement | Decision


def to_json(record: Record) -> dict[str, Any]:
    """Return a record as one JSON object, the line of an export: the parts of its workload stand beside its own fields."""
    fields = asdict(record)
    workload = fields.pop("workload")
    workload["expression"] = workload.pop("kernel")
    return {"schema": SCHEMA_VERSION, "record": _kind(record), **workload, "generator": fields.pop("code"), **fields}


def _kind(record: Record) -> str:
    return "measurement" if isinstance(record, Measurement) else "decision"


def _as_before(workload: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a workload, leaving out the usual semiring, so that digests stay as they were before there were semirings."""
    return {name: value for name, value in workload.items() if (name, value) != ("semiring", USUAL_SEMIRING)}


_SINCE_SCHEMA_2 = ("low", "high", "disturbed", "origin", "parameters", "compiler", "flags", "ties")


def _key(record: Record) -> str:
    """Return the digest of a record. A record that schema 1 could hold has the digest of schema 1, so that it is never added twice."""
    fields: dict[str, Any] = asdict(record)
    fields["workload"] = _as_before(fields["workload"])
    if isinstance(record, Decision) and not record.policy:
        del fields["policy"]
    if isinstance(record, Measurement) and all(len(sample) == 1 for sample in record.samples):
        del fields["samples"]
        fields["times"] = record.times
    fields = {name: value for name, value in fields.items() if value or name not in _SINCE_SCHEMA_2}
    return digest({"schema": 1, "record": _kind(record), **fields})
