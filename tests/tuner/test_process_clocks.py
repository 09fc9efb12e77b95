"""Clocks of processes: what others take from a run, and what a stopped process tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from sparsetune.tuner.measure.company import Company
from sparsetune.tuner.measure.outcomes import Measured, Rival
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.sampling import Contestant, Counters, Sample, take_sample
from sparsetune.tuner.measure.timing import Timing


def test_processor_time_tells_what_a_run_takes_without_company() -> None:
    """Two threads of 1.1 s each on one core that another process wants too, and one thread of 1.8 s beside such a process."""
    two = Sample(4.4, Company(4.4, waited=3.0), 2.2, threads=2)
    one = Sample(3.6, Company(3.6, waited=1.8), 1.8)
    assert two.alone == pytest.approx(2.2 / 1.6)
    assert one.alone == pytest.approx(1.8)
    assert Sample.from_row(two.as_row()) == two
    assert Sample(1.1, Company(1.1), 2.2, threads=2).alone == 1.1  # nothing disturbed it
    assert Sample(1.0, Company(1.0, waited=0.9)).alone == 1.0  # of before processor time was kept
    assert Sample.from_row(two.as_row()[:8]) == Sample(4.4, Company(4.4, waited=3.0))
    timing = Timing((two,) * 6, (one,) * 6, "time")
    assert timing.disturbed
    assert timing.seconds == pytest.approx(1.375)
    assert timing.ratio == pytest.approx(1.375 / 1.8)


def test_a_stopped_process_is_disturbed() -> None:
    """It neither runs nor waits for a core, so no counter shows it. Threads that wait for each other are none, nor is what is not known."""

    def sample(seconds: float, worked: float) -> Sample:
        clock, work = iter((0.0, seconds)), iter((0.0, worked))
        counters = SimpleNamespace(begin=lambda: None, since=lambda _: Company(seconds), worked=work.__next__)
        return take_sample(Contestant(lambda: None), 1, cast("Counters", counters), clock.__next__)

    stopped = sample(0.052, 0.002)
    assert stopped.company.disturbed
    assert stopped.least == pytest.approx(0.002)
    assert not sample(0.052, 0.045).company.disturbed
    assert not sample(0.052, 0.0).company.disturbed


def test_a_thread_is_not_taken_for_two_where_others_keep_the_cores() -> None:
    waited = 0.5 * 0.008
    samples = [Sample(0.008, Company(0.008, waited)).as_row()] * 5
    reply = {"status": "ok", "seconds": 0.008, "samples": samples, "interval": (0.008, 0.008), "disturbed": True, "stopped": "time"}
    reply |= {"ratio": 1.0, "ratio_interval": (0.9, 1.1), "rival_least": None, "conversion": 0.0}
    found = Measured.from_reply(reply, Rival("two threads", 0.002), Policy())
    assert (found.seconds, found.low, found.high) == (0.004,) * 3
    slow = Measured.from_reply(reply, Rival("another", 0.006), Policy())
    assert (slow.seconds, slow.low) == (0.006, pytest.approx(0.0054))
