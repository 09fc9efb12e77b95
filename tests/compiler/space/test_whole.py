"""The whole space: counted exactly, ranked, written and found again; known schedules are in it, and filters say which they drop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from space_samples import random_operands, reference
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.evaluate import evaluate
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.directives import Build, Join, Split, SplitUp
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.candidates import candidates
from sparsetune.compiler.space.choices import All, Choice, Either, OneOf, perhaps
from sparsetune.compiler.space.decorations import build_choices
from sparsetune.compiler.space.finding import found_in
from sparsetune.compiler.space.full import FullSpace
from sparsetune.compiler.space.library import LIBRARY, NamedSchedule
from sparsetune.compiler.space.options import Options, everything
from sparsetune.compiler.space.whole import WholeSpace
from sparsetune.compiler.space.writing import _Writer, written
from whole_spaces import FILTERS, KERNELS, whole


def of_library(named: NamedSchedule) -> FullSpace:
    assignment = parse(named.expression)
    options, levels = everything(named.target), 3 if named.target == "cuda" else 1
    space = WholeSpace(assignment, formats_of(assignment, dict(named.formats)), options=options, levels=levels)
    return FullSpace(space, dict(named.extents), FILTERS)


LETTERS = OneOf(("a", "b"))


@pytest.mark.parametrize("choice", [LETTERS, All((LETTERS, OneOf(range(3)))), perhaps(Either((LETTERS, OneOf(range(3, 5)))))])
def test_choices_are_numbered(choice: Choice) -> None:
    values = [choice.at(rank) for rank in range(choice.count)]
    assert len(set(values)) == choice.count
    assert [choice.rank(value) for value in values] == list(range(choice.count))
    assert choice.rank("nothing") is None


def test_formats_are_numbered() -> None:
    choice = Options(formats=True).format("A", 2, None, (0, 1))
    formats = [choice.at(rank) for rank in range(choice.count)]
    assert len(set(formats)) == choice.count
    assert [choice.rank(form) for form in formats] == list(range(choice.count))


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_closed_is_listed(name: str) -> None:
    """Nests alone are few: every place has a schedule of its own, which knows its place."""
    space = whole(name).with_options(Options())
    plans = [space.plan(rank) for rank in range(min(space.count(), 150))]
    divisions = [space.starts[0].division] * len(plans)
    assert [space.rank(plan, division) for plan, division in zip(plans, divisions, strict=True)] == list(range(len(plans)))
    with pytest.raises(IndexError):
        space.plan(space.count())


def test_loops_of_one_statement_are_counted_as_orders_of_pieces() -> None:
    """Of ``y(i) = b(i)`` without workspaces: as it is, or cut in two ways into tiles of ten sizes, in both orders."""
    assignment = parse("y(i) = b(i)")
    space = WholeSpace(assignment, formats_of(assignment, {}), options=Options(divisions=True, sizes=range(1, 11)))
    alone = [start for start in space.starts if len(space.structures.groupings[start.number].statements) == 1]
    assert [space.data(start).count * space.nests.grammar.count(space.top(start)) for start in alone] == [1, 2 * 10 * 2]


@pytest.mark.parametrize("name", ["SpMV", "SpMM", "residual"])
def test_every_stage_adds_and_every_filter_narrows(name: str) -> None:
    space = FullSpace(whole(name), filters=FILTERS)
    rows = list(space.stages())
    kept = [row["kept"] for row in rows]
    stages = [row["stage"] for row in rows]
    last = stages.index("numbers")
    assert stages[:4] == ["rewrites", "groupings", "nestings", "loop transformations"]
    assert kept[: last + 1] == sorted(kept[: last + 1])
    assert kept[last] == space.count()
    assert kept[last:] == sorted(kept[last:], reverse=True)
    assert [row["stage"] for row in rows if row["stage"].endswith(", estimated")] == ["accepted, estimated"]
    assert stages[last + 1 :] == [*(one.name for one in FILTERS), "accepted, estimated"]


@pytest.mark.parametrize("name", ["SpMV", "SpMM", "SpGEMM", "residual", "accumulation"])
def test_draws_are_legal_and_found_again(name: str) -> None:
    space = FullSpace(whole(name), filters=FILTERS).filtered()
    drawn = space.sample(4, seed=1)
    assert drawn == space.sample(4, seed=1)
    assert drawn
    for schedule in drawn:
        found = found_in(schedule, space.whole)
        assert found is not None
        assert space.whole.rank(*found) is not None
        assert written(found[0], space.whole) == Schedule(str(schedule)) == schedule
        assert schedule in space


@pytest.mark.parametrize("name", ["SpMV", "SpMM", "SpGEMM", "residual"])
def test_draws_compute_the_expression(name: str) -> None:
    narrowed = FullSpace(whole(name), filters=FILTERS).filtered().whole
    space = FullSpace(narrowed.with_options(replace(narrowed.options, sizes=(2,))))
    assignment = parse(KERNELS[name][0])
    arrays = random_operands(assignment, 3, 1)
    arrays["A"] *= np.random.default_rng(2).random((3, 3)) < 0.5
    expected, default = reference(assignment, arrays, 3), space.whole.default
    drawn = space.sample(4, seed=3)
    assert drawn
    for schedule in drawn:
        program = apply_schedule(default.program, schedule, default.formats)
        (result,) = evaluate(program, arrays, default.formats).values()
        np.testing.assert_array_equal(result, expected, str(schedule))


@pytest.mark.parametrize("name", ["residual", "merged sum", "dense addend"])
def test_sums_of_several_terms_have_tiles(name: str) -> None:
    """Their terms stand in nests of their own, which are cut alike and share loops over tiles."""
    options = Options(divisions=True, divided=1, runs=("positions_are_split",), sizes=(2, 3))
    space = whole(name).with_options(options)
    assignment, default = parse(KERNELS[name][0]), space.default
    arrays = random_operands(assignment, 4, 1)
    arrays["A"] *= np.random.default_rng(2).random((4, 4)) < 0.5
    expected = reference(assignment, arrays, 4)
    shared = 0
    for schedule in FullSpace(space).sample(6, seed=4):
        found = found_in(schedule, space)
        assert found is not None
        assert space.rank(*found) is not None
        assert written(found[0], space) == Schedule(str(schedule)) == schedule
        program = apply_schedule(default.program, schedule, default.formats)
        (result,) = evaluate(program, arrays, default.formats).values()
        np.testing.assert_array_equal(result, expected, str(schedule))
        cut = [directive for directive in schedule if isinstance(directive, Split | SplitUp)]
        shared += any(isinstance(directive, Join) and cut and directive.index in (cut[0].outer, cut[0].inner) for directive in schedule)
    assert shared


@pytest.mark.parametrize(
    "schedule", ["split(i, i0, i1, 32)", "split(j, j0, j1, 32)", "split_up(i, i0, i1, 4); parallelize(i0, cpu_thread, no_races)"]
)
def test_tiles_of_default_programs_of_several_terms_are_in_the_space(schedule: str) -> None:
    assert schedule in FullSpace(whole("residual"))


def test_protocols_formats_and_storage_are_found_again() -> None:
    options = Options(protocols=True, kinds=("list", "dense"), results=("insert",), merges=("gallop",))
    space = FullSpace(whole("product").with_options(options))
    drawn = space.sample(3, seed=2)
    assert drawn
    for schedule in drawn:
        found = found_in(schedule, space.whole)
        assert found is not None
        assert written(found[0], space.whole) == schedule
        assert space.whole.rank(*found) is not None


def test_a_bound_is_of_one_of_several_loops_over_an_index() -> None:
    assignment = parse("C(i,k) = A(i,j) * B(j,k)")
    space = WholeSpace(assignment, formats_of(assignment, {"A": "csr", "B": "csr", "C": "csr"}), extents={"k": 32})
    text = "addends(A(i,j) * B(j,k)); precompute(A(i,j) * B(j,k), [i, k], [i, k], w); workspace(w, list); bound([1], k, k_b, 32, max_exact)"
    found = found_in(text, space, {"k": 32})
    assert found is not None
    said = [value[2] for _, value in found[0].told.values() if isinstance(value, tuple)]
    assert sorted(said, key=str) == [("max_exact", 32), None, None, None, None]


@pytest.mark.parametrize("named", LIBRARY, ids=lambda named: f"{named.target} {named.name}: {named.expression}")
def test_the_library_is_in_the_space(named: NamedSchedule) -> None:
    space = of_library(named)
    assert named.schedule in space


def test_a_loop_that_is_not_around_a_workspace_is_refused() -> None:
    space = whole("SpMM")
    found = found_in("precompute(A(i,j) * X(j,k), k, k, w)", space)
    assert found is not None
    writer = _Writer(found[0], space)
    writer.directives()
    made = min(writer.numbers)
    assert writer.loop(made, "j")
    with pytest.raises(ScheduleError, match="no loop over q is around"):
        writer.loop(made, "q")


DROPPED = {
    ("row split", "y(i) = A(i,j) * x(j)"): [],
    ("position split", "y(i) = A(i,j) * x(j)"): [],
    ("row split, vectorized dense loop", "Y(i,k) = A(i,j) * X(j,k)"): ["outermost threads"],
    ("rows in registers", "Y(i,k) = A(i,j) * X(j,k)"): ["usual numbers", "loops and units"],
    ("fibre workspace", "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"): [],
}


@pytest.mark.parametrize(("name", "expression"), DROPPED)
def test_filters_say_what_they_drop(name: str, expression: str) -> None:
    named = next(one for one in LIBRARY if (one.name, one.expression, one.target) == (name, expression, "cpu"))
    assert of_library(named).dropped_by(named.schedule) == DROPPED[name, expression]


def test_what_is_not_in_the_space_is_refused() -> None:
    space = FullSpace(whole("SpMV"))
    assert "split(i, i0, i1, 4); split(i1, i2, i3, 2)" not in space  # two levels of tiles
    assert "unroll(nothing, 2)" not in space
    assert 3 not in space
    with pytest.raises(ScheduleError, match="not in the space"):
        space.dropped_by("unroll(nothing, 2)")


@pytest.mark.parametrize("name", KERNELS)
def test_candidates_are_in_the_space(name: str) -> None:
    """Rules say where to look first; they know no schedule that the space does not have."""
    expression, formats = KERNELS[name]
    assignment = parse(expression)
    builds = tuple((choice.compiler, choice.flags) for choice in build_choices().choices if isinstance(choice, Build))
    space = FullSpace(whole(name).with_options(everything(builds=builds)))
    outside = [
        str(item.template.fill())
        for item in candidates(assignment, formats_of(assignment, formats), threads=2)
        if item.template.fill() not in space
    ]
    assert not outside
