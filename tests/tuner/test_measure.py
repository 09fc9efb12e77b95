"""The worker process: handing over, checking, and surviving what candidates do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from measured_problems import MATRIX, RNG
from sparsetune.compiler.errors import TuningError
from sparsetune.compiler.native.machine import available_cores
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.measure import handover, runner
from sparsetune.tuner.measure.finals import Burst
from sparsetune.tuner.measure.outcomes import Rival
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.runner import Runner
from sparsetune.tuner.measure.turn import Turn
from sparsetune.tuner.measure.worker_process import Worker
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.records import SAMPLE, Status
from sparsetune.tuner.resolve import make_problem

FAKE = (sys.executable, str(Path(__file__).parents[1] / "fake_worker.py"))
POLICY = Policy(max_seconds=0.05, max_repeats=5)


def spmv(expression: str = "y(i) = A(i,j) * x(j)") -> Problem:
    return make_problem(expression, {"A": MATRIX, "x": RNG.standard_normal(20)}, threads=1)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(1, FAKE) as worker:
        yield worker


@pytest.fixture
def prepared(worker: Worker) -> Iterator[Runner]:
    with Runner(spmv(), worker, POLICY) as prepared:
        prepared.prepare()
        yield prepared


def test_another_schedule_may_give_the_result_to_compare_with(worker: Worker) -> None:
    with Runner(spmv(), worker, POLICY) as runner:
        rival = runner.prepare("sleep 0.002")
        assert rival is not None
        assert rival.schedule == "sleep 0.002"
        assert 0.002 <= rival.seconds < 0.0021
        assert runner.measure("", rival).status is Status.OK, "the default schedule is checked against it"


def test_a_campaign_in_a_hurry_does_not_wait_for_others(prepared: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another campaign has the machine for itself, and this one has a second."""
    path = tmp_path / "measuring.lock"
    monkeypatch.setattr(prepared, "_turn", Turn(path))
    with Turn(path):
        monkeypatch.setattr(prepared, "end", time.monotonic() + 1.0)
        assert prepared.measure("").status is Status.OK


@pytest.mark.parametrize("schedule", ["crash", "wrong", "illegal", "compile"])
def test_what_fails_gives_no_result_to_compare_with(worker: Worker, schedule: str) -> None:
    with Runner(spmv(), worker, POLICY) as runner:
        assert runner.prepare(schedule) is None
        assert runner.measure("").status is Status.OK


def test_good_candidate(prepared: Runner) -> None:
    built = prepared.build("sleep 0.002")
    assert built.status is Status.OK
    measured = prepared.measure("sleep 0.002")
    assert measured.status is Status.OK
    assert measured.seconds == pytest.approx(0.002, rel=0.01)
    assert len(measured.times) >= 3


def test_equal_sources_have_equal_digests(prepared: Runner) -> None:
    assert prepared.build("same as sleep 0.002").source == prepared.build("sleep 0.002").source
    assert prepared.build("sleep 0.003").source != prepared.build("sleep 0.002").source


@pytest.mark.parametrize(("schedule", "status"), [("illegal", Status.ILLEGAL), ("compile", Status.COMPILE), ("bug", Status.CRASH)])
def test_failures_to_build(prepared: Runner, schedule: str, status: Status) -> None:
    built = prepared.build(schedule)
    assert built.status is status
    assert built.message
    assert "\n" not in built.message


@pytest.mark.parametrize("schedule", ["wrong", "nan"])
def test_wrong_results_do_not_count(prepared: Runner, schedule: str) -> None:
    measured = prepared.measure(schedule)
    assert measured.status is Status.WRONG
    assert measured.seconds is None
    assert "value" in measured.message


def test_crash_costs_one_trial(prepared: Runner, worker: Worker) -> None:
    starts = worker.starts
    measured = prepared.measure("crash")
    assert measured.status is Status.CRASH
    assert "SIGABRT" in measured.message
    assert prepared.measure("sleep 0.001").status is Status.OK
    assert worker.starts == starts + 1


