"""Steps from the fastest points of a search, in the order of what they promise."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sparsetune.compiler.native import blas
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.space.decorations import BUILD
from sparsetune.compiler.space.template import Hole, Template, Value, opened
from sparsetune.tuner.search import surrogate
from sparsetune.tuner.search.refinement import Refinement
from sparsetune.tuner.search.samplers import SAMPLERS, Search
from sparsetune.tuner.search.space import Point, Space
from sparsetune.tuner.search.surrogate import Surrogate

CHUNK = Hole("chunk", (64, 1, 4, 16, 256))
KIND = Hole("kind", ("static", "dynamic", "guided"))
UNROLL = Hole("u", tuple(range(1, 9)))


def structure(loop: str) -> Template:
    loops = opened(d.Parallelize(loop, "cpu_thread", "no_races", "static"), chunk=CHUNK, chunking=KIND)
    return Template((loops, opened(d.Unroll("x", 1), factor=UNROLL)))


SPACE = Space(tuple(structure(f"t{number}") for number in range(8)))


def seconds(point: Point) -> float:
    """Return a made-up time: a structure's own, and factors of what is in the holes, which go together."""
    chunk, kind, unroll = point.values
    assert isinstance(chunk, int)
    assert isinstance(unroll, int)
    fitting = 0.9 if kind == "guided" and unroll == 6 else 1.0
    return (1 + 0.1 * point.template) * (1 + 0.05 * abs(math.log2(chunk / 16))) * (1 + 0.02 * abs(unroll - 6)) * fitting


def all_points() -> list[Point]:
    holes = [template.holes for template in SPACE.templates]
    return [Point(number, values) for number, some in enumerate(holes) for values in product(*(hole.choices for hole in some))]


def first(structure: int) -> Point:
    return Point(structure, tuple(hole.usual for hole in SPACE.templates[structure].holes))


def are_beside(point: Point, begin: Point) -> bool:
    """Tell whether points differ in one hole, or in two numbers that are neighbours."""
    ranks = [(sorted(hole.choices, key=str) if isinstance(hole.usual, str) else sorted(hole.choices)) for hole in SPACE.templates[0].holes]
    places = [(rank.index(one), rank.index(other)) for rank, one, other in zip(ranks, point.values, begin.values, strict=True)]
    apart = [abs(one - other) for one, other in places]
    return point.template == begin.template and (sum(map(bool, apart)) == 1 or (apart[1] == 0 and apart == [1, 0, 1]))


def test_no_threads_of_a_library_spin_beside_what_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = blas._counts()
    if found is None:
        pytest.skip("SciPy's BLAS has no threads")
    count, change = found
    before, seen = count(), []

    def watched(*given: object, **more: object) -> object:
        seen.append(count())
        raise ValueError("no matrix")

    monkeypatch.setattr(surrogate, "cholesky", watched)
    times = {point: math.log(seconds(point)) for point in all_points()[:30]}
    change(2)
    try:
        with pytest.raises(ValueError, match="no matrix"):
            Surrogate(SPACE).expected(times, all_points()[40:60])
        assert seen == [1]
        assert count() == 2
    finally:
        change(before)


def test_nothing_is_known_of_a_search_that_has_not_begun() -> None:
    refinement = Refinement(SPACE)
    assert refinement.choose(lambda point: True, range(8), first) is None
    refinement.tell(Point(0, (64, "static", 1)), None)
    assert refinement.choose(lambda point: True, range(8), first) is None, "nothing is known of times"


def test_steps_lie_beside_the_fastest_points_of_structures_and_those_that_may_be_the_fastest() -> None:
    starts = [Point(0, (64, "static", 1)), Point(1, (64, "static", 2)), Point(1, (16, "guided", 7)), Point(2, (64, "static", 3))]
    slow = Point(0, (1, "guided", 8))
    refinement, known = Refinement(SPACE), dict(zip(starts, (1.0, 1.01, 1.02, 1.5), strict=True)) | {slow: 1.2}
    for point, time in known.items():
        refinement.tell(point, time)
    found: set[Point] = set()
    while (step := refinement.choose(lambda point: point not in known and point not in found, {0, 1, 2, 5}, first)) is not None:
        found.add(step)
    assert found == {point for point in all_points() if any(are_beside(point, one) for one in starts)} - known.keys() | {first(5)}


def test_what_is_like_a_failure_is_less_likely_to_work() -> None:
    near, far, other = (Point(number, (64, "static", unroll)) for number, unroll in ((1, 2), (1, 8), (0, 2)))
    chances = Surrogate(SPACE).chance((), [Point(1, (64, "static", 1))], [near, far, other])
    assert chances[0] < chances[1] < chances[2] == 1


def test_a_structure_that_fails_goes_on_far_from_its_failures_until_it_is_given_up() -> None:
    strategy, tried = SAMPLERS["two-level"].make(Search(SPACE, 60, 0, None, "test")), list[tuple[Value, ...]]()
    for _ in range(60):
        proposal = strategy.ask()
        assert proposal is not None
        point = SPACE.find(proposal.schedule)
        assert point is not None
        if point.template == 0:
            tried.append(point.values)
        strategy.tell(proposal, None if point.template == 0 else seconds(point))
    assert tried == [(64, "static", 1), (1, "dynamic", 8), (4, "guided", 4)]


