"""Records as JSON Lines, T4 results and Kernel Tuner caches."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import Any

import pytest
from sparsetune.compiler.errors import DatabaseError
from sparsetune.tuner.database import open_database
from sparsetune.tuner.database.gate import MOST_TOLD, from_json
from sparsetune.tuner.database.interchange import (
    import_json_lines,
    kernel_tuner_cache,
    read_json_lines,
    t4_metadata,
    t4_results,
    write_json_lines,
)
from sparsetune.tuner.records import SCHEMA_VERSION, Status, digest, to_json
from tuner_samples import WORKLOAD, decision, measurement

FAILED = measurement(status=Status.TIMEOUT, seconds=None, samples=(), schedule="split(i0, a, b, 2)")


@pytest.mark.parametrize("record", [measurement(), FAILED, decision()])
def test_json_round_trip(record) -> None:
    line = json.loads(json.dumps(to_json(record)))
    assert from_json(line) == record
    assert from_json(line).key == record.key


def test_export_and_import(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with open_database(":memory:") as database:
        database.add(measurement(), FAILED, decision())
        with path.open("w") as stream:
            assert write_json_lines(database.records(), stream) == 3
    with open_database(":memory:") as other:
        assert import_json_lines(other, path) == (3, 3)
        assert import_json_lines(other, path) == (3, 0)
        assert other.stats()["measurements"] == 2
        assert other.stats()["decisions"] == 1


def test_torn_last_line_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    line = json.dumps(to_json(measurement()))
    path.write_text(line + "\n" + line[:50])
    told: list[str] = []
    assert list(read_json_lines(path, told.append)) == [measurement()]
    assert len(told) == 1
    assert "torn.jsonl, line 2: not JSON" in told[0]


FIRST = {
    "schema": 1, "record": "measurement",
    "workload": {"machine": "abcd", "kernel": WORKLOAD.kernel, "formats": WORKLOAD.formats, "dtype": "float64", "target": "cpu",
                 "threads": 2},
    "input": {"extents": [["i0", 100], ["i1", 80]], "features": [["nnz:T1", 10.5], ["extent:i0", 6.64]], "pattern": "feed",
              "name": "HB/494_bus"},
    "campaign": "c1", "role": "trial", "schedule": "parallelize(i0, cpu_thread, no_races)", "status": "ok", "seconds": 0.002,
    "times": [0.002, 0.0021], "message": "", "source": "0123", "build_seconds": 0.2, "policy": {"warm_up": 1},
    "environment": {"processor": "test", "cores": 2}, "load": 0.25, "code": "0.1.0", "created": "2026-11-21T06:00:00.000+00:00",
}  # fmt: skip
"""A line as schema 1 had it; ``tuner_samples.measurement`` without the company of its samples."""


def test_lines_of_schema_1_are_read() -> None:
    found = from_json(FIRST)
    assert found == measurement(samples=((0.002,), (0.0021,)))
    assert found.key == digest(FIRST), "as it was there: an import of old lines adds nothing that has been migrated"
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


def test_lines_hold_what_others_read() -> None:
    line = to_json(measurement(compiler="gcc: 12", flags="-O3"))
    expected = {"expression", "schedule", "seconds", "machine", "threads", "generator", "compiler", "flags", "policy", "samples"}
    assert expected <= line.keys()
    assert (line["expression"], line["machine"], line["generator"], line["compiler"]) == (WORKLOAD.kernel, "abcd", "0.1.0", "gcc: 12")


WITHOUT_SECONDS = {key: value for key, value in to_json(decision()).items() if key != "seconds"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON that can be read: it is nested too deeply"),
        ('{"schema": ' + "1" * 6000 + "}", "line 2: not JSON that can be read: a number has too many digits"),
        ("[]", "line 2: a list is no record"),
        ("\udcff", "line 2: not JSON"),
        ('{"schema": 1, "record": "song"}', "kinds are measurement and decision"),
        (json.dumps(to_json(decision()) | {"schema": SCHEMA_VERSION + 1}), "upgrade sparsetune"),
        (json.dumps(WITHOUT_SECONDS), "seconds is missing"),
        (json.dumps(to_json(measurement()) | {"status": "good"}), "status is 'good', where one of ok, illegal"),
    ],
)
def test_bad_lines_name_file_and_line_and_nothing_else_is_lost(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    good = [json.dumps(to_json(record)) for record in (measurement(), decision())]
    path.write_bytes("\n".join([good[0], line, good[1], ""]).encode(errors="surrogateescape"))
    told: list[str] = []
    with open_database(":memory:") as database:
        assert import_json_lines(database, path, told.append) == (2, 2)
        assert [repr(record) for record in database.records()] == [repr(measurement()), repr(decision())]
    (only,) = told
    assert only.startswith(str(path))
    assert message in only
    assert only.isprintable()


def test_a_file_without_any_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 50)
    with open_database(":memory:") as database:
        with pytest.raises(DatabaseError, match=r"notes.txt, line 1: .*'tune-kernel db export' is expected") as caught:
            import_json_lines(database, path)
        assert "\n" not in str(caught.value)
        path.write_text("")
        assert import_json_lines(database, path) == (0, 0)


def test_of_many_bad_lines_the_first_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(["{"] * 100 + [json.dumps(to_json(measurement()))]))
    told: list[str] = []
    assert list(read_json_lines(path, told.append)) == [measurement()]
    assert len(told) == MOST_TOLD + 1
    assert told[-1] == f"{100 - MOST_TOLD} more are ignored"


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe.jsonl", tmp_path / "zero.jsonl", tmp_path):
        with pytest.raises(DatabaseError, match="no regular file"):
            list(read_json_lines(path))


def test_missing_file() -> None:
    with pytest.raises(DatabaseError, match="No such file"):
        list(read_json_lines(Path("/nowhere/records.jsonl")))


def lacks(document: Any, wanted: Any, place: str = "it") -> list[str]:
    """Return where a document read from JSON differs from what is wanted: types, a list of the type of all items, dictionaries of what
    must be there, sets of allowed values, functions."""
    match wanted:
        case dict():
            missing = [f"{place} lacks {name}" for name in wanted if name not in document]
            there = [name for name in wanted if name in document]
            return missing + [at for name in there for at in lacks(document[name], wanted[name], f"{place}.{name}")]
        case list():
            return [at for number, one in enumerate(document) for at in lacks(one, wanted[0], f"{place}[{number}]")]
        case set():
            return [] if document in wanted else [f"{place} is {document!r}"]
        case _:
            fits = isinstance(document, wanted) if isinstance(wanted, type | UnionType) else wanted(document)
            return [] if fits else [f"{place} is {document!r}"]


NUMBER = int | float
T4_RESULTS = {
    "schema_version": {"1.0.0"},
    "results": [
        {
            "timestamp": str,
            "configuration": dict,
            "objectives": list,
            "times": {"compilation_time": NUMBER, "runtimes": list, "framework": NUMBER, "search_algorithm": NUMBER, "validation": NUMBER},
            "invalidity": {"timeout", "compile", "runtime", "correctness", "constraints", "correct"},
            "correctness": NUMBER,
            "measurements": [{"name": str, "value": NUMBER | str | list, "unit": str}],
        }
    ],
}
"""What schema/T4/1.0.0/results-schema.json of Kernel Tuner says of each key."""

T4_METADATA = {
    "schema_version": {"1.0.0"},
    "metadata": {"hardware": {"hardware_description": list}, "environment": {"device_query": dict, "requirements": list}},
}
"""What metadata-schema.json beside it says."""

KERNEL_TUNER_CACHE = {
    "schema_version": {"1.1.0"},
    "device_name": str,
    "kernel_name": str,
    "problem_size": [int],
    "tune_params_keys": [str],
    "tune_params": {"schedule": list},
    "objective": str,
    "cache": lambda entries: not lacks(list(entries.values()), [KERNEL_TUNER_ENTRY]),
}
KERNEL_TUNER_ENTRY = {
    "time": lambda time: isinstance(time, NUMBER) or time in {"InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig"},
    "times": [NUMBER],
    "compile_time": NUMBER,
    "verification_time": NUMBER,
    "benchmark_time": NUMBER,
    "strategy_time": NUMBER,
    "framework_time": NUMBER,
    "timestamp": datetime.fromisoformat,
}
"""What schema/cache/1.1.0/schema.json of Kernel Tuner says of a cache and of each of its entries."""

FAILURES = [status for status in Status if status is not Status.OK]
OF_EVERY_STATUS = [
    measurement(),
    *(replace(FAILED, status=status, schedule=f"split(i0, a, b, {2**place})") for place, status in enumerate(FAILURES, 1)),
]


def written(document: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(document, allow_nan=False))


def test_t4_is_as_its_schemas_say() -> None:
    document = written(t4_results(OF_EVERY_STATUS))
    assert lacks(document, T4_RESULTS) == []
    assert sorted(result["invalidity"] for result in document["results"]) == sorted(T4_RESULTS["results"][0]["invalidity"])  # type: ignore[index]
    assert document["results"][0]["measurements"] == [{"name": "time", "value": 2.0, "unit": "ms"}]
    metadata = written(t4_metadata([measurement()]))
    assert lacks(metadata, T4_METADATA) == []
    assert metadata["metadata"]["hardware"]["hardware_description"] == [{"machine": "abcd", "processor": "test"}]


def test_kernel_tuner_caches_are_as_their_schema_says() -> None:
    assert lacks(written(kernel_tuner_cache(OF_EVERY_STATUS)), KERNEL_TUNER_CACHE) == []


def test_kernel_tuner_cache() -> None:
    cache = kernel_tuner_cache([measurement(), FAILED])
    assert set(cache["cache"]) == set(cache["tune_params"]["schedule"])
    assert cache["cache"][measurement().schedule]["time"] == 2.0
    assert cache["cache"][FAILED.schedule]["time"] == "RuntimeFailedConfig"


def test_kernel_tuner_cache_holds_one_kernel() -> None:
    with pytest.raises(DatabaseError, match="one kernel on one input"):
        kernel_tuner_cache([measurement(), measurement(workload=replace(WORKLOAD, threads=1))])
