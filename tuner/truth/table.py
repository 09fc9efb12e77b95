"""The file of a truth table: one JSON object, which ``results/truth/README.md`` describes so that one can be written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from ...compiler.errors import DatabaseError, DataError, ExpressionError, ScheduleError
from ...compiler.frozen import frozen
from ...compiler.notation.parser import parse
from ...compiler.schedule.schedule import Schedule
from ..database import fields
from ..database.gate import SECONDS, read_json, sample
from ..match import TARGETS
from ..records import USUAL_SEMIRING, Status
from ..written import write_whole

TABLE_SCHEMA = 1
ORIGINS = ("default", "space", "library")


@frozen(kw_only=True)
class TablePoint:
    """One schedule and its measurement.

    Attributes:
        schedule: text; empty is the default schedule.
        seconds: of its fastest run; None where it failed.
        status: ok, illegal, compile, crash, timeout, wrong.
        low, high, samples, disturbed: as in ``records.Measurement``.
        origin: one of ``ORIGINS``.
        source: digest of the generated code; equal code was measured once.
        build_seconds: of code generation and C compilation.
        expected: operations by the static model, which ranks what is tried first; None: nothing is known.
    """

    schedule: str
    seconds: float | None = None
    status: Status = Status.OK
    low: float | None = None
    high: float | None = None
    samples: tuple[tuple[float, ...], ...] = ()
    disturbed: bool = False
    origin: str = "space"
    source: str = ""
    build_seconds: float | None = None
    expected: float | None = None


@frozen(kw_only=True)
class TruthTable:
    """Points of one kernel on one input, the default schedule among them.

    Attributes:
        expression: index notation; schedules use its names.
        input: what it ran on, in words.
        machine, processor: fingerprint of the machine, and name of its processor.
        commit, generator: the version of sparsetune that measured.
        seed, space: seed of the draws, and how many points there are to draw from.
        policy: how points were timed.
    """

    expression: str
    points: tuple[TablePoint, ...]
    input: str = ""
    formats: str = ""
    dtype: str = ""
    target: str = "cpu"
    threads: int = 1
    semiring: str = USUAL_SEMIRING
    machine: str = ""
    processor: str = ""
    commit: str = ""
    generator: str = ""
    created: str = ""
    seed: int = 0
    space: int | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)

    @property
    def default(self) -> TablePoint:
        """The point of the default schedule, whose text is empty."""
        return next(point for point in self.points if not point.schedule)

    @property
    def best(self) -> TablePoint:
        """The fastest point."""
        return min((point for point in self.points if point.seconds is not None), key=lambda point: point.seconds or 0.0)

    def share_within(self, factor: float) -> float:
        """Return the share of points of distinct code, failed ones too, that take no longer than so many times the best."""
        distinct = list({point.source or point.schedule: point for point in self.points}.values())
        most = factor * (self.best.seconds or 0.0)
        return sum(point.seconds is not None and point.seconds <= most for point in distinct) / len(distinct)


_seconds = fields.optional(fields.number(*SECONDS, "a number of seconds"))

_POINT: dict[str, fields.Check] = {
    "schedule": fields.text(fields.TEXT_LETTERS),
    "seconds": _seconds,
    "status": lambda value: Status(fields.one_of([status.value for status in Status])(value)),
    "low": _seconds,
    "high": _seconds,
    "samples": fields.list_of(sample),
    "disturbed": fields.truth,
    "origin": fields.one_of(ORIGINS),
    "source": fields.text(),
    "build_seconds": fields.optional(fields.number(0, 1e9)),
    "expected": fields.optional(fields.number(0, 1e300)),
}
_TABLE: dict[str, fields.Check] = {
    "expression": fields.text(fields.TEXT_LETTERS, empty=False),
    "points": fields.list_of(lambda value: TablePoint(**fields.read_fields(value, TablePoint, _POINT, "point."))),
    **{name: fields.text(fields.TEXT_LETTERS, plain=False) for name in ("input", "formats", "dtype", "processor", "commit", "generator")},
    "target": fields.one_of(TARGETS),
    "threads": fields.whole(1, 2**20),
    "semiring": fields.text(empty=False),
    "machine": fields.text(),
    "created": fields.text(40),
    "seed": fields.whole(0, 2**32 - 1),
    "space": fields.optional(fields.whole(0, fields.LARGEST)),
    "policy": fields.facts,
}


def read_table(path: Path) -> TruthTable:
    """Read a truth table.

    Raises:
        DataError: the file cannot be read, or is no truth table; the message says what is wrong with it.
    """
    try:
        content = read_json(path.read_text(encoding="utf-8"))
        if not isinstance(content, Mapping):
            raise DatabaseError(f"{fields.shown(content)}, where an object is expected")
        schema = content.get("schema", TABLE_SCHEMA)
        if not fields.is_whole(schema) or not 1 <= schema <= TABLE_SCHEMA:
            raise DatabaseError(f"a table of schema {fields.shown(schema)}: this version reads {TABLE_SCHEMA}; upgrade sparsetune")
        rest = {name: value for name, value in content.items() if name != "schema"}
        return _checked(TruthTable(**fields.read_fields(rest, TruthTable, _TABLE)))
    except OSError as error:
        raise DataError(f"cannot read the truth table {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is no truth table: it is no text") from None
    except (DatabaseError, ExpressionError) as error:
        raise DataError(f"{path} is no truth table: {str(error).splitlines()[0]}") from None


def write_table(path: Path, table: TruthTable) -> None:
    """Write a truth table, a line a point.

    Raises:
        DataError: the file cannot be written.
    """
    head = {"schema": TABLE_SCHEMA, **{name: value for name, value in asdict(table).items() if name != "points"}}
    lines = ",\n".join("  " + json.dumps(_without_defaults(point), separators=(",", ":")) for point in table.points)
    text = json.dumps(head, indent=1)[:-2] + f',\n "points": [\n{lines}\n ]\n}}\n'
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise DataError(f"cannot write the truth table {path}: {error.strerror or error}") from None


def _without_defaults(point: TablePoint) -> dict[str, Any]:
    usual = asdict(TablePoint(schedule=""))
    told = {name: value for name, value in asdict(point).items() if name == "schedule" or value != usual[name]}
    if point.samples:
        told["samples"] = [[int(figure) if figure.is_integer() else figure for figure in map(float, sample)] for sample in point.samples]
    return told


def _checked(table: TruthTable) -> TruthTable:
    """Return a table with normal schedules. Raises ``DatabaseError`` where it does not make sense as a whole."""
    parse(table.expression)
    points: dict[str, TablePoint] = {}
    for number, point in enumerate(table.points, 1):
        try:
            text = str(Schedule(point.schedule))
        except ScheduleError as error:
            raise DatabaseError(f"point {number}: {error}") from None
        if text in points:
            raise DatabaseError(f"point {number}: the schedule '{text}' has a point already")
        if (point.seconds is None) == (point.status is Status.OK):
            raise DatabaseError(f"point {number}: seconds is {point.seconds}, but status is {point.status}")
        points[text] = replace(point, schedule=text)
    if "" not in points or points[""].seconds is None:
        raise DatabaseError('it lacks the default schedule: a point with "schedule": "" and its seconds')
    return replace(table, points=tuple(points.values()))


Tell = Callable[[int, int], None]
"""A function that is told how many points there are, and how many are wanted."""
