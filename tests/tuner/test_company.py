"""What disturbs a measurement is seen, and campaigns take turns."""

from __future__ import annotations

import math
import os
import runpy
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import sparsetune as st
from sparsetune.compiler.native import team
from sparsetune.tuner.measure import company, resources
from sparsetune.tuner.measure.company import Company, Witness
from sparsetune.tuner.measure.sampling import Contestant, Sample, take_sample
from sparsetune.tuner.measure.turn import Turn
from sparsetune.tuner.nightly import racer

BUSY = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count how long threads wait")
def test_a_thread_that_shares_its_core_is_disturbed() -> None:
    """One core, another process on it that never rests: half of a run is spent waiting."""
    allowed = os.sched_getaffinity(0)
    core = min(allowed)
    other = subprocess.Popen([sys.executable, "-c", BUSY, str(core)], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        os.sched_setaffinity(0, {core})
        witness = Witness()
        before, start = witness.look(), time.process_time()
        while time.process_time() < start + 0.1:
            pass
        found = witness.since(before)
    finally:
        os.sched_setaffinity(0, allowed)
        other.kill()
        other.wait()
    assert found.disturbed
    assert found.waited > 0.05
    assert found.seconds > 0.15
    assert company.share_of_others([found]) > 0.2


def autogroup(own_session: bool) -> str:
    """Return what a process says of its group of processes after it took precedence."""
    code = f"import runpy; runpy.run_path({resources.__file__!r})['take_precedence'](); print(open('/proc/self/autogroup').read())"
    done = subprocess.run([sys.executable, "-c", code], start_new_session=own_session, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists() or os.geteuid() != 0, reason="no precedence among sessions to take here")
def test_a_session_of_its_own_takes_precedence() -> None:
    """A priority counts within a session alone: beside a busy process of another one, a worker had half of a core in spite of it."""
    assert autogroup(own_session=True).endswith("nice -10")
    assert autogroup(own_session=False) == Path("/proc/self/autogroup").read_text().strip(), "the user's session is left alone"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count how long threads wait")
def test_sleeping_is_not_waiting() -> None:
    witness = Witness()
    before = witness.look()
    time.sleep(0.05)
    assert witness.since(before).waited < 0.04


@pytest.mark.parametrize(
    ("found", "disturbed"),
    [
        (Company(0.1), False),
        (Company(0.1, waited=0.004), False),
        (Company(0.1, waited=0.006), True),
        (Company(1e-4, waited=4e-5), False),
        (Company(0.1, stolen=0.01), False),
        (Company(1.0, stolen=0.05), True),
        (Company(0.1, throttled=0.001), True),
        (Company(1.0, others=2.0), False),
        (Company(1.0, lacked=1.0), True),
    ],
)
def test_what_counts_as_disturbed(found: Company, disturbed: bool) -> None:
    assert found.disturbed is disturbed


def test_waiting_beside_what_was_timed_does_not_count() -> None:
    """A run of 2 ms; the process lost its core for 8 ms while the counters were read, or for 3 ms of the run."""
    assert not Company(0.0101, waited=0.008).within(0.002).disturbed
    assert Company(0.0051, waited=0.003).within(0.005).disturbed


@dataclass
class FakeTeam:
    calls: int = 0
    gathered: int = 0

    def alone_calls(self) -> int:
        return self.calls

    def workers(self) -> int:
        return 3

    def gather(self) -> None:
        self.gathered += 1


def test_loops_that_did_without_their_threads_are_disturbed() -> None:
    """A kernel of four threads that ran on one: nothing waited, and all four would have taken at least a fourth."""
    four = FakeTeam()
    witness = Witness(four)
    before = witness.look()
    assert witness.since(before).lacked == 0
    four.calls += 1
    found = witness.since(before)
    assert (found.lacked, found.disturbed) == (3, True)
    assert Sample(8.0, replace(found, seconds=8.0, waited=0.0)).least == 2.0


def test_loops_have_their_threads_again_when_a_sample_begins() -> None:
    """What was in their way a moment before does not disturb twenty samples more."""
    four = FakeTeam()
    witness = Witness(four)
    begun = take_sample(Contestant(lambda: None), 1, witness)
    assert (four.gathered, begun.company.lacked) == (1, 0)
    witness.look()
    assert four.gathered == 1


@pytest.mark.parametrize(("busy", "found"), [(0.0, 0.0), (1.0, 1.0)])
def test_what_others_ran_is_right_over_short_samples(busy: float, found: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system counts in ticks of 10 ms a core, samples of two threads take 1.5 ms: most see no tick, the others one too many."""
    clock = 0.0

    def ticks(cores: float) -> float:
        return cores * math.floor(100 * clock) / 100

    monkeypatch.setattr(company, "_machine_times", lambda: (ticks(2 + busy), 0.0))
    monkeypatch.setattr(company, "time", SimpleNamespace(perf_counter=lambda: clock, process_time=lambda: clock + ticks(1)))
    witness, samples = Witness(), []
    for _ in range(300):
        before = witness.begin()
        clock += 0.0015
        samples.append(witness.since(before))
        clock += 0.0001
    assert company.share_of_others(samples) == pytest.approx(found, abs=0.2)
    assert company.crowded(samples) is (found > 0.5)
    assert not company.crowded(samples[:5])  # where one tick falls says nothing


def test_processes_that_measure_ask_the_team_of_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of a campaign, and each side of a race, whose version may be too old to tell."""
    monkeypatch.setattr(team, "alone_calls", lambda: 3)
    given: list[Witness] = []
    monkeypatch.setattr("sparsetune.tuner.measure.worker.main", lambda _compile, witness: given.append(witness))
    monkeypatch.setattr("sparsetune.tuner.measure.lifeline.end_with_parent", lambda: None)
    runpy.run_module("sparsetune.tuner.measure", run_name="__main__")
    assert [witness.look().alone for witness in given] == [3]
    assert racer.Racer(st)._witness.look().alone == 3
    assert racer.Racer(SimpleNamespace(__name__="json"))._witness.look().alone == 0


def test_quotas_of_both_kinds_of_control_groups(tmp_path: Path) -> None:
    first, second = "nr_periods 5\nnr_throttled 2\nthrottled_time 250000000\n", "usage_usec 9\nthrottled_usec 1500000\n"
    for text, seconds in ((first, 0.25), (second, 1.5)):
        (tmp_path / "cpu.stat").write_text(text)
        assert company._throttled(tmp_path / "cpu.stat") == pytest.approx(seconds)
    (tmp_path / "core_throttle_total_time_ms").write_text("20\n")
    assert company._throttled(tmp_path / "core_throttle_total_time_ms") == pytest.approx(0.02)
    assert company._throttled(tmp_path / "missing") == 0


def test_turns_exclude_each_other(tmp_path: Path) -> None:
    """A second campaign waits until the first one's turn ends, were it by kill -9, and not for ever."""
    path = tmp_path / "measuring.lock"
    program = (
        "import sys, time; from pathlib import Path; from sparsetune.tuner.measure.turn import Turn\n"
        "with Turn(Path(sys.argv[1])): print('held', flush=True); time.sleep(6000)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        start = time.monotonic()
        with Turn(path, wait=0.2) as held:
            assert held is False
        assert 0.2 <= time.monotonic() - start < 600
    finally:
        process.kill()
        process.wait()
    with Turn(path, wait=600) as held:
        assert held is True
