"""Limits of time do not count the time in which a process was suspended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from sparsetune.tuner import alarm, awake
from sparsetune.tuner.awake import TICK, Awake
from sparsetune.tuner.measure import worker_process
from sparsetune.tuner.measure.worker_process import Lost, Worker
from sparsetune.tuner.records import Status

LIMITED = """
import time
from sparsetune.tuner.alarm import TooLong, limited
try:
    with limited({limit}, "too long"):
        print("begun", flush=True)
        for _ in range({steps}):
            time.sleep(0.1)
    print("done")
except TooLong as error:
    print(error)
"""
ANSWERS = "import sys, time\nfor line in sys.stdin:\n    time.sleep({seconds})\n    print('{{}}', flush=True)\n"


def given(*values: float) -> Callable[[], float]:
    """Return a clock of some values, the last of which stays."""
    left = list(values)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_what_a_process_did_not_see_does_not_count() -> None:
    clock = Awake(given(0, 1, 2.5, 100, 101), given(0, 0.5, 0.5, 0.6, 0.7))
    assert [clock.look() for _ in range(4)] == [1, 2.5, 2.5 + 2 * TICK, 3.5 + 2 * TICK]


def test_work_counts_however_long_it_takes() -> None:
    assert Awake(given(0, 30), given(0, 29)).look() == 29
    assert Awake(given(0, 30), given(0, 60)).look() == 30  # on several threads


def limited_run(limit: float, steps: int) -> subprocess.Popen[str]:
    text = LIMITED.format(limit=limit, steps=steps)
    run = subprocess.Popen([sys.executable, "-P", "-c", text], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"
    return run


def test_a_limit_waits_while_its_process_is_suspended() -> None:
    with limited_run(3 * TICK, 5) as run:
        run.send_signal(signal.SIGSTOP)
        time.sleep(3.2 * TICK)
        run.send_signal(signal.SIGCONT)
        assert run.communicate()[0] == "done\n"


def test_a_limit_ends_what_takes_too_long() -> None:
    with pytest.raises(alarm.TooLong, match="over"), alarm.limited(0.05, "over"):
        time.sleep(60)
    with pytest.raises(alarm.TooLong, match="over"), alarm.limited(1.2 * TICK, "over"):
        time.sleep(60)


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that runs, and has jumped by an hour at the second look."""
    begin = time.monotonic()
    jumps: Iterator[float] = iter([0.0])
    clock = lambda: time.monotonic() - begin + next(jumps, 3600.0)  # noqa: E731
    monkeypatch.setattr(worker_process, "Awake", lambda: awake.Awake(clock, lambda: 0.0))


@pytest.mark.usefixtures("jumping")
def test_a_worker_may_answer_after_a_suspension() -> None:
    with Worker(1, [sys.executable, "-c", ANSWERS.format(seconds=0.2)]) as worker:
        assert worker.ask(60, "anything") == {}


def test_a_worker_that_does_not_answer_is_lost() -> None:
    with Worker(1, [sys.executable, "-c", ANSWERS.format(seconds=60)]) as worker, pytest.raises(Lost, match="no answer within 1 s") as lost:
        worker.ask(1.3, "anything")
    assert lost.value.status is Status.TIMEOUT


class _Dropped:
    def __del__(self) -> None:
        time.sleep(0.15)  # what is raised in here is dropped


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_alarm_that_nobody_hears_rings_again() -> None:
    def work() -> None:
        _Dropped()
        time.sleep(5)

    begin = time.monotonic()
    with pytest.raises(alarm.TooLong, match="over"), alarm.limited(0.05, "over"):
        work()
    assert time.monotonic() - begin < 4


def test_an_alarm_does_not_ring_while_what_it_ended_cleans_up() -> None:
    cleaned = []

    def work() -> None:
        try:
            time.sleep(5)
        finally:
            time.sleep(4 * alarm.AGAIN)
            cleaned.append(True)

    with pytest.raises(alarm.TooLong, match="over"), alarm.limited(0.05, "over"):
        work()
    assert cleaned