def test_hang_ends_at_its_limit(prepared: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_GRACE_SECONDS", 0.2)
        assert prepared.measure("hang", Rival("sleep 0.001", 0.001)).status is Status.TIMEOUT
    assert prepared.measure("sleep 0.001").status is Status.OK


def test_compiler_that_hangs(prepared: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runner, "BUILD_SECONDS", 0.2)
        patch.setattr(runner, "_GRACE_SECONDS", 0.2)
        assert prepared.build("slow-compile").status is Status.COMPILE
    assert prepared.build("sleep 0.001").status is Status.OK


def test_what_is_built_together_fails_alone(prepared: Runner, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    good, starts = ["sleep 0.001", "same as sleep 0.002", "sleep 0.002"], worker.starts
    found = prepared.build_together([*good, "illegal", "compile", "bug"])
    assert [built.status for built in found] == [Status.OK] * 3 + [Status.ILLEGAL, Status.COMPILE, Status.CRASH]
    assert found[1].source == found[2].source != found[0].source
    assert worker.starts == starts
    monkeypatch.setattr(runner, "BUILD_SECONDS", 0.2)
    monkeypatch.setattr(runner, "_GRACE_SECONDS", 0.2)
    found = prepared.build_together(["slow-compile", "illegal"])
    assert [built.status for built in found] == [Status.COMPILE, Status.ILLEGAL]


def test_compilers_run_side_by_side(prepared: Runner) -> None:
    found = prepared.build_together([f"waits-for-another {number}" for number in range(2)])
    assert [built.status for built in found] == [Status.OK] * 2


def test_output_of_a_kernel_does_not_reach_the_replies(prepared: Runner) -> None:
    assert prepared.measure("prints").status is Status.OK


def test_losing_candidate_stops_early(prepared: Runner) -> None:
    measured = prepared.measure("sleep 0.01", Rival("sleep 0.001", 0.001))
    assert measured.stopped == "losing"
    assert len(measured.times) == 3


def test_a_rival_that_is_slower_than_before_tells_of_company(prepared: Runner) -> None:
    measured = prepared.measure("sleep 0.0022", Rival("sleep 0.002", 0.001))
    assert measured.disturbed
    assert measured.seconds == pytest.approx(0.0011, rel=0.02)


def test_burst(prepared: Runner) -> None:
    found = prepared.burst("sleep 0.002", 0.01, 0.002)
    assert found is not None
    sample, burst = found
    assert len(sample) == len(SAMPLE)
    assert sample[0] == pytest.approx(0.002, rel=0.01)
    assert burst == Burst(sample[0])
    assert prepared.burst("crash", 0.01, 0.002) is None


def test_next_problem_in_the_same_worker(worker: Worker) -> None:
    for expression in ("y(i) = A(i,j) * x(j)", "y(i) = 2 * A(i,j) * x(j)"):
        with Runner(spmv(expression), worker, POLICY) as other:
            other.prepare()
            assert other.measure("").status is Status.OK


def test_nothing_is_left_behind(worker: Worker) -> None:
    with Runner(spmv(), worker, POLICY) as other:
        folder = other.folder
        assert folder.exists()
    assert not folder.exists()


def test_folders_of_dead_processes_are_removed() -> None:
    program = (
        "import os, signal\n"
        "from sparsetune.tuner.measure.handover import make_folder\n"
        "print(make_folder(0).path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    stale = Path(killed.stdout.strip())
    assert stale.is_dir()
    mine = handover.make_folder(0)
    assert not stale.exists()
    handover.sweep_folders()
    assert mine.path.is_dir()
    mine.remove()
    assert not mine.path.exists()


def test_default_that_fails_is_an_error() -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no such luck')")
    with Worker(1, command) as broken, Runner(spmv(), broken, POLICY) as other, pytest.raises(TuningError, match="no such luck"):
        other.prepare()


def test_worker_ends_with_its_parent() -> None:
    program = "import subprocess, sys, time; print(subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).pid, flush=True); time.sleep(6000)"
    parent = subprocess.Popen([sys.executable, "-c", program, *FAKE], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 600
    while Path(f"/proc/{child}").exists() and Path(f"/proc/{child}/stat").read_text().split(")")[1].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_worker_whose_parent_died_before_it_could_ask_to_be_told() -> None:
    program = "from sparsetune.tuner.measure.lifeline import end_with_parent; end_with_parent(); print('goes on', flush=True)"
    for lives in (False, True):
        reading, writing = os.pipe()
        if not lives:
            os.write(writing, b"a request that nobody waits for")
            os.close(writing)
        done = subprocess.run([sys.executable, "-c", program], stdin=reading, stdout=subprocess.PIPE, text=True, check=False)
        assert done.stdout.strip() == ("goes on" if lives else "")
        os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("form", ["dense, compressed", "compressed, compressed; 1, 0", "coo", "dense; 1, 0", "dense, hashed"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_operands_arrive_unchanged(tmp_path: Path, form: str, dtype: str) -> None:
    dense = np.where(RNG.random((6, 5)) < 0.4, RNG.integers(1, 9, (6, 5)), 0).astype(dtype)
    form = "dense, dense; 1, 0" if form.startswith("dense;") else form
    given = {"for": tensor(dense, form), "x/y": tensor(np.array(3.0))}
    handover.save(tmp_path, given)
    found = handover.load(tmp_path)
    for name, operand in given.items():
        assert found[name].format == operand.format
        assert found[name].dtype == operand.dtype
        np.testing.assert_array_equal(found[name].to_numpy(), operand.to_numpy())
        assert found[name].values.ctypes.data % 128 == operand.values.ctypes.data % 128


@pytest.mark.parametrize("offset", [0, 16, 64, 72])
def test_operands_lie_where_those_of_the_caller_do(tmp_path: Path, offset: int) -> None:
    """Relative to a pair of cache lines: a matrix that begins in the middle of one makes kernels slower, whatever the schedule."""
    room = np.zeros(2**20, np.uint8)
    begin = -room.ctypes.data % 128 + offset
    given = tensor(room[begin : begin + 800].view(np.float64).reshape(10, 10))
    assert given.values.ctypes.data % 128 == offset, "a tensor takes an array as it is"
    handover.save(tmp_path, {"X": given})
    found = handover.load(tmp_path)["X"]
    assert found.values.ctypes.data % 128 == offset
    again = handover.moved(found)
    assert again.values.ctypes.data % 128 == offset
    assert not np.shares_memory(again.values, found.values)
    assert again.to_numpy() is not found.to_numpy()
    np.testing.assert_array_equal(again.to_numpy(), given.to_numpy())


def test_threads_reach_the_worker() -> None:
    assert Worker(2).settings == {"SPARSETUNE_THREADS": "2"}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or available_cores() < 2, reason="needs two cores and Linux")
def test_workers_run_on_all_cores_though_openmp_bound_their_parent() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})  # what OMP_PROC_BIND=true does to the first thread
    try:
        with Worker(2) as worker:
            process = worker._start()
            deadline = time.monotonic() + 600
            while os.sched_getaffinity(process.pid) != allowed and time.monotonic() < deadline:
                time.sleep(0.05)
            assert os.sched_getaffinity(process.pid) == allowed
    finally:
        os.sched_setaffinity(0, allowed)
    assert available_cores() == len(allowed)
