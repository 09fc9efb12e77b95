"""Strategies: nothing twice, everything when it fits, the same with the same seed, and taken up after a crash."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
from search_runs import LARGE, MODELLED, SMALL, cost, run, study, text, threads
from sparsetune.compiler.errors import TuningError
from sparsetune.tuner.search.allocator import Allocator
from sparsetune.tuner.search.beyond import WithDraws
from sparsetune.tuner.search.drawn import Drawn
from sparsetune.tuner.search.samplers import SAMPLERS, Sampler, Search, choose_strategy, register_sampler
from sparsetune.tuner.search.space import Point, Space
from sparsetune.tuner.search.strategy import Exhaustive, Strategy


def test_space() -> None:
    assert SMALL.size == 2 + 10 + 1
    schedules = [SMALL.schedule(point) for point in SMALL.points()]
    a, b, c = ("parallelize(a, cpu_thread, no_races, static)", "parallelize(b, cpu_thread, no_races, static, 64)",
               "parallelize(c, cpu_thread, no_races, static)")  # fmt: skip
    assert schedules[:3] == [a, b, c]
    assert len(set(schedules)) == len(schedules) == SMALL.size
    assert SMALL.digest != LARGE.digest
    assert SMALL.digest == Space(SMALL.templates).digest


def test_exhaustive_lists_everything_once() -> None:
    strategy = Exhaustive(SMALL)
    known = "parallelize(b, cpu_thread, no_races, dynamic, 1)"
    strategy.know(known, 1.0)
    found = run(strategy, 100, lambda _: 1.0)
    assert len(found) == SMALL.size - 1
    assert known not in found


def test_choice_of_strategy() -> None:
    assert isinstance(choose_strategy(Search(SMALL, 13, 0, None, "s")), Exhaustive)
    assert not isinstance(choose_strategy(Search(SMALL, 12, 0, None, "s")), Exhaustive)
    with pytest.raises(TuningError, match=r"there is no sampler 'tps', but two-level, tpe, .*; did you mean 'tpe'"):
        choose_strategy(Search(SMALL, 12, 0, None, "s"), "tps")


def test_samplers_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.tuner.search.samplers.SAMPLERS", dict(SAMPLERS))
    register_sampler("first", Sampler(lambda search: Exhaustive(search.space), "in order"))
    found = run(choose_strategy(Search(LARGE, 4, 0, None, "s"), "first"), 1)
    assert found == [text(0, 64, "static", 1)]
    with pytest.raises(TuningError, match="there is a sampler 'first' already"):
        register_sampler("first", Sampler(lambda search: Exhaustive(search.space), "in order"))


def test_points_are_found_by_their_texts() -> None:
    for space in (SMALL, LARGE):
        assert all(space.find(space.schedule(point)) == point for point in space.points())
    assert SMALL.find("unroll(x, 2)") is None


@pytest.mark.parametrize("name", SAMPLERS)
def test_nothing_is_proposed_twice_and_searches_end(name: str) -> None:
    found = run(study(SMALL, name=name), 100, lambda schedule: float(len(schedule)))
    assert len(found) == len(set(found)) == SMALL.size


def test_tpe_tries_usual_values_first() -> None:
    assert run(study(LARGE), 3) == [text(number, 64, "static", 1) for number in range(3)]


@pytest.mark.parametrize("name", MODELLED)
def test_what_is_good_is_found(name: str) -> None:
    found = run(study(LARGE, name=name, trials=60), 60)
    best = min((value, schedule) for schedule in found if (value := cost(schedule)) is not None)
    exhaustive = min(value for point in LARGE.points() if (value := cost(LARGE.schedule(point))) is not None)
    assert best[0] <= 1.15 * exhaustive


@pytest.mark.parametrize("name", ["two-level", "tpe"])
def test_what_fails_is_avoided(name: str) -> None:
    found = run(study(LARGE, name=name), 50)
    assert sum("(t1," in schedule for schedule in found) <= 3


@pytest.mark.parametrize("name", ["two-level", "tpe", "grouped-tpe", "local", "random"])
def test_same_seed_same_search(name: str) -> None:
    first = run(study(LARGE, seed=7, name=name), 30)
    assert first == run(study(LARGE, seed=7, name=name), 30)
    assert first != run(study(LARGE, seed=8, name=name), 30)


@pytest.mark.parametrize("name", SAMPLERS)
def test_known_schedules_are_not_proposed(name: str) -> None:
    strategy = study(LARGE, name=name)
    strategy.know(text(0, 64, "static", 1), 1.0)
    assert text(0, 64, "static", 1) not in run(strategy, 10)


def test_several_are_asked_before_one_is_told() -> None:
    strategy = study(LARGE, name="two-level")
    asked = [strategy.ask() for _ in range(8)]
    assert len({proposal.schedule for proposal in asked if proposal is not None}) == 8
    for proposal in asked:
        assert proposal is not None
        strategy.tell(proposal, cost(proposal.schedule))
    assert strategy.ask() is not None


def test_a_structure_begins_with_the_best_of_its_siblings() -> None:
    strategy = study(LARGE, name="two-level")
    for chunk, unroll in ((64, 1), (256, 1), (256, 4)):
        strategy.know(text(0, chunk, "static", unroll), 1.0 / chunk / unroll)
    first = {}
    for schedule in run(strategy, 20, lambda schedule: 1e-3):
        found = LARGE.find(schedule)
        assert found is not None
        first.setdefault(found.template, found)
    assert {number: point.values for number, point in first.items() if number} == dict.fromkeys(range(1, 6), (256, "static", 4))


def test_structures_that_are_alike_have_times_alike() -> None:
    texts = ("collapse(i, j, f); pos(f, p, A)", "collapse(i, j, f); pos(f, p, A); unroll(p, 2)", "reorder(j, i)", "unroll(k, 2)")
    allocator = Allocator(texts)
    assert allocator.choose(range(4)) == 0  # nothing is known but the ranking
    allocator.tell(0, 1.0)
    allocator.tell(2, 0.1)
    assert allocator.choose({1, 3}) == 3
    slow = Allocator(texts)
    slow.tell(0, 0.1)
    slow.tell(2, 1.0)
    assert slow.choose({1, 3}) == 1


def test_points_need_no_holes() -> None:
    space = Space(tuple(threads(f"t{number}") for number in range(9)))
    found = run(study(space, name="two-level"), 100, lambda schedule: 1.0)
    assert len(found) == 9
    assert space.find(found[0]) == Point(0, ())


@dataclass
class Fixed:
    """Draws that are known before."""

    schedules: list[str]
    asked: list[tuple[list[str], set[str]]] = field(default_factory=list)

    def draw(self, best: Sequence[tuple[float, str]], known: Collection[str]) -> str | None:
        self.asked.append(([schedule for _, schedule in best], set(known)))
        return next((one for one in self.schedules if one not in known), None)


def drawn_between(sampler: Strategy, draws: Fixed, seconds: Callable[[str], float], most: int) -> list[str]:
    """Return what is proposed, in order."""
    strategy, found = WithDraws(sampler, draws), []
    while len(found) < most and (proposal := strategy.ask()) is not None:
        found.append(proposal.schedule)
        strategy.tell(proposal, seconds(proposal.schedule))
    return found


def test_draws_stand_between_what_a_sampler_proposes() -> None:
    """Seldom where they gain nothing; the sampler begins."""
    draws = Fixed([f"drawn {number}" for number in range(9)])
    found = drawn_between(Exhaustive(SMALL), draws, lambda schedule: 2.0 if schedule.startswith("drawn") else 1.0, SMALL.size)
    places = [place for place, schedule in enumerate(found) if schedule.startswith("drawn")]
    assert places
    assert places[0] >= 6
    assert len(set(found)) == len(found)


def test_draws_that_gain_are_followed_by_more() -> None:
    gain = count(1)
    times = {f"drawn {number}": 1.0 / next(gain) for number in range(9)}
    draws = Fixed(list(times))
    many = drawn_between(Drawn(LARGE, 1), draws, lambda schedule: times.get(schedule, 2.0), 24)
    few = drawn_between(Drawn(LARGE, 1), Fixed(list(times)), lambda schedule: 3.0 if schedule in times else 2.0, 24)
    assert sum(one in times for one in many) > sum(one in times for one in few)
    assert draws.asked[-1][0][0] in times, "the fastest so far comes first"


def test_draws_go_on_when_a_sampler_has_no_more() -> None:
    draws = Fixed(["drawn 1", "drawn 2"])
    found = drawn_between(Exhaustive(SMALL), draws, lambda schedule: 1.0, 10_000)
    assert len(found) == SMALL.size + 2


def test_the_exhaustive_sampler_draws_nothing() -> None:
    search = Search(replace(SMALL, beyond=Fixed(["drawn"])), 1000, 0, None, "s")
    assert isinstance(choose_strategy(search, "exhaustive"), Exhaustive)
    assert isinstance(choose_strategy(search), WithDraws)
