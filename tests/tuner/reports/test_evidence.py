"""The report on evidence: gains on two inputs, weights that are fitted to how they differ, and doubts that know nothing of their inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sparsetune.tuner.database import open_database
from sparsetune.tuner.features import WEIGHTS
from sparsetune.tuner.records import Input, Measurement, Status, Workload
from sparsetune.tuner.reports.evidence import Pair, fitted, gathered, left_out, main

WORKLOAD = Workload("machine", "T0(i0) = T1(i0,i1) * T2(i1)", "dense | dense, compressed | dense", "float64", "cpu", 1)


def entry(name: str, nnz: float) -> Input:
    return Input((("i0", 64), ("i1", 64)), (("extent:i0", 6.0), ("nnz:T1", nnz)), name, name)


def trial(where: Input, schedule: str, seconds: float | None, **changes) -> Measurement:
    status = Status.OK if seconds else Status.CRASH
    return Measurement(
        workload=WORKLOAD, input=where, campaign="c", role="trial", schedule=schedule, status=status, seconds=seconds, **changes
    )


def test_errors_are_of_schedules_that_ran_on_both(tmp_path: Path) -> None:
    near, far = entry("near", 5.0), entry("far", 8.0)
    with open_database(str(tmp_path / "d.sqlite")) as store:
        store.add(
            trial(near, "", 4.0), trial(near, "unroll(i1, 2)", 2.0), trial(near, "unroll(i1, 2)", 1.0), trial(near, "unroll(i1, 4)", 1.0),
             trial(far, "", 4.0), trial(far, "unroll(i1, 2)", 2.0), trial(far, "unroll(i1, 4)", None),
        )  # fmt: skip
        (pair,) = gathered(store)
    assert set(pair.inputs) == {"near", "far"}
    assert pair.squares == {"extent": 0.0, "nnz": 9.0}
    assert np.abs(pair.errors) == pytest.approx([np.log(2)])  # gains of 4 and 2


def made_up(count: int) -> list[Pair]:
    """Return pairs whose errors come from the measurement and from nonzeros alone."""
    random = np.random.default_rng(3)
    found = []
    for number in range(count):
        squares = {kind: float(random.uniform(0, 4)) for kind in WEIGHTS}
        spread = np.sqrt(0.01 + 0.02 * squares["nnz"])
        found.append(Pair((f"m{number % 7}", f"n{number % 5}"), squares, tuple(random.normal(0, spread, 50))))
    return found


def test_weights_are_found_again() -> None:
    pairs = made_up(300)
    whole = fitted(pairs)
    assert whole.measured == pytest.approx(0.01, abs=0.005)
    assert whole.parts["nnz"] == pytest.approx(0.02, rel=0.2)
    assert all(part < 0.003 for kind, part in whole.parts.items() if kind != "nnz")
    doubts = left_out(pairs)
    assert set(doubts) == {name for pair in pairs for name in pair.inputs}
    held = [abs(error) <= doubts[pair.inputs[0]].of(pair) for pair in pairs for error in pair.errors]
    assert np.mean(held) == pytest.approx(0.68, abs=0.03)


def test_few_pairs_are_no_page(tmp_path: Path) -> None:
    file = str(tmp_path / "d.sqlite")
    with open_database(file) as store:
        store.add(trial(entry("near", 5.0), "", 4.0))
    done = CliRunner().invoke(main, ["--db", file, "--results", str(tmp_path)])
    assert done.exit_code == 1
    assert "0 pairs of inputs have schedules in common, fewer than 20" in done.output


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.tuner.reports.evidence.gathered", lambda store: made_up(60))
    file = str(tmp_path / "d.sqlite")
    with open_database(file):
        pass
    done = CliRunner().invoke(main, ["--db", file, "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    shown = (tmp_path / "evidence.md").read_text()
    assert "60 pairs of inputs, 3000 gains" in shown
    assert "| nnz | 1.00 | 1." in shown
    assert "| fitted, left out | " in shown
