"""Baseline files of ``nightly`` that are none, or none any more: one line says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sparsetune.compiler.errors import DataError
from sparsetune.tuner.nightly import Entry, load_baseline, write_baseline
from sparsetune.tuner.nightly.reference import Reference

GOOD = [
    Entry("SpMV", "HB/494_bus", "unroll(j, 2)", 1e-3, (0.5, 0.6), "", Reference("memory", 2, 100)),
    Entry("SpMM", "x", "", None, (), "it failed"),
]


def test_baselines_of_before_there_were_references_are_read(tmp_path: Path) -> None:
    write_baseline(tmp_path / "base.json", GOOD)
    content = json.loads((tmp_path / "base.json").read_text()) | {"schema": 1}
    del content["created"]
    for entry in content["entries"]:
        del entry["reference"]
    (tmp_path / "base.json").write_text(json.dumps(content))
    assert load_baseline(tmp_path / "base.json").entries == {entry.key: replace(entry, reference=None) for entry in GOOD}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_baseline(tmp_path / "base.json", GOOD)
    assert load_baseline(tmp_path / "base.json").entries == {entry.key: entry for entry in GOOD}


def test_baselines_of_a_device_are_of_no_other(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    write_baseline(path, GOOD, "sm_90")
    assert load_baseline(path, "sm_90").entries
    for device, said in ((None, "'sm_90', not on the processor"), ("sm_80", "'sm_90', not on 'sm_80'")):
        with pytest.raises(DataError, match=f"base.json is of kernels on {said}; name another file, or make a new baseline"):
            load_baseline(path, device)


NONE = [b"", b"\xff\xfe", b"[" * 100_000, b'{"schema": ' + b"1" * 6_000 + b"}", b"[]", b"3", b'"schema"', b"{}"]


@pytest.mark.parametrize("content", NONE, ids=range(len(NONE)))
def test_files_that_are_no_baseline(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "base.json").write_bytes(content)
    with pytest.raises(DataError, match=r"base\.json is no baseline file") as caught:
        load_baseline(tmp_path / "base.json")
    assert str(caught.value).isprintable()


CHANGES: list[Callable[[dict[str, Any]], object]] = [
    lambda content: content.pop("entries"),
    lambda content: content.update(entries=3),
    lambda content: content.update(schema=[]),
    lambda content: content.update(machine="\x1b[2J"),
    lambda content: content["entries"].append("SpMV"),
    lambda content: content["entries"][0].update(seconds=0.0),
    lambda content: content["entries"][0].update(seconds="abc"),
    lambda content: content["entries"][0].update(ratios=[0.5, float("nan")]),
    lambda content: content["entries"][0].update(ratios=[0.0]),
    lambda content: content["entries"][0].update(ratios=[]),
    lambda content: content["entries"][0].update(ratios=["0.5"]),
    lambda content: content["entries"][0].update(schedule=None),
    lambda content: content["entries"][0].update(other=1),
    lambda content: content["entries"][1].pop("kernel"),
    lambda content: content["entries"][0].update(reference={"kind": "memory"}),
    lambda content: content["entries"][0]["reference"].update(units=0),
    lambda content: content.update(created="yesterday"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_baselines_that_were_changed_by_hand(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = tmp_path / "base.json"
    write_baseline(path, GOOD)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"base\.json") as caught:
        load_baseline(path)
    assert str(caught.value).isprintable()
