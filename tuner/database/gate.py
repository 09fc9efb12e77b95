"""The gate of the database: only records with a meaning go in and come out; any other is refused with one line that says why.

Files of records come from other people, are edited by hand, and were written by other versions. So every field is checked, on the
way in (``interchange``) and on the way out (``store``): its type, its range, that times are finite and positive, and that the
schedule parses and, where it is said to have run, is legal for the expression.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...compiler.concrete.given import SEMIRINGS
from ...compiler.errors import DatabaseError
from ..match import TARGETS
from ..records import SAMPLE, SAMPLE_LENGTHS, SCHEMA_VERSION, Decision, Input, Measurement, Record, Status, Workload, semiring_text
from . import fields

SECONDS = (1e-9, 1e7)
"""Fewest and most seconds of a run that a record may have: shorter runs cannot be measured, longer ones are not waited for."""

IGNORED = "; it is ignored"
MOST_TOLD = 20
"""Most records without meaning that are named one by one; the others are counted in one line."""

_seconds = fields.number(*SECONDS, "a number of seconds")
_ratio = fields.number(1e-9, 1e9)
_amount = fields.number(0, 1e9)
_FIGURES = {"seconds": _seconds, "others": fields.number(-1e9, 1e9)}  # of a sample; differences of counters may be negative


def sample(value: Any) -> tuple[float, ...]:
    """Check for the figures of ``records.SAMPLE``; the last ones may be missing, or all but the seconds."""
    if not isinstance(value, (list, tuple)):
        return (_seconds(value),)
    if len(value) not in SAMPLE_LENGTHS:
        raise fields.Unfit(f"a list of samples of {len(SAMPLE)} numbers")
    return tuple(_FIGURES.get(name, _amount)(figure) for name, figure in zip(SAMPLE, value, strict=False))


_WORKLOAD: dict[str, fields.Check] = {
    "machine": fields.text(empty=False),
    "kernel": fields.text(fields.TEXT_LETTERS, empty=False),
    "formats": fields.text(fields.TEXT_LETTERS, empty=False),
    "dtype": fields.text(fields.TEXT_LETTERS, empty=False),
    "target": fields.one_of(TARGETS),
    "threads": fields.whole(1, 2**20),
    "semiring": fields.one_of([semiring_text(pair) for pair in sorted(SEMIRINGS)]),
}
_INPUT: dict[str, fields.Check] = {
    "extents": fields.pairs_of(fields.whole(0, fields.LARGEST)),
    "features": fields.pairs_of(fields.number(-1e4, 1e4)),
    "pattern": fields.text(),
    "name": fields.text(fields.TEXT_LETTERS, plain=False),
}
_COMMON: dict[str, fields.Check] = {
    "workload": lambda value: Workload(**fields.read_fields(value, Workload, _WORKLOAD)),
    "input": lambda value: Input(**fields.read_fields(value, Input, _INPUT, "input.")),
    "campaign": fields.text(),
    "schedule": fields.text(fields.TEXT_LETTERS),
    "environment": fields.facts,
    "code": fields.text(),
    "created": fields.moment,
}
_MEASUREMENT: dict[str, fields.Check] = _COMMON | {
    "role": fields.one_of(("default", "trial", "final", "night")),
    "status": lambda value: Status(fields.one_of([status.value for status in Status])(value)),
    "seconds": fields.optional(_seconds),
    "low": fields.optional(_seconds),
    "high": fields.optional(_seconds),
    "samples": fields.list_of(sample),
    "disturbed": fields.truth,
    "origin": fields.text(),
    "parameters": fields.facts,
    "compiler": fields.text(),
    "flags": fields.text(fields.TEXT_LETTERS),
    "message": fields.text(fields.TEXT_LETTERS, plain=False),
    "source": fields.text(),
    "build_seconds": fields.optional(_amount),
    "policy": fields.facts,
    "load": fields.optional(_amount),
}
_DECISION: dict[str, fields.Check] = _COMMON | {
    "seconds": _seconds,
    "default_seconds": _seconds,
    "speedup_low": _ratio,
    "speedup_high": _ratio,
    "ties": fields.list_of(fields.text(fields.TEXT_LETTERS)),
    "policy": fields.facts,
    "compiler": fields.text(),
    "flags": fields.text(fields.TEXT_LETTERS),
}


def told(found: Iterable[Any], tell: Callable[[str], None]) -> Iterator[Any]:
    """Yield the records of a mixed series, and report the lines that stand in it for records without meaning, only the first of many.

    Args:
        found: records, and lines that say why something is no record.
        tell: called with each line to report.
    """
    ignored = 0
    for item in found:
        if not isinstance(item, str):
            yield item
            continue
        ignored += 1
        if ignored <= MOST_TOLD:
            tell(item + IGNORED)
    if ignored > MOST_TOLD:
        tell(f"{ignored - MOST_TOLD} more are ignored")


def read_json(text: object) -> Any:
    """Return what a JSON text means.

    Raises:
        DatabaseError: the text is not JSON, is nested too deeply, or holds numbers that are too long.
    """
    if not isinstance(text, str):
        raise DatabaseError(f"not a JSON text but {fields.shown(text)}")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DatabaseError(f"not JSON ({error.msg}, column {error.pos + 1})") from None
    except ValueError:
        raise DatabaseError("not JSON that can be read: a number has too many digits") from None
    except RecursionError:
        raise DatabaseError("not JSON that can be read: it is nested too deeply") from None


def from_json(line: object, judged: bool = True) -> Record:
    """Return the record that a JSON object holds.

    Args:
        line: the object.
        judged: whether to check that its kernel has a meaning, and that its schedule has one and is legal if it ran. That takes long, so
            readers that use few of many records, all of a kernel that they know, leave it to the use.

    Raises:
        DatabaseError: the object is no record, one of a newer version, or one of its fields has no meaning.
    """
    if not isinstance(line, Mapping):
        raise DatabaseError(f"{fields.shown(line)} is no record, which is a JSON object with the keys schema and record")
    version: Any = line.get("schema")
    if not fields.is_whole(version) or not 1 <= version <= SCHEMA_VERSION:
        asked = fields.shown(version)
        raise DatabaseError(f"a record of schema {asked}: this version reads schemas up to {SCHEMA_VERSION}; upgrade sparsetune")
    kind = line.get("record")
    rest = _nested({name: value for name, value in line.items() if name not in ("schema", "record")}, version)
    if kind == "measurement":
        record: Record = Measurement(**fields.read_fields(rest, Measurement, _MEASUREMENT))
    elif kind == "decision":
        record = Decision(**fields.read_fields(rest, Decision, _DECISION))
    else:
        raise DatabaseError(f"a record of kind {fields.shown(kind)}: kinds are measurement and decision")
    if fault := _whole_fault(record, judged):
        raise DatabaseError(fault)
    return record


_WORKLOAD_NAMES = {"expression": "kernel", **{name: name for name in ("machine", "formats", "dtype", "target", "threads", "semiring")}}


def _nested(line: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the fields of a line of any version under the names of ``records``; each is checked later."""
    if version == 1:
        return {"samples" if name == "times" else name: value for name, value in line.items()}
    names = {"generator": "code"}
    workload = {_WORKLOAD_NAMES[name]: value for name, value in line.items() if name in _WORKLOAD_NAMES}
    rest = {names.get(name, name): value for name, value in line.items() if name not in _WORKLOAD_NAMES}
    return {**rest, "workload": workload}


def _whole_fault(record: Record, judged: bool) -> str | None:
    """Return what is wrong with a record whose fields are each valid; None if nothing is."""
    return _figures_fault(record) or (_meaning_fault(record) if judged else None)


def _figures_fault(record: Record) -> str | None:
    if isinstance(record, Decision):
        if record.speedup_low > record.speedup_high:
            return f"speedup_low {record.speedup_low:g} is larger than speedup_high {record.speedup_high:g}"
        return None
    if (record.seconds is None) == (record.status is Status.OK):
        return f"seconds is {record.seconds}, but status is {record.status}"
    if record.low is not None and record.high is not None and record.low > record.high:
        return f"low {record.low:g} is larger than high {record.high:g}"
    return None


def _meaning_fault(record: Record) -> str | None:
    from .legality import kernel_fault, schedule_fault  # of which a first lookup, that judges no record, needs nothing

    workload, extents = record.workload, record.input.extents
    ran = isinstance(record, Decision) or record.status is Status.OK
    return kernel_fault(workload, tuple(name for name, _ in extents)) or schedule_fault(workload, extents, record.schedule, ran)