def test_structures_that_were_not_tried_are_expected_to_gain_as_others_have() -> None:
    """The same times in another order: where the first was the slowest, steps have halved it."""
    points, others = [Point(0, (64, "static", unroll)) for unroll in UNROLL.choices], [first(number) for number in range(1, 5)]
    begun = list[bool]()
    for times in (range(16, 8, -1), range(9, 17)):
        refinement = Refinement(SPACE)
        for point, time in zip(points + others, [*times, *[14] * 4], strict=True):
            refinement.tell(point, time / 8)
        step = refinement.choose(lambda point: point not in points + others, range(6), first)
        begun.append(step == first(5))
    assert begun == [True, False]


def test_values_count_less_in_a_structure_whose_points_take_as_long() -> None:
    """The flat one hardly has anything better, so that what is not known of the other is worth more."""
    tried, new = [(chunk, "static", unroll) for chunk in CHUNK.choices for unroll in (1, 4)], (16, "guided", 8)
    times = {Point(number, values): 0.1 * number * place for number in (0, 1) for place, values in enumerate(tried)}
    scale = Surrogate(SPACE).expected(times, [Point(0, new), Point(1, new)]).scale
    assert 1.5 * scale[0] < scale[1]


def test_two_numbers_change_together_where_either_alone_is_slower() -> None:
    refinement, start = Refinement(SPACE), Point(0, (16, "static", 4))
    known = {start: 1.0} | {point: 1.3 for point in all_points() if point.template == 0 and are_beside(point, start)
                            and (point.values[0] == 16 or point.values[2] == 4)}  # fmt: skip
    for point, time in known.items():
        refinement.tell(point, time)
    steps = [refinement.choose(lambda point: point not in known, {0}, first) for _ in range(3)]
    assert any(step is not None and are_beside(step, start) for step in steps)


def test_holes_of_one_role_in_a_structure_are_told_apart() -> None:
    """Two loops are unrolled, one of which makes all the difference."""
    holes = [Hole(f"u_{loop}", (None, *(d.Unroll(loop, factor) for factor in (2, 4, 8)))) for loop in ("x", "y")]
    space = Space((Template((*holes,)), SPACE.templates[0]))
    points = [Point(0, values) for values in product(*(hole.choices for hole in holes))]
    found = Surrogate(space).expected({point: float(point.values[0] is None) for point in points}, points)
    assert all((mean > 0.5) == (point.values[0] is None) for mean, point in zip(found.mean, points, strict=True))


def test_numbers_and_words_of_one_role_go_together() -> None:
    """A hole of two numbers is not in order, one of three is; points of both have times that are explained together."""
    few, words = replace(UNROLL, choices=(1, 4)), Hole("u", ("x", "y", "z"))
    space = Space((*SPACE.templates[:2], *(structure("t9").then(opened(d.Unroll("y", 1), factor=one)) for one in (few, words))))
    draw = random.Random(0)
    points = [space.random_point(draw) for _ in range(200)]
    found = Surrogate(space).expected({point: draw.random() for point in points[:100]}, points)
    assert np.isfinite(found.mean).all()
    assert (found.scale > 0).all()


def test_the_step_is_taken_that_was_worth_most_elsewhere() -> None:
    """Chunks of 16 were the faster ones in another structure, which is slow as such."""
    refinement, fast = Refinement(SPACE), Point(0, (64, "static", 1))
    for chunk, kind in product(CHUNK.choices, KIND.choices):
        for unroll in (1, 4):
            point = Point(7, (chunk, kind, unroll))
            refinement.tell(point, 2.0 * (0.8 if chunk == 16 else 1.0))
    for unroll in UNROLL.choices:
        refinement.tell(Point(0, (64, "static", unroll)), 1.0 if unroll == 1 else 1.1)
    assert refinement.choose(lambda point: point != fast, {0}, first) == Point(0, (16, "static", 1))


def test_a_build_is_tried_in_the_structure_that_leads_though_it_gained_nothing_elsewhere() -> None:
    """It was tried in another with everything else."""
    builds = Hole(BUILD, (None, d.Build(None, "-O2"), d.Build(None, "-O3 -mprefer-vector-width=256")))
    space = Space(tuple(structure(f"t{number}").then(builds) for number in range(8)))
    refinement, known = Refinement(space), {Point(0, (chunk, "static", 1, None)) for chunk in CHUNK.choices}
    for values in product(CHUNK.choices, KIND.choices, UNROLL.choices, builds.choices):
        refinement.tell(Point(7, values), 1.2)
    for point in known:
        refinement.tell(point, 1.0)
    for _ in range(4):
        step = refinement.choose(lambda point: point not in known, {0}, first)
        assert step is not None
        known.add(step)
        refinement.tell(step, 1.01)
    assert {point.values[3] for point in known if point.template == 0} == set(builds.choices)


def test_searches_with_other_seeds_end_at_the_same_point() -> None:
    """Without steps eight of these twelve ended at a point that takes a tenth longer."""
    for seed in range(12):
        strategy, times = SAMPLERS["two-level"].make(Search(SPACE, 45, seed, None, "test")), dict[Point, float]()
        while len(times) < 45:
            proposal = strategy.ask()
            assert proposal is not None
            point = SPACE.find(proposal.schedule)
            assert point is not None
            times[point] = seconds(point)
            strategy.tell(proposal, times[point])
        best = min(times, key=lambda point: times[point])
        assert times[best] == min(map(seconds, all_points())), seed
