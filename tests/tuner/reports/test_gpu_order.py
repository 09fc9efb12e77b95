"""In what order the report on GPUs measures: what a device has no rows for yet before what is looked through again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.tuner.reports import gpu_parts
from sparsetune.tuner.reports.gpu_matrices import fibred, skewed
from sparsetune.tuner.reports.gpu_parts import PARTS, STREAMED
from sparsetune.tuner.reports.gpu_rows import Row, Rows, left_first


def row(part: str, what: str, kernel: str = "state", device: str = "one") -> Row:
    return Row(part, part, 0, kernel, "driver", what, 0.0, 0.0, 0.0, 0, "yes", device, "0", "", "")


def test_what_a_device_has_no_rows_for_comes_first(tmp_path: Path) -> None:
    ends = [row(part, "end 05:26:04: 1980 MHz") for part in ("machine", "far", "right")]
    others = [row("skew", "begin 05:26:04: 345 MHz"), row("edges", "row to a warp", "SpMV")]
    elsewhere = row("kernels", "end 05:26:04: 1980 MHz", device="other")
    found = left_first(PARTS, [*ends, *others, elsewhere], "one")
    assert found == ["streams", "skew", "tensors", "kernels", "choices", "edges", "sanitizer", "machine", "far", "right"]
    rows = Rows(tmp_path, "kernels", "one", 9.0)
    rows.add("b", 1, "SpMV", "generated", "m", lambda: ([1.0], 8, "yes"))
    assert rows.missing_first({name: [("SpMV", "m")] for name in ("b", "a", "c")}) == ["a", "c", "b"]


def test_what_lacks_mappings_or_rivals_comes_before_what_has_all(tmp_path: Path) -> None:
    rows = Rows(tmp_path, "streams", "one", 9.0)
    theirs = "cuSPARSE", "ALG1"
    for name, who, what in (("all", "generated", "m"), ("all", *theirs), ("plane", "generated", "m"), ("old", *theirs)):
        rows.add(name, 1, "SpMV", who, what, lambda: ([1.0], 8, "yes"))
    wanted = {name: [("SpMV", "m")] for name in ("all", "plane", "old", "new")}
    assert rows.missing_first(wanted) == ["new", "plane", "old", "all"]
    assert rows.missing_first(wanted | {"old": [("SpMV", "m"), ("SpMV", "2 lanes")]}) == ["new", "old", "plane", "all"]


def test_streams_with_missing_rows_are_made_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raced: list[str] = []
    monkeypatch.setattr(gpu_parts, "race", lambda kernel, name, *_, **__: raced.append(name))
    rows = Rows(tmp_path, "streams", "one", 9.0)
    names = ("2.0e+01 rows of 17 in a band", "2.5e+01 rows of 5 of a plane")
    for name, mappings in zip(names, (STREAMED, STREAMED[:3]), strict=True):
        for what in mappings:
            rows.add(name, 1, "SpMV", "generated", what, lambda: ([1.0], 8, "yes"))
    gpu_parts.part_streams(Any, rows, gpu_parts.Asked((), 2, 1e-6))
    assert raced == [*reversed(names)]


def test_skewed_rows_that_are_there_are_not_made_again_before_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    def noted(rows: int, columns: int, entries: int, skew: float) -> Any:
        drawn.append(skew)
        return skewed(rows, columns, entries, skew)

    monkeypatch.setattr(gpu_parts, "skewed", noted)
    monkeypatch.setattr(gpu_parts, "race", lambda kernel, name, *rest, **_: rest[2].add(name, 0, "SpMV", "", "", lambda: ([], 0, "yes")))
    rows = Rows(tmp_path, "skew", "one", 9.0)
    for name in ("4e+02 entries at random", "100 long rows", "4e+02 entries, skew 0", "4e+02 entries, skew 0.25"):
        rows.add(name, 0, "SpMV", "", "", lambda: ([], 0, "yes"))
    gpu_parts.part_skew(Any, rows, gpu_parts.Asked((), 2, 1e-6))
    assert drawn == [1.0, 0.5, 0.75, 0.0, 0.0, 0.0, 0.25]


def test_a_tensor_of_even_fibres_has_its_entries_in_order() -> None:
    tensor = fibred(3, 4, 5, (9, 40))
    coordinates, values = tensor.to_coordinates()
    assert tensor.nnz == len(values) == 60
    assert len(np.unique(np.stack(coordinates), axis=1).T) == 60
    assert (np.lexsort(tuple(coordinates[::-1])) == np.arange(60)).all()
    np.testing.assert_array_equal(st.tensor((coordinates, values), format="csf", shape=tensor.shape).to_numpy(), tensor.to_numpy())
