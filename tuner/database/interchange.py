"""Records as text: JSON Lines, our own form, both ways; T4 results and Kernel Tuner caches for other tools to read.

T4: the auto-tuning community's format (Kernel Tuner, ``schema/T4/1.0.0``). Kernel Tuner's cache: what its dashboard and its
simulation mode read.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...compiler.errors import DatabaseError
from ...compiler.warn import warn
from ..records import Measurement, Record, Status, to_json
from .gate import IGNORED, from_json, read_json, told

if TYPE_CHECKING:
    from .store import Database

T4_INVALIDITY = {
    Status.OK: "correct",
    Status.ILLEGAL: "constraints",
    Status.COMPILE: "compile",
    Status.CRASH: "runtime",
    Status.TIMEOUT: "timeout",
    Status.WRONG: "correctness",
}
_KERNEL_TUNER_FAILURE = {
    Status.ILLEGAL: "InvalidConfig",
    Status.COMPILE: "CompilationFailedConfig",
    Status.CRASH: "RuntimeFailedConfig",
    Status.TIMEOUT: "RuntimeFailedConfig",
    Status.WRONG: "RuntimeFailedConfig",
}
_BATCH = 500  # records that one transaction of an import adds


def write_json_lines(records: Iterable[Record], stream: IO[str]) -> int:
    """Write one record a line; return how many."""
    count = 0
    for record in records:
        stream.write(json.dumps(to_json(record)) + "\n")
        count += 1
    return count


CSV_COLUMNS = (
    "record", "created", "kernel", "formats", "dtype", "semiring", "target", "threads", "machine", "input", "extents", "campaign", "role",
    "schedule", "status", "seconds", "low", "high", "disturbed", "origin", "default_seconds", "build_seconds", "compiler", "flags",
    "generator", "message",
)  # fmt: skip


def write_csv(records: Iterable[Record], stream: IO[str]) -> int:
    """Write one record a row, below a head of ``CSV_COLUMNS``; return how many. Cells of fields that a record lacks are empty."""
    writer = csv.DictWriter(stream, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    count = 0
    for record in records:
        found = to_json(record)
        row = {**found, "kernel": found["expression"], "input": found["input"]["name"] or found["input"]["pattern"]}
        row["extents"] = " ".join(f"{index}={extent}" for index, extent in record.input.extents)
        writer.writerow({name: row.get(name) for name in CSV_COLUMNS})
        count += 1
    return count


def read_json_lines(
    path: Path, tell: Callable[[str], None] = warn, like: Mapping[str, object] | None = None, judged: bool = True
) -> Iterator[Record]:
    """Yield the records of a file; a line that holds none, such as a last line cut short by a crash, is reported by its number.

    Args:
        path: of the file.
        tell: called with each message.
        like: values that some fields must have; other records are skipped, which is far quicker than checking them.
        judged: as of ``from_json``.

    Raises:
        DatabaseError: the file cannot be read.
    """
    return told(_read_lines(path, like or {}, judged), tell)


def _read_lines(path: Path, like: Mapping[str, object], judged: bool) -> Iterator[Record | str]:
    """Yield the record of every line whose fields have the values of ``like``, or a message where a line holds none."""
    wanted = [json.dumps(value).encode() for value in like.values() if isinstance(value, str)]
    for number, line in enumerate(_lines(path), 1):
        if line.strip() and all(text in line for text in wanted):
            try:
                found = read_json(line.decode("utf-8", "surrogateescape"))
                if not isinstance(found, Mapping) or all(found.get(name) == value for name, value in like.items()):
                    yield from_json(found, judged)
            except DatabaseError as error:
                yield f"{path}, line {number}: {error}"


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists() and not path.is_file():
        raise DatabaseError(f"cannot read {path}: it is no regular file")
    try:
        with path.open("rb") as stream:
            yield from stream
    except OSError as error:
        raise DatabaseError(f"cannot read {path}: {error.strerror or error}") from None


def import_json_lines(database: Database, path: Path, tell: Callable[[str], None] = warn) -> tuple[int, int]:
    """Add the records of a file; those that the database has already stay as they are. Return how many were read, and how many were new.

    Raises:
        DatabaseError: the file cannot be read or holds no record, or the database cannot be written.
    """
    bad: list[str] = []
    count = new = 0
    records = read_json_lines(path, bad.append)
    while batch := list(islice(records, _BATCH)):
        new += database.add(*batch)
        count += len(batch)
    if bad and not count:
        raise DatabaseError(f"{bad[0].removesuffix(IGNORED)}; a file of 'tune-kernel db export' is expected")
    for line in bad:
        tell(line)
    return count, new


def t4_results(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """Return a T4 results document, schema 1.0.0; times are in milliseconds. Kernel Tuner's own key names stand beside the schema's."""
    return {"schema_version": "1.0.0", "results": [_t4_result(measurement) for measurement in measurements]}


def t4_metadata(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """Return the T4 metadata document that belongs to results, schema 1.0.0: the machines and environments behind them."""
    environments = {measurement.workload.machine: dict(measurement.environment) for measurement in measurements}
    hardware = [{"machine": machine, "processor": str(found.get("processor", "unknown"))} for machine, found in environments.items()]
    described = {"hardware": {"hardware_description": hardware}, "environment": {"device_query": environments, "requirements": []}}
    return {"schema_version": "1.0.0", "metadata": described}


def kernel_tuner_cache(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """Return the measurements of one workload on one input as a Kernel Tuner cache, schema 1.1.0; times are in milliseconds.

    Raises:
        DatabaseError: there are none, or they belong to several workloads or inputs.
    """
    chosen = list(measurements)
    if len({(measurement.workload.key, measurement.input.key) for measurement in chosen}) != 1:
        raise DatabaseError("a Kernel Tuner cache holds one kernel on one input; choose one, or export into a folder")
    workload, entry = chosen[0].workload, chosen[0].input
    schedules = list(dict.fromkeys(measurement.schedule for measurement in chosen))
    return {
        "schema_version": "1.1.0",
        "device_name": str(chosen[0].environment.get("processor", workload.machine)),
        "kernel_name": workload.kernel,
        "problem_size": [extent for _, extent in entry.extents],
        "tune_params_keys": ["schedule"],
        "tune_params": {"schedule": schedules},
        "objective": "time",
        "cache": {measurement.schedule: _kernel_tuner_entry(measurement) for measurement in chosen},
    }


def _t4_result(measurement: Measurement) -> dict[str, Any]:
    runtimes = [1000 * seconds for seconds in measurement.times]
    build = 1000 * (measurement.build_seconds or 0.0)
    correct = measurement.status is Status.OK
    times = {"compilation_time": build, "compilation": build, "runtimes": runtimes}
    times |= {"framework": 0.0, "search_algorithm": 0.0, "validation": 0.0}
    found = [] if measurement.seconds is None else [{"name": "time", "value": 1000 * measurement.seconds, "unit": "ms"}]
    return {
        "timestamp": measurement.created,
        "configuration": {"kernel": measurement.workload.kernel, "threads": measurement.workload.threads, "schedule": measurement.schedule},
        "times": times,
        "invalidity": T4_INVALIDITY[measurement.status],
        "correctness": 1.0 if correct else 0.0,
        "measurements": found,
        "objectives": ["time"],
    }


def _kernel_tuner_entry(measurement: Measurement) -> dict[str, Any]:
    time: float | str = _KERNEL_TUNER_FAILURE[measurement.status] if measurement.seconds is None else 1000 * measurement.seconds
    return {
        "schedule": measurement.schedule,
        "time": time,
        "times": [1000 * seconds for seconds in measurement.times],
        "compile_time": 1000 * (measurement.build_seconds or 0.0),
        "verification_time": 0,
        "benchmark_time": 1000 * sum(measurement.times),
        "strategy_time": 0,
        "framework_time": 0,
        "timestamp": measurement.created,
    }
