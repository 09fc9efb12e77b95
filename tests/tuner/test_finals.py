"""The finals: rounds in which finalists take turns, and what these decide, with times that a test gives."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, pairwise, permutations

import pytest
from sparsetune.compiler.deadline import TimeOver
from sparsetune.tuner.measure.finals import Burst, Verdict, compare, play
from sparsetune.tuner.measure.order_statistics import fast_end_rank, median, median_interval_ranks
from sparsetune.tuner.measure.rotation import turns


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


def test_in_company_all_bursts_count_by_processor_time() -> None:
    """A short run has all cores by luck in some sample of each burst, a long one never: by its lucky samples the short one won, though with
    what it converts before (in both of its times) it takes half as long again alone."""
    bursts = {"": Burst(5.1, True, True, 5.1), "long": Burst(4.1, True, True, 4.1), "short, converts": Burst(3.2, False, True, 4.7)}
    verdict = play(list(bursts), bursts.__getitem__, "", 6)
    assert verdict is not None
    assert (verdict.winner, verdict.disturbed) == ("long", True)
    assert verdict.against_default.ratio == pytest.approx(5.1 / 4.1)
    alone = {name: Burst(one.seconds, work=one.by_work) for name, one in bursts.items()}
    verdict = play(list(alone), alone.__getitem__, "", 6)
    assert verdict is not None
    assert verdict.winner == "short, converts", "what nothing disturbed counts as it is"


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


def in_places(places: int) -> tuple[str, list[int]]:
    """Play finals in which "a" takes 3% less than "b" in every place in memory but the first, and 8% more there; return the winner and
    the rounds that were played before each move."""
    played, moves = [0], list[int]()

    def run(name: str) -> Burst:
        played[0] += name == ""
        place = {"": 2.0, "b, with more": 1.0, "a, with most of all": 0.97 if moves else 1.08}
        return Burst(place[name])

    names = ["", "b, with more", "a, with most of all"]
    verdict = play(names, run, "", 11, move=lambda: moves.append(played[0]), places=places)
    assert verdict is not None
    return verdict.winner, moves


def test_the_winner_is_the_fastest_by_the_median_of_places_in_memory() -> None:
    assert in_places(1) == ("b, with more", [])
    winner, moves = in_places(4)
    assert winner == "a, with most of all"
    assert moves[:3] == [3, 6, 9], "eleven rounds are spread over four places"


def test_the_time_may_be_over_while_operands_are_moved() -> None:
    def move() -> None:
        raise TimeOver

    verdict = play(["", "a"], lambda name: Burst(1.0 if name else 2.0), "", 12, move=move, places=2)
    assert verdict is not None
    assert verdict.winner == "a"
    assert len(verdict.times["a"]) == 6


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
