"""The timing policy, with clocks that tell what the test wants."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from sparsetune.compiler.errors import TuningError
from sparsetune.tuner.measure.company import Company, Look
from sparsetune.tuner.measure.outcomes import Measured, Rival
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.sampling import PATIENCE, Contestant, Sample, burst, burst_size
from sparsetune.tuner.measure.timing import Known, Timing, measure


class FakeKernel:
    """A kernel and the clock that its runs advance."""

    def __init__(self, durations) -> None:
        self.durations = durations
        self.now = 0.0
        self.runs = 0

    def __call__(self) -> None:
        self.now += self.durations(self.runs)
        self.runs += 1

    def clock(self) -> float:
        return self.now


def test_steady_kernel_stops_at_the_fewest_repeats() -> None:
    kernel = FakeKernel(lambda _: 0.01)
    timing = measure(Contestant(kernel), Policy(), clock=kernel.clock)
    assert timing.stopped == "confirmed"
    assert len(timing.times) == Policy().min_repeats
    assert timing.seconds == pytest.approx(0.01)


def test_warm_up_does_not_count() -> None:
    kernel = FakeKernel(lambda run: 1.0 if run == 0 else 0.01)
    timing = measure(Contestant(kernel), Policy(max_seconds=10), clock=kernel.clock)
    assert max(timing.times) == pytest.approx(0.01)


def test_noise_asks_for_more_repeats() -> None:
    noise = random.Random(0)
    kernel = FakeKernel(lambda _: 0.001 * noise.uniform(1, 4))
    timing = measure(Contestant(kernel), Policy(), clock=kernel.clock)
    assert len(timing.times) > 20
    assert timing.seconds < 0.00105


def test_interrupted_runs_do_not_count() -> None:
    noise = random.Random(0)
    kernel = FakeKernel(lambda _: 0.001 if noise.random() < 0.2 else 0.02 * noise.random() + 0.002)
    assert measure(Contestant(kernel), Policy(), clock=kernel.clock).seconds == pytest.approx(0.001)


def test_short_kernels_run_several_times_a_sample() -> None:
    kernel = FakeKernel(lambda _: 1e-6)
    timing = measure(Contestant(kernel), Policy(), clock=kernel.clock)
    assert timing.seconds == pytest.approx(1e-6)
    assert kernel.runs >= 500 * Policy().min_repeats


def test_cold_runs_are_timed_one_by_one_without_what_empties_the_caches() -> None:
    kernel = FakeKernel(lambda _: 1e-5)

    def empty() -> None:
        kernel.now += 1.0

    timing = measure(Contestant(kernel, before=empty), Policy(cache="cold", max_seconds=1000), clock=kernel.clock)
    assert timing.seconds == pytest.approx(1e-5)
    assert kernel.runs == Policy().min_repeats + 1
    assert burst_size(0.015, 1e-5, cold=True) == (1, 5)


def test_caches_are_warm_or_cold() -> None:
    with pytest.raises(TuningError, match="cache is 'hot': one of warm, cold is expected"):
        Policy(cache="hot")


def test_time_ends_it() -> None:
    kernel = FakeKernel(lambda run: 0.3 + 0.1 * (run % 3))
    assert measure(Contestant(kernel), Policy(max_seconds=1), clock=kernel.clock).stopped == "time"
    assert kernel.runs <= 7


def race(candidate: FakeKernel, rival: float, policy: Policy | None = None, counters=None) -> Timing:
    """Time a fake kernel beside a rival of so many seconds, on one clock."""

    def beside() -> None:
        candidate.now += rival

    return measure(Contestant(candidate), policy or Policy(), Contestant(beside), counters, candidate.clock)


def test_hopeless_candidate_of_long_runs_is_dropped_after_one() -> None:
    kernel = FakeKernel(lambda _: 1.0)
    timing = race(kernel, 0.1)
    assert timing.stopped == "losing"
    assert kernel.runs == 1


def test_losing_candidate_is_dropped_after_three_pairs() -> None:
    timing = race(FakeKernel(lambda _: 0.14), 0.1)
    assert (timing.stopped, len(timing.times)) == ("losing", 3)


def test_candidate_that_was_ahead_once_is_not_losing() -> None:
    timing = race(FakeKernel(lambda run: 0.01 if run == 3 else 0.05), 0.01, Policy(max_seconds=5))
    assert timing.stopped != "losing"
    assert timing.seconds == pytest.approx(0.01)


def test_close_candidate_is_measured_in_full() -> None:
    assert race(FakeKernel(lambda _: 0.11), 0.1, Policy(max_seconds=5)).stopped == "confirmed"


def test_a_machine_that_slows_down_makes_nobody_lose() -> None:
    """The rival took 0.1 s when it was measured; now everything takes three times as long."""
    timing = race(FakeKernel(lambda _: 0.29), 0.3, Policy(max_seconds=50))
    assert timing.stopped == "confirmed"
    assert timing.ratio == pytest.approx(0.29 / 0.3)


def test_who_is_behind_for_sure_is_not_measured_to_the_end() -> None:
    """A fifth slower in every pair, and never twice as fast in a row as to be confirmed; one that is behind by the same in the mean alone
    goes on."""
    policy = Policy(max_seconds=50, spread=1e-4)
    timing = race(FakeKernel(lambda run: 0.12 + run * 1e-4), 0.1, policy)
    assert (timing.stopped, len(timing.samples)) == ("behind", 6)
    unsure = race(FakeKernel(lambda run: (0.145 if run % 2 else 0.095) + run * 1e-4), 0.1, policy)
    assert unsure.stopped != "behind"


class Crowd:
    """Counters of a machine on which some samples were disturbed, by their numbers; ``worked`` gives the processor time."""

    def __init__(self, disturbed: Callable[[int], bool], worked: Callable[[], float] = lambda: 0.0) -> None:
        self.disturbed = disturbed
        self.worked = worked
        self.samples = 0

    def begin(self) -> Look:
        return Look(0.0)

    def since(self, before: Look) -> Company:
        self.samples += 1
        return Company(0.01, waited=0.009 if self.disturbed(self.samples - 1) else 0.0)


def test_disturbed_samples_are_taken_again_and_not_judged() -> None:
    """Each second sample of the candidate is ten times too long, and the machine says so."""
    kernel = FakeKernel(lambda run: 0.1 if run % 2 else 0.01)
    timing = measure(Contestant(kernel), Policy(), None, Crowd(lambda number: number % 2 == 1), kernel.clock)
    assert timing.stopped == "confirmed"
    assert not timing.disturbed
    assert timing.seconds == pytest.approx(0.01)
    assert len(timing.times) > Policy().min_repeats


def test_under_disturbance_that_never_ends_the_ratio_in_the_same_window_counts() -> None:
    kernel = FakeKernel(lambda _: 0.08)
    timing = race(kernel, 0.04, counters=Crowd(lambda number: True))
    assert timing.stopped == "time"
    assert timing.disturbed
    assert timing.ratio == pytest.approx(2)
    assert kernel.now < 3


def test_disturbed_pairs_do_not_make_a_candidate_lose() -> None:
    kernel = FakeKernel(lambda run: 0.02 if run < 12 else 0.01)
    timing = race(kernel, 0.01, Policy(max_seconds=5), Crowd(lambda number: number < 24))
    assert timing.stopped == "confirmed"
    assert timing.ratio == pytest.approx(1)


def test_waiting_counts_out_of_what_is_hopeless() -> None:
    """A run of 1 s of which 0.9 s were spent waiting for a core says nothing of a candidate of 0.1 s."""
    sample = Sample(1.0, Company(1.0, waited=0.9))
    assert sample.least == pytest.approx(0.1)
    assert sample.company.disturbed


def test_pairs_in_company_compare_by_processor_time() -> None:
    """Of a short run some samples had all cores by luck, of the long run beside it none."""
    lucky, never = Sample(1.1, Company(1.1), 2.4, threads=2), Sample(9.0, Company(9.0, waited=6.0), 4.8, threads=2)
    timing = Timing((lucky,) * 6, (never,) * 6, "time")
    assert timing.ratio == pytest.approx(0.5)
    assert timing.ratio_interval == pytest.approx((0.5, 0.5))


def test_what_a_call_takes_beside_the_run_counts_in_every_sample() -> None:
    kernel = FakeKernel(lambda _: 0.01)
    timing = measure(Contestant(kernel, 0.005), Policy(), clock=kernel.clock)
    assert timing.seconds == pytest.approx(0.015)


def test_what_a_call_takes_beside_the_run_is_shared_by_no_threads() -> None:
    """A conversion of 5 ms before 16 ms of work for two threads, of which one had no core: in company that looked like 13 ms."""
    kernel = FakeKernel(lambda _: 0.016)
    crowd = Crowd(lambda number: True, kernel.clock)
    timing = measure(Contestant(kernel, 0.005, threads=2), Policy(), None, crowd, kernel.clock)
    assert timing.disturbed
    assert timing.seconds == pytest.approx(0.005 + 0.016 / 1.6)


def test_bursts_take_disturbed_samples_again() -> None:
    kernel = FakeKernel(lambda _: 0.01)
    assert len(burst(Contestant(kernel), 1, 5, Crowd(lambda number: number < 3), kernel.clock)) == 8
    assert len(burst(Contestant(kernel), 1, 5, Crowd(lambda number: True), kernel.clock)) == 5 * PATIENCE


def test_bursts() -> None:
    assert burst_size(0.015, 3e-5) == (2, 250)
    assert burst_size(0.015, 1e-3) == (1, 15)
    assert burst_size(0.015, 0.01) == (1, 5)
    assert burst_size(0.015, 0.5) == (1, 2)


def test_a_window_in_which_the_rival_is_slower_than_before_is_disturbed() -> None:
    """Others on the same memory keep no core from anybody: trials of such moments were taken for up to 1.6 times as slow as they are."""
    samples = [Sample(0.0026, Company(0.0026)).as_row()] * 6
    reply = {"status": "ok", "seconds": 0.0026, "samples": samples, "interval": (0.0026, 0.0027), "disturbed": False, "stopped": ""}
    reply |= {"ratio": 1.04, "ratio_interval": (1.02, 1.06), "rival_least": 0.0025, "conversion": 0.0}
    found = Measured.from_reply(reply, Rival("best", 0.0015), Policy())
    assert found.disturbed
    assert (found.seconds, found.low, found.high) == pytest.approx((0.00156, 0.00156, 0.00159))
    for rival in (Rival("as fast as before", 0.0024), Rival("known in company alone", 0.0015, disturbed=True)):
        found = Measured.from_reply(reply, rival, Policy())
        assert (found.seconds, found.disturbed) == (0.0026, False)


def long_run(seconds: float) -> Sample:
    return Sample(seconds, Company(0.0))


def never() -> None:
    raise AssertionError("it need not run again")


def test_a_long_run_that_is_hopeless_is_not_repeated() -> None:
    known = Known(long_run(4.0), rival=0.02)
    timing = measure(Contestant(never), Policy(), Contestant(never), known=known)
    assert (timing.times, timing.stopped) == ((4.0,), "losing")
    alone = measure(Contestant(never), Policy(), known=Known(long_run(4.0)))
    assert (alone.times, alone.stopped) == ((4.0,), "time")


def test_a_long_rival_that_is_hopeless_is_not_run_again() -> None:
    kernel = FakeKernel(lambda _: 0.01)
    timing = measure(Contestant(kernel), Policy(), Contestant(never), clock=kernel.clock, known=Known(long_run(0.01), rival=4.0))
    assert timing.stopped == "confirmed"
    assert timing.seconds == pytest.approx(0.01)
