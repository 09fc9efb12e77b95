"""The command line on what is kept: databases, exports and their readers, the cache; and the doctor."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from command_lines import PROGRAM, RANDOM, SPMV, call_json, needs_compiler
from sparsetune.tuner.records import SCHEMA_VERSION, to_json
from tuner_samples import measurement

pytestmark = pytest.mark.usefixtures("own_database")


def test_db(call, tmp_path: Path) -> None:
    found = call_json(call, "db", "stats")
    assert list(found) == ["records", "kernels", "machines", "path", "ok"]
    assert found["ok"]
    assert call_json(call, "db", "check")["ok"]


@needs_compiler
def test_db_export_and_import(call, tmp_path: Path) -> None:
    call_json(call, "tune", SPMV, "-i", RANDOM, "--trials", "2", "--threads", "1")
    before = call_json(call, "db", "stats")["records"]
    assert before >= 2
    assert call("db", "export", str(tmp_path / "r.jsonl"))[0] == 0
    other = str(tmp_path / "other.sqlite")
    assert f"{before} of them new" in call("db", "import", str(tmp_path / "r.jsonl"), "--db", other)[2]
    assert "0 of them new" in call("db", "import", str(tmp_path / "r.jsonl"), "--db", other)[2]
    assert call_json(call, "db", "stats", "--db", other)["records"] == before
    assert call("db", "export", str(tmp_path / "t4.json"), "--as", "t4")[0] == 0
    assert json.loads((tmp_path / "t4.json").read_text())["schema_version"] == "1.0.0"
    assert (tmp_path / "t4.metadata.json").exists()
    assert call("db", "export", str(tmp_path / "caches"), "--as", "kernel-tuner")[0] == 0
    (cache,) = (tmp_path / "caches").iterdir()
    assert json.loads(cache.read_text())["kernel_name"] == "T0(i0) = T1(i0,i1) * T2(i1)"
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == before, "all that is counted is written"
    status, _, said = call("db", "export", str(tmp_path / "r.xyz"))
    assert (status != 0, said.count("\n"), (tmp_path / "r.xyz").exists()) == (True, 1, False)
    assert ".jsonl, " in said
    assert "--as jsonl|" in said
    status, _, said = call("db", "export", str(tmp_path / "r.csv"))
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    kinds = {row["record"] for row in rows}
    assert (status, kinds) == (0, {"measurement", "decision"})
    assert f"r.csv: {len(rows)} records as CSV" in said
    assert all(row["kernel"].startswith("T0(i0)") and row["threads"].isdigit() and "i0=" in row["extents"] for row in rows)
    status, out, _ = call("db", "export", "-")
    assert status == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert all(line["schema"] == SCHEMA_VERSION for line in lines)
    contract = {"expression", "schedule", "seconds", "machine", "threads", "generator", "compiler", "flags", "policy"}
    assert all((contract <= line.keys() and line["policy"] and line["flags"].startswith("-O")) or line["role"] == "final" for line in lines)
    assert all("samples" in line for line in lines if line["record"] == "measurement")


def test_a_reader_of_an_export_that_has_enough_ends_it_without_a_message(call, tmp_path: Path) -> None:
    lines = tmp_path / "r.jsonl"
    lines.write_text("".join(json.dumps(to_json(measurement(campaign=f"c{n}"))) + "\n" for n in range(1, 2000)))
    database = str(tmp_path / "many.sqlite")
    assert call("db", "import", str(lines), "--db", database)[0] == 0
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as out:
        ended = subprocess.Popen([*PROGRAM, "db", "export", "-", "--db", database], stdout=out, stderr=subprocess.PIPE, text=True)
    os.read(reader, 100)
    os.close(reader)
    assert ended.communicate()[1] == ""


def test_cache_is_counted_listed_and_cleared_by_age(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path))
    assert call_json(call, "cache", "stats") == {"path": str(tmp_path), "objects": 0, "bytes": 0, "oldest_days": 0.0}
    assert f"nothing is kept in {tmp_path}" in call("cache", "list")[2]
    for digit, days in (("a", 40), ("b", 2)):
        file = tmp_path / (2 * digit) / (64 * digit) / "kernel.so"
        file.parent.mkdir(parents=True)
        file.write_text("1234")
        file.with_name("kernel.c").write_text(f"/* y(i) = {digit}(i) */\n")
        os.utime(file, (time.time() - 86400 * days,) * 2)
    _, *lines = call("cache", "list")[1].splitlines()
    assert [line.split(maxsplit=2) for line in lines] == [["22", "2.0", "y(i) = b(i)"], ["22", "40.0", "y(i) = a(i)"]]
    (item,) = call_json(call, "cache", "list", "= A")["items"]
    assert (item["kind"], item["bytes"], item["expression"], round(item["days"])) == ("kernel", 22, "y(i) = a(i)", 40)
    found = call_json(call, "cache", "clear", "--older-than", "30")
    assert (found["removed"], found["objects"], found["bytes"]) == (1, 1, 22)
    status, out, said = call("cache", "clear", "--all")
    assert (status, "1 compiled objects removed" in said, "objects   0" in out) == (0, True, True)


def test_doctor(call) -> None:
    status, out, _ = call("doctor", "--json")
    found = json.loads(out)
    assert list(found) == ["ok", "checks"]
    assert status == (0 if found["ok"] else 3)
    assert {"C compiler", "threads", "database"} <= {check["name"] for check in found["checks"]}
