"""The timing policy and the finals, with clocks that tell what the test wants."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, pairwise, permutations

import pytest
from sparsetune.compiler.deadline import TimeOver
from sparsetune.compiler.errors import TuningError
from sparsetune.tuner.measure.company import Company, Look
from sparsetune.tuner.measure.finals import Burst, Verdict, compare, play
from sparsetune.tuner.measure.order_statistics import fast_end_rank, median, median_interval_ranks
from sparsetune.tuner.measure.outcomes import Measured, Rival
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.measure.rotation import turns
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


def test_median() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5


@pytest.mark.parametrize("count", range(6, 40))
def test_interval_of_the_median_has_the_confidence(count: int) -> None:
    low, high = median_interval_ranks(count)
    held = sum(math.comb(count, below) for below in range(low + 1, high + 1)) / 2**count
    assert held >= 0.95
    if low + 1 < count // 2:
        tighter = sum(math.comb(count, below) for below in range(low + 2, high)) / 2**count
        assert tighter < 0.95


@pytest.mark.parametrize("count", range(1, 120))
def test_the_end_of_the_fastest_tenth_lies_below_its_rank(count: int) -> None:
    def above(rank: int) -> float:
        """The chance that a tenth of runs is faster than the sample of some rank: at most so many samples are of that tenth."""
        return sum(math.comb(count, below) * 0.1**below * 0.9 ** (count - below) for below in range(rank + 1))

    rank = fast_end_rank(count)
    assert above(rank) >= 0.95 or rank == count - 1
    assert rank == 0 or above(rank - 1) < 0.95


def test_paired_ratios_survive_a_machine_that_slows_down() -> None:
    drift = [1 + 0.2 * round_ for round_ in range(10)]
    comparison = compare([1.1 * factor for factor in drift], drift)
    assert comparison.ratio == pytest.approx(1.1)
    assert comparison.low > 1


def finals(speeds: dict[str, float], noise: float = 0.0, rounds: int = 10):
    generator = random.Random(1)
    return play(list(speeds), lambda name: Burst(speeds[name] * generator.uniform(1, 1 + noise)), "", rounds, complexity=len)


def test_fastest_wins() -> None:
    verdict = finals({"": 1.0, "a": 0.5, "b": 0.8}, noise=0.1)
    assert verdict.winner == "a"
    assert verdict.against_default.low > 1.5


def test_default_wins_ties() -> None:
    assert finals({"": 1.0, "a": 0.999, "b": 1.2}, noise=0.2).winner == ""


def test_simplest_of_equals_wins() -> None:
    verdict = finals({"": 1.0, "a, very long": 0.5, "short": 0.5}, noise=0.1)
    assert verdict.winner == "short"
    assert verdict.ties == ("a, very long",)


def test_rounds_go_on_while_it_is_not_known_who_is_close_to_the_fastest() -> None:
    def rounds(noise: float, **speeds: float) -> int:
        verdict = finals({"": 1.0, **speeds}, noise)
        assert verdict is not None
        return len(verdict.times[verdict.winner])

    assert rounds(0.01, a=0.5, b=0.7) == 10  # b is surely slower
    assert rounds(0.01, a=0.5, b=0.501) == 10  # surely by less than 2%
    assert 10 < rounds(0.1, a=0.5, b=0.53) < 40  # known a little later
    assert rounds(0.5, a=0.5, b=0.5) == 40


def test_the_simplest_is_hardly_slower_than_the_fastest() -> None:
    assert finals({"": 1.0, "a, very long": 0.5, "short": 0.53}, noise=0.15).winner == "a, very long"


def test_who_is_slower_by_the_median_is_no_simplest_of_equals() -> None:
    """A sixth of so few rounds was disturbed: an interval that holds everything says nothing of who is as fast."""
    times = {"": [4.0] * 40, "fast, long": [2.0, 2.0, 2.0, 2.0, 2.0, 2.6] * 7, "a": [2.4] * 40}
    calls: dict[str, int] = dict.fromkeys(times, 0)

    def run(name: str) -> Burst:
        calls[name] += 1
        return Burst(times[name][calls[name] - 1])

    verdict = play(list(times), run, "", 6, seconds=0.0)
    assert verdict is not None
    assert verdict.winner == "fast, long"


def test_default_ties_with_what_does_not_beat_it() -> None:
    assert finals({"": 1.0, "a": 0.999, "b": 1.5}, noise=0.2).ties == ("a",)


def test_winner_beats_the_default_itself_not_only_by_a_tie() -> None:
    times = {"": [4.0] * 40, "fast, long": [2.0] * 40, "a": [5.0, 1.0] * 20}
    calls: dict[str, int] = dict.fromkeys(times, 0)

    def run(name: str) -> Burst:
        calls[name] += 1
        return Burst(times[name][calls[name] - 1])

    verdict = play(list(times), run, "", 10)
    assert verdict is not None
    assert verdict.winner == "fast, long"


def test_bursts() -> None:
    assert burst_size(0.015, 3e-5) == (2, 250)
    assert burst_size(0.015, 1e-3) == (1, 15)
    assert burst_size(0.015, 0.01) == (1, 5)
    assert burst_size(0.015, 0.5) == (1, 2)


def test_failing_finalist_is_taken_out() -> None:
    calls: list[str] = []

    def run(name: str) -> Burst | None:
        calls.append(name)
        return None if name == "bad" and calls.count("bad") == 2 else Burst(1.0)

    verdict = play(["", "bad"], run, "", 6)
    assert verdict is not None
    assert verdict.winner == ""
    assert calls.count("bad") == 2


def test_failing_default_gives_no_verdict() -> None:
    assert play(["", "a"], lambda name: None if name == "" else Burst(1.0), "", 6) is None


def in_seconds(end: float, times: Mapping[str, Sequence[float]]) -> Verdict | None:
    """Play finals whose time is over at a moment of a simulated clock; a burst takes one run."""
    now, calls = 0.0, dict.fromkeys(times, 0)

    def run(name: str) -> Burst:
        nonlocal now
        seconds = times[name][calls[name] % len(times[name])]
        calls[name] += 1
        now += seconds
        if now > end:
            raise TimeOver
        return Burst(seconds)

    return play(list(times), run, "", 6, clock=lambda: now)


def test_rounds_that_were_played_decide_where_the_time_is_over() -> None:
    verdict = in_seconds(27.0, {"": (4.0, 4.4, 4.0), "a": (2.0, 2.0, 2.0), "b": (3.0, 3.0, 3.0)})
    assert verdict is not None
    assert (verdict.winner, verdict.ties, verdict.disturbed) == ("a", (), False)
    assert verdict.times[""] == (4.0, 4.4)
    assert verdict.against_default.ratio == pytest.approx(2.1)
    assert verdict.against_default.low < 2.0 < 2.2 < verdict.against_default.high
    assert in_seconds(8.9, {"": (4.0,), "a": (2.0,), "b": (3.0,)}) is None


def test_one_round_tells_no_small_difference() -> None:
    alike = in_seconds(11.0, {"": (4.0,), "a, very long": (2.98,), "short": (3.0,)})
    assert alike is not None
    assert (alike.winner, alike.ties) == ("short", ("a, very long",))
    default = in_seconds(8.0, {"": (4.0,), "a": (3.95,)})
    assert default is not None
    assert (default.winner, default.ties) == ("", ("a",))


def test_a_thread_is_not_taken_for_two_where_others_keep_the_cores() -> None:
    waited = 0.5 * 0.008
    samples = [Sample(0.008, Company(0.008, waited)).as_row()] * 5
    reply = {"status": "ok", "seconds": 0.008, "samples": samples, "interval": (0.008, 0.008), "disturbed": True, "stopped": "time"}
    reply |= {"ratio": 1.0, "ratio_interval": (0.9, 1.1), "rival_least": None, "conversion": 0.0}
    found = Measured.from_reply(reply, Rival("two threads", 0.002), Policy())
    assert (found.seconds, found.low, found.high) == (0.004,) * 3
    slow = Measured.from_reply(reply, Rival("another", 0.006), Policy())
    assert (slow.seconds, slow.low) == (0.006, pytest.approx(0.0054))


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


def in_company(disturbed: Callable[[int], bool], rounds: int = 10) -> tuple[Verdict, int]:
    """Play one thread against two, which are twice as fast where nobody disturbs; return the verdict and how many rounds there were."""
    calls: list[str] = []

    def run(name: str) -> Burst:
        calls.append(name)
        crowd = disturbed((len(calls) - 1) // 2)
        return Burst(4.0 if crowd or name == "" else 2.0, crowd)

    verdict = play(["", "two threads"], run, "", rounds)
    assert verdict is not None
    return verdict, len(calls) // 2


def test_disturbed_rounds_are_repeated() -> None:
    verdict, rounds = in_company(lambda number: number < 12)
    assert (verdict.winner, verdict.against_default.ratio, verdict.disturbed, rounds) == ("two threads", 2.0, False, 22)
    assert verdict.times[""] == (4.0,) * 10


def test_disturbed_rounds_count_where_there_are_no_others() -> None:
    verdict, rounds = in_company(lambda number: number >= 5)
    assert (verdict.disturbed, rounds) == (True, 40)
    assert len(verdict.times[""]) == 40


def test_rounds_with_lucky_samples_count_where_there_are_too_few_without_company() -> None:
    """One of two threads is as fast as it is alone in four rounds, a third slower by luck in twelve, and no faster than one in the rest."""

    def winner(alone: int, lucky: int) -> tuple[str, float]:
        calls: list[str] = []

        def run(name: str) -> Burst:
            calls.append(name)
            number = (len(calls) - 1) // 2
            seconds = 2.0 if number < alone else 3.0 if number < alone + lucky else 5.0
            return Burst(4.0 if name == "" else seconds, number >= alone + lucky, number >= alone)

        verdict = play(["", "two threads"], run, "", 10)
        assert verdict is not None
        return verdict.winner, verdict.against_default.ratio

    assert winner(10, 12) == ("two threads", 2.0)
    assert winner(4, 12) == ("two threads", pytest.approx(4 / 3))
    assert winner(0, 0) == ("", 1.0)


def test_finalists_take_turns() -> None:
    calls: list[str] = []

    def run(name: str) -> Burst:
        calls.append(name)
        return Burst(1.0)

    play(["", "a"], run, "", 6)
    assert calls[:6] in (["", "a"] * 3, ["a", ""] * 3)


def test_nobody_runs_twice_in_a_row_or_always_after_the_same_other() -> None:
    rounds = list(islice(turns("abcd"), 60))
    assert all(sorted(order) == list("abcd") for order in rounds)
    line = [name for order in rounds for name in order]
    pairs = Counter(pairwise(line))
    assert set(pairs) == set(permutations("abcd", 2))
    assert max(pairs.values()) < 3 * min(pairs.values())
    assert rounds == list(islice(turns("abcd"), 60))
    assert next(turns("a")) == ["a"]


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
