"""Records as JSON Lines, T4 results and Kernel Tuner caches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sparsetune.compiler.errors import DatabaseError
from sparsetune.tuner.database import open_database
from sparsetune.tuner.database.interchange import (
    import_json_lines,
    kernel_tuner_cache,
    read_json_lines,
    t4_metadata,
    t4_results,
    write_json_lines,
)
from sparsetune.tuner.records import SCHEMA_VERSION, Status, from_json, to_json
from tuner_samples import WORKLOAD, decision, measurement

FAILED = measurement(status=Status.TIMEOUT, seconds=None, times=(), schedule="split(i0, a, b, 2)")


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
        for _ in range(2):
            assert import_json_lines(other, path) == 3
        assert other.stats()["records"] == 2
        assert other.stats()["decisions"] == 1


def test_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    line = json.dumps(to_json(measurement()))
    path.write_text(line + "\n" + line[:50])
    assert list(read_json_lines(path)) == [measurement()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not a JSON object"),
        ("[]", "line 1: a record is a JSON object"),
        ('{"schema": 1, "record": "song"}', "kinds are measurement and decision"),
        (json.dumps(to_json(decision()) | {"schema": SCHEMA_VERSION + 1}), "upgrade sparsetune"),
        (json.dumps({key: value for key, value in to_json(decision()).items() if key != "seconds"}), "not a whole decision record"),
        (json.dumps(to_json(measurement()) | {"status": "good"}), "not a whole measurement record"),
    ],
)
def test_bad_lines_name_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(DatabaseError, match=message) as caught:
        list(read_json_lines(path))
    assert str(caught.value).startswith(str(path))


def test_missing_file() -> None:
    with pytest.raises(DatabaseError, match="No such file"):
        list(read_json_lines(Path("/nowhere/records.jsonl")))


def test_t4_has_what_the_schema_requires() -> None:
    document = t4_results([measurement(), FAILED])
    assert document["schema_version"] == "1.0.0"
    for result in document["results"]:
        assert {"configuration", "times", "invalidity", "correctness", "objectives", "timestamp", "measurements"} <= set(result)
        assert {"compilation_time", "runtimes", "framework", "search_algorithm", "validation"} <= set(result["times"])
    assert [result["invalidity"] for result in document["results"]] == ["correct", "timeout"]
    assert document["results"][0]["measurements"] == [{"name": "time", "value": 2.0, "unit": "ms"}]
    assert t4_metadata([measurement()])["hardware"] == {"abcd": "test"}


def test_kernel_tuner_cache() -> None:
    cache = kernel_tuner_cache([measurement(), FAILED])
    assert {"device_name", "kernel_name", "problem_size", "tune_params_keys", "tune_params", "cache"} <= set(cache)
    assert set(cache["cache"]) == set(cache["tune_params"]["schedule"])
    assert cache["cache"][measurement().schedule]["time"] == 2.0
    assert cache["cache"][FAILED.schedule]["time"] == "RuntimeFailedConfig"


def test_kernel_tuner_cache_holds_one_kernel() -> None:
    with pytest.raises(DatabaseError, match="one kernel on one input"):
        kernel_tuner_cache([measurement(), measurement(workload=replace(WORKLOAD, threads=1))])
