"""``--target`` in the command line: what commands do for a device, which this machine need not have."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune
from command_lines import SPMV, call_json
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.comparison import OURS, OURS_BY_DEFAULT, compare_with_peers
from sparsetune.tuner.config import load_suite
from sparsetune.tuner.database import open_database
from sparsetune.tuner.nightly import night
from sparsetune.tuner.nightly.baseline import Baseline
from sparsetune.tuner.nightly.race import Task, saved
from sparsetune.tuner.nightly.racer import Racer
from sparsetune.tuner.nightly.reference import CLOCK
from sparsetune.tuner.peers import choose_peers
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.settings import Settings
from sparsetune.tuner.suite import suite_items

needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
pytestmark = pytest.mark.usefixtures("own_database")
MINE = """
[suite]
threads = [1, 2]
{target}
[[kernel]]
name = "spmv"
expression = "y(i) = A(i,j) * x(j)"
operand = "A"
order = 2
[[input]]
name = "small"
source = "random:uniform:20x10:nnz=80"
order = 2
"""


def mine(folder: Path, target: str = "") -> str:
    (folder / "mine.toml").write_text(MINE.format(target=target))
    return str(folder / "mine.toml")


def problem() -> Problem:
    matrix = scipy.sparse.random_array((20, 10), density=0.3, rng=np.random.default_rng(0), format="csr")
    return make_problem(SPMV, {"A": matrix, "x": np.ones(10)}, target="cuda", threads=1)


@pytest.mark.parametrize(
    "command",
    [
        ("explain", SPMV, "--target", "cuda"),
        ("suite", "quick", "--target", "cuda"),
        ("bench", "quick", "--target", "cuda"),
        ("nightly", "quick", "--target", "cuda", "--baseline", "none.json"),
    ],
)
def test_a_machine_without_a_gpu_says_so_at_once(call, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.compiler.native.devices.find_program", lambda name: None)
    status, out, err = call(*command)
    assert (status, out) == (3, "")
    assert "target cuda needs an NVIDIA GPU with its driver, and none was found" in err


def test_a_schedule_is_explained_for_a_gpu_that_is_not_here(call) -> None:
    schedule = "parallelize(i, gpu_warp, no_races, lanes, 8); parallelize(j, gpu_thread, parallel_reduction)"
    asked = ("explain", SPMV, "--format", "A=csr", "--target", "cuda", "--arch", "sm_90", "--limit", "1")
    found = call_json(call, *asked, "--schedule", schedule)["device"]
    assert (found["target"], found["arch"], found["schedule"]) == ("cuda", "sm_90", schedule)
    (kernel,) = found["kernels"]
    assert kernel == {
        "loops": ["warps: all i", "threads: j in A(i,j)"],
        "blocks": "(i_size + 31) / 32", "threads": 256, "lanes": 8, "registers": None, "shared_bytes": 0,
    }  # fmt: skip
    status, out, _ = call(*asked)
    assert status == 0
    assert "on cuda sm_90: parallelize(i, gpu_thread, no_races, registers, 48)" in out
    assert "device" not in call_json(call, "explain", SPMV, "--format", "A=csr")


def test_options_that_have_no_meaning_on_a_device_are_refused(call, tmp_path: Path) -> None:
    device = ("--target", "cuda", "--arch", "sm_90")
    for command, message in (
        (("explain", SPMV, *device, "--html", "page.html"), "--html shows no device"),
        (("explain", SPMV, *device, "--ranks", "4"), "--ranks shows no device"),
        (("explain", SPMV, "--arch", "sm_90"), "target cpu has no architectures"),
        (("suite", mine(tmp_path), "--target", "cuda", "--threads", "2"), "--threads is for kernels on the processor"),
    ):
        status, _, err = call(*command)
        assert status == 2, command
        assert message in err


def test_a_suite_names_its_target(call, tmp_path: Path) -> None:
    assert [item.threads for item in suite_items(load_suite(mine(tmp_path)))] == [1, 2]
    suite = load_suite(mine(tmp_path, 'target = "cuda"'))
    assert [(item.label, item.threads, item.target) for item in suite_items(suite)] == [("spmv", 1, "cuda")]
    assert suite.key == "mine on cuda"
    with pytest.raises(DataError, match=r"\[suite\]: unknown target 'cude' \(did you mean 'cuda'\?\); targets are cpu, cuda"):
        load_suite(mine(tmp_path, 'target = "cude"'))
    status, out, _ = call("suite", mine(tmp_path), "--target", "cuda", "--describe")
    assert status == 0
    assert "mine: \n1 item of 1 kernel on 1 input" in out


def test_peers_run_on_the_processor() -> None:
    assert choose_peers((), "cuda") == ()
    with pytest.raises(DataError, match="the peer 'scipy' runs on the processor and is not compared with target cuda"):
        choose_peers(("scipy",), "cuda")


@needs_cxx
@pytest.mark.cc
def test_kernels_are_compared_by_the_clock_of_the_device(device: list[tuple[int, int]]) -> None:
    found = compare_with_peers(problem(), Schedule("parallelize(i, gpu_warp, no_races)"), (), Settings())
    assert {OURS, OURS_BY_DEFAULT} <= set(found.times)
    assert set(found.times.values()) == {0.25}
    assert device


@needs_cxx
@pytest.mark.cc
def test_versions_race_by_the_clock_of_the_device(device: list[tuple[int, int]]) -> None:
    racer = Racer(sparsetune)
    with saved(Task(problem(), "parallelize(i, gpu_warp, no_races)")) as folder:
        racer.load(str(folder))
        assert racer.burst(4, 2)["sample"][0] == pytest.approx(0.25)
    racer.reference(CLOCK.kind, CLOCK.threads, CLOCK.units, CLOCK.library)
    assert racer.reference_burst(3) == {"sample": [1.0], "disturbed": False}
    assert device


@pytest.mark.cc
def test_a_report_of_one_target(call, own_database: Path, tmp_path: Path) -> None:
    matrix = scipy.sparse.eye_array(30, format="csr")
    sparsetune.tune(SPMV, {"A": matrix, "x": np.ones(30)}, trials=2, threads=1, database=own_database)
    with open_database(own_database) as store:
        (decision,) = store.decisions()
        there = replace(decision.workload, target="cuda", machine="sm_90", threads=1)
        store.add(replace(decision, workload=there, schedule="parallelize(i0, gpu_warp, no_races)"))

    def page(*options: str) -> str:
        status, _, _ = call("report", "-o", str(tmp_path / "report.html"), *options)
        assert status == 0
        return (tmp_path / "report.html").read_text()

    def shown(text: str) -> dict[str, bool]:
        return {name: part in text for name, part in (("cpu", '<td class="n">1</td>'), ("cuda", '<td class="n">sm_90</td>'))}

    assert shown(page()) == {"cpu": True, "cuda": True}
    assert shown(page("--target", "cpu")) == {"cpu": True, "cuda": False}
    assert shown(page("--target", "cuda")) == {"cpu": False, "cuda": True}
    assert "ST_KERNEL(256)" in page("--target", "cuda")


class InThisProcess:
    """One version of a race, in the process of the test."""

    def __init__(self, _root: Path, _threads: int) -> None:
        self.racer = Racer(sparsetune)

    def ask(self, _seconds: float, action: str, **given: Any) -> dict[str, Any]:
        return getattr(self.racer, action)(**given)

    def load(self, folder: Path) -> None:
        self.racer.load(str(folder))

    def burst(self, batch: int, samples: int, _expected: float) -> tuple[tuple[float, ...], bool]:
        reply = self.racer.burst(batch, samples)
        return tuple(reply["sample"]), reply["disturbed"]

    def restart(self) -> None:
        """Nothing of it has to be made anew."""

    close = restart


@needs_cxx
@pytest.mark.cc
@pytest.mark.usefixtures("device")
def test_nights_of_a_device_are_compared_by_its_clock(own_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = night.Place("spmv", "small")
    task = Task(problem(), "parallelize(i, gpu_warp, no_races)")
    monkeypatch.setattr(night, "Side", InThisProcess)
    monkeypatch.setattr(night, "_tasks", lambda plan: iter([(place, lambda: task, None)]))
    suite, known = load_suite(mine(tmp_path, 'target = "cuda"')), Baseline({})
    for verdict, nights in (("new", 1), ("same", 2)):
        with open_database(own_database) as store:
            plan = night.Plan(suite, known, None, 0.1, store, lambda place, problem: "")
            ((entry, change),) = night.run_night(plan)
            assert (change.verdict, len(change.nights)) == (verdict, nights)
            assert (entry.reference, entry.seconds) == (CLOCK, 0.25)
            assert {found.workload.machine for found in store.measurements(role="night")} == {"sm_90"}
        known = Baseline({("spmv", "small"): entry})
