"""Steps from the fastest points of a search, in the order of what they promise."""

from __future__ import annotations

import math
from itertools import product

from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.space.decorations import BUILD
from sparsetune.compiler.space.template import Hole, Template, opened
from sparsetune.tuner.search.refinement import Refinement
from sparsetune.tuner.search.samplers import SAMPLERS, Search
from sparsetune.tuner.search.space import Point, Space

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


def test_nothing_is_known_of_a_search_that_has_not_begun() -> None:
    refinement = Refinement(SPACE)
    assert refinement.choose(lambda point: True) is None
    refinement.tell(Point(0, (64, "static", 1)), None)
    assert refinement.choose(lambda point: True) is None, "nothing starts from a failure"


def test_steps_differ_in_one_hole_from_points_that_may_be_the_fastest() -> None:
    start, close, slow = Point(0, (64, "static", 1)), Point(1, (64, "static", 2)), Point(2, (64, "static", 3))
    refinement, known = Refinement(SPACE), {start: 1.0, close: 1.02, slow: 1.2}
    for point, time in known.items():
        refinement.tell(point, time)
    found: set[Point] = set()
    while (step := refinement.choose(lambda point: point not in known and point not in found)) is not None:
        found.add(step)
    beside = {
        point for point in all_points() for begin in (start, close)
        if point.template == begin.template and sum(a != b for a, b in zip(point.values, begin.values, strict=True)) == 1
    }  # fmt: skip
    assert found == beside


def test_the_step_is_taken_that_was_worth_most_elsewhere() -> None:
    """Chunks of 16 were the faster ones in another structure, which is slow as such."""
    refinement, fast = Refinement(SPACE), Point(0, (64, "static", 1))
    for chunk, kind in product(CHUNK.choices, KIND.choices):
        for unroll in (1, 4):
            point = Point(7, (chunk, kind, unroll))
            refinement.tell(point, 2.0 * (0.8 if chunk == 16 else 1.0))
    for unroll in UNROLL.choices:
        refinement.tell(Point(0, (64, "static", unroll)), 1.0 if unroll == 1 else 1.1)
    assert refinement.choose(lambda point: point != fast) == Point(0, (16, "static", 1))


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
        step = refinement.choose(lambda point: point not in known)
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
