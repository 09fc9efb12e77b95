"""What structures have in common: holes that decide the same about loops of other names, and what a search makes of it."""

from __future__ import annotations

import random

import pytest
from sparsetune.compiler.notation.nodes import Access
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.space.decorations import stream_of, vector_of
from sparsetune.compiler.space.template import Hole, Template
from sparsetune.tuner.search.refinement import Refinement
from sparsetune.tuner.search.roles import carried, keys, meaning, role
from sparsetune.tuner.search.samplers import SAMPLERS, Search
from sparsetune.tuner.search.space import Point, Space


def vectors(loop: str, usual: bool, path: tuple[int, ...] | None = None) -> Hole:
    choice = d.Parallelize(loop, "cpu_vector", "parallel_reduction", path=path)
    label = "_".join(map(str, (loop, *(path or ()))))
    return Hole(vector_of(label), (choice, None) if usual else (None, choice))


def unrolled(loop: str) -> Hole:
    return Hole(f"unroll_{loop}", (None, *(d.Unroll(loop, factor) for factor in (2, 4, 8))))


def stream(loop: str) -> Hole:
    return Hole(stream_of("A", loop), (*(d.Prefetch(loop, Access("A"), distance) for distance in (512, 1024, 128)), None))


BUILD = Hole("build", (None, d.Build(None, "-O2"), d.Build(None, "-O3 -mprefer-vector-width=256"), d.Build(None, "-O3")))
CHUNK = Hole("chunk", (64, 16, 256))


@pytest.mark.parametrize(
    ("hole", "other", "name"),
    [
        (vectors("j", False), vectors("p1", True), "vector"),
        (vectors("j", False, (0,)), vectors("p1", True), "vector"),
        (unrolled("j"), unrolled("p1"), "unroll"),
        (stream("j"), stream("p1"), "stream_A"),
    ],
)
def test_holes_about_loops_of_other_names_have_the_same_role_and_meanings(hole: Hole, other: Hole, name: str) -> None:
    assert role(hole) == role(other) == name
    assert {meaning(hole, choice) for choice in hole.choices} == {meaning(other, choice) for choice in other.choices}
    assert len({meaning(hole, choice) for choice in hole.choices}) == len(hole.choices)


def test_holes_that_are_about_no_loop_keep_their_names() -> None:
    assert [role(hole) for hole in (BUILD, CHUNK, unrolled("x"))] == ["build", "chunk", "unroll"]
    assert keys([CHUNK, BUILD], [16, None]) == [("chunk", 16), ("build", "")]
    assert role(Hole("unroll_j", (None, d.Unroll("k", 2)))) == "unroll_j", "about another loop than its name says"


def test_values_are_carried_to_holes_of_the_same_name_or_role() -> None:
    rows, shares = (vectors("j", False), unrolled("j"), CHUNK), (unrolled("p1"), BUILD, vectors("p1", True), stream("p1"))
    found = carried(rows, (rows[0].choices[1], d.Unroll("j", 4), 16), shares)
    assert found == {"unroll_p1": d.Unroll("p1", 4), "vector_p1": shares[2].choices[0]}
    assert carried(rows, (None, None, 16), rows) == {"vector_j": None, "unroll_j": None, "chunk": 16}
    two = (unrolled("j"), unrolled("k"))
    assert carried(two, (None, d.Unroll("k", 8)), two) == {"unroll_j": None, "unroll_k": d.Unroll("k", 8)}, "names first"
    assert carried((Hole("chunk", (1, 2)),), (2,), (CHUNK,)) == {}, "no such choice there"


def structure(number: int) -> Template:
    """A structure that goes through rows, or in shares, and the names of whose loop differ."""
    loop = f"p{number}"
    return Template((d.SplitUp("i", f"o{number}", f"q{number}", 2), vectors(loop, False), unrolled(loop), stream(loop), BUILD))


SPACE = Space(tuple(structure(number) for number in range(10)))


def seconds(point: Point) -> float:
    """Return a made-up time: all structures gain by vectors and by fetching far ahead, and the last but one by 256 bits where it has
    vectors; it is the fastest then, and among the slowest with usual values."""
    vector, unroll, ahead, build = (label for _, label in keys(SPACE.templates[point.template].holes, point.values))
    found = (1 if vector else 1.45) * {"512": 1.08, "1024": 1.0, "128": 1.15}.get(str(ahead)[-5:].strip(", )"), 1.4)
    found *= 1 if unroll else 1.02
    if point.template == 8:
        return found * (1.02 if vector else 1.1) * (0.87 if "256" in str(build) and vector else 1.0)
    return found * (1 + 0.01 * point.template) * (1.3 if str(build) == 'build(auto, "-O3")' else 1.0)


def searched(seed: int, trials: int) -> float:
    """Return the best time of a search over the least of all."""
    strategy, draw = SAMPLERS["two-level"].make(Search(SPACE, trials, seed, None, "test")), random.Random(seed)
    found: list[float] = []
    while len(found) < trials:
        proposal = strategy.ask()
        assert proposal is not None
        point = SPACE.find(proposal.schedule)
        assert point is not None
        found.append(seconds(point))
        strategy.tell(proposal, seconds(point) * draw.gauss(1, 0.01))
    return min(found) / min(seconds(point) for point in SPACE.points())


def test_a_structure_begins_with_what_another_found_about_its_loop() -> None:
    """Three values that gain together only, in a structure of which few points are tried: when values were carried between loops of one
    name alone, all searches ended more than a tenth behind."""
    found = [searched(seed, 80) for seed in range(12)]
    assert max(found) <= 1.1
    assert sum(ratio <= 1.05 for ratio in found) >= 9


def test_steps_are_not_spent_on_a_hole_whose_values_made_no_difference() -> None:
    """An untried value of it promises less than one of a hole of which nothing is known."""
    tile = Hole("tile", tuple(range(1, 40)))
    space = Space((Template((d.SplitUp("i", "o", "q", 2), tile, unrolled("j"))),))
    refinement, known = Refinement(space), set[Point]()
    for place in range(8):
        known.add(point := Point(0, (1 + place, None)))
        refinement.tell(point, 1.0)
    step = refinement.choose(lambda point: point not in known, {0}, lambda structure: Point(structure, (1, None)))
    assert step is not None
    assert step.values[1] is not None
