"""Tuning, looking up and exploring expressions with compound subscripts: loop orders of all indices, records, the static choice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from convolved_images import CORRELATION, IMAGE, RNG, WEIGHTS, image_problem
from sparsetune.compiler.space.full import FullSpace
from sparsetune.compiler.space.instances import Instances
from sparsetune.compiler.space.situation import leaf_loops
from sparsetune.tuner.costs import operations
from sparsetune.tuner.database import open_database
from sparsetune.tuner.measure.windows import as_read, cut_out
from sparsetune.tuner.model import model_choice, problem_candidates
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.prune import surviving_space
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.searched import Beyond
from sparsetune.tuner.subsections import combinations_found
from sparsetune.tuner.whole_space import whole_space

SIGNAL = np.where(RNG.random(4000) < 0.05, RNG.random(4000), 0.0)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "schedules.sqlite")


@pytest.mark.cc
def test_a_correlation_is_tuned_and_looked_up_under_other_names(database: str) -> None:
    operands = {"B": st.tensor(SIGNAL, "s"), "F": np.array([1.0, 2, 3])}
    found = st.tune("y(i) = B(i+j) * F(j)", operands, trials=3, threads=1, database=database)
    assert found.failed_trials == 0
    tried = {trial.schedule for trial in found.measured}
    assert any(text.startswith("reorder(j, i)") for text in tried)
    other = {"S": operands["B"], "w": operands["F"]}
    match = st.lookup("z(n) = S(n+m) * w(m)", other, threads=1, database=database)
    assert match.origin == "exact"
    assert str(match.schedule).startswith("reorder(m, n)") == str(found.best).startswith("reorder(j, i)")
    wanted = np.correlate(SIGNAL, operands["F"], "valid")
    assert np.allclose(st.evaluate("z(n) = S(n+m) * w(m)", other, threads=1, database=database), wanted)
    with open_database(database) as store:
        assert store.check() == []


@pytest.mark.cc
@pytest.mark.parametrize(
    ("expression", "options"),
    [
        ("y(i) = B(i+j) * F(j)", {"boundary": "wrap", "shape": {"i": len(SIGNAL)}}),
        ("y(2*i+j) = B(i) * F(j)", {"shape": {"y": (2 * len(SIGNAL) + 5,)}}),
    ],
)
def test_every_schedule_that_is_tried_is_right(expression: str, options: dict[str, Any], database: str) -> None:
    operands = {"B": st.tensor(SIGNAL, "s"), "F": np.array([1.0, 2, 3])}
    operands = {name: operand for name, operand in operands.items() if f"{name}(" in expression}
    found = st.tune(expression, operands, trials=2, threads=2, database=database, **options)
    assert found.failed_trials == 0
    assert st.lookup(expression, operands, threads=2, database=database, **options).origin == "exact"
    others = {"boundary": "fill", **options} if "boundary" not in options else {"shape": options["shape"]}
    others = others if "boundary" in options else {}
    assert st.lookup(expression, operands, threads=2, database=database, **others).origin != "exact"


def test_loops_over_all_indices_are_reordered() -> None:
    problem = image_problem()
    orders = {str(found.template.fill()) for found in problem_candidates(problem) if found.origin == "order"}
    names = ("reorder(p, q, i, j)", "reorder(q, p, i, j)", "reorder(p, i, j, q)", "reorder(i, p, q, j)", "reorder(p, i, q, j)")
    assert all(any(text.startswith(name) for text in orders) for name in names)
    assert not any(text.startswith(("reorder(j, q, i, p)", "reorder(q, j, i, p)")) for text in orders)  # j + q is stored below i + p


def test_the_static_choice_ends_in_a_loop_over_the_result() -> None:
    choice = str(model_choice(image_problem()))
    assert choice.partition(")")[0].endswith(", j")
    image = np.where(RNG.random((20, 20, 8)) < 0.1, 1.0, 0.0)
    layer = make_problem(
        "O(x,y,m) = I(x+p,y+q,c) * F(p,q,c,m)", {"I": st.tensor(image, "dss"), "F": np.ones((3, 3, 8, 32))}, threads=1
    )
    assert layer.constants == {"m": 32}
    chosen = st.compile(layer.expression, {"I": "dss"}, schedule=model_choice(layer)).concretized.program
    assert leaf_loops(chosen)[-1] == "m"


def test_loops_that_would_pass_over_a_far_result_again_stand_inside_of_its_rows() -> None:
    """Every pass over a result that leaves the near caches brings its lines again: filters are moved along inside of rows or images."""

    def chosen(expression: str, shape: tuple[int, ...], form: str, stored: int) -> str:
        places = np.random.default_rng(1).choice(int(np.prod(shape)), stored, replace=False)
        operand = st.tensor((np.array(np.unravel_index(places, shape)), np.ones(stored)), form, shape)
        return str(model_choice(make_problem(expression, {"A": operand, "F": WEIGHTS}, threads=1)))

    assert chosen(CORRELATION, (600, 700), "csr", 40_000).startswith("reorder(i, p, q, j)")
    assert chosen(CORRELATION, (60, 70), "csr", 400).startswith("reorder(p, q, i, j)")
    images = "Y(n,i,j) = A(n,i+p,j+q) * F(p,q)"
    assert chosen(images, (100, 60, 70), "dense, compressed, compressed", 40_000).startswith("reorder(n, p, q, i, j)")


def test_the_work_of_loops_is_counted_by_what_subsections_hold() -> None:
    problem = image_problem()
    (access,) = [access for access in _reads(problem) if access.tensor == "A"]
    view, extents = problem.formats["A"], problem.extents
    operand = problem.operands["A"]
    stored = (60.0, float(operand.nnz))

    def found(*covered: str) -> float:
        return combinations_found(view, access, stored, operand.shape, extents, covered)  # type: ignore[arg-type]

    assert found("p", "q") == 9  # every q may be there: the row is not known yet
    assert found("i", "p") == pytest.approx(58 * 3)
    dense = (IMAGE != 0).astype(float)
    windows = np.lib.stride_tricks.sliding_window_view(dense, (3, 3))
    assert found("i", "j", "p", "q") == pytest.approx(windows.sum(), rel=0.05)
    assert found("i", "p", "j") == pytest.approx((windows.sum(axis=3) > 0).sum(), rel=0.05)


def _reads(problem: Problem) -> tuple[Any, ...]:
    from sparsetune.tuner.extents import reads

    return reads(problem.assignment)


def test_sparser_inputs_cost_less() -> None:
    few = make_problem(CORRELATION, {"A": st.tensor(IMAGE * (RNG.random(IMAGE.shape) < 0.2), "csr"), "F": WEIGHTS}, threads=1)
    costs = [operations(one, one.concretized().program, one.concretized().sources) for one in (few, image_problem())]
    assert costs[0] < 0.5 * costs[1]


def test_what_is_drawn_and_what_is_undominated_is_legal() -> None:
    space, stages = surviving_space(image_problem())
    assert stages[-1]["kept"] > 5
    for schedule in Instances(space.templates).sample(5, 0):
        st.compile(CORRELATION, {"A": "csr"}, schedule=schedule)


ROWS = (
    "reorder(i, j, p, q)",
    "split(i, i0, i1, 32); reorder(i0, p, q, i1, j)",
    "split(j, j0, j1, 8); reorder(i, p, j0, q, j1); parallelize(i, cpu_thread, no_races)",
    'convert(A, "dcsc"); reorder(j, q, i, p)',
)
COLUMNS = ("split(j, j0, j1, 32); reorder(j0, q, p, j1, i)", 'convert(A, "dcsr"); split(i, i0, i1, 8); reorder(p, i0, i1, q, j)')
TILED = {"csr": ROWS, "dcsr": ROWS, "coo": ROWS, "csc": COLUMNS}


@pytest.mark.parametrize("form", TILED)
def test_tiles_with_halos_are_in_the_searched_space_and_draws_are_right(form: str) -> None:
    image = IMAGE[:9, :11]
    operands = {"A": st.tensor(image, form), "F": WEIGHTS}
    searched = whole_space(make_problem(CORRELATION, operands, threads=2))
    assert all(schedule in searched for schedule in TILED[form])
    narrowed = searched.filtered().whole
    options = replace(narrowed.options, sizes=(2, 3), bounds=(), unrolls=(), distances=(), builds=())
    drawn = FullSpace(narrowed.with_options(options)).sample(8, seed=2)
    assert len(drawn) == 8
    assert sum("split" in str(schedule) for schedule in drawn) >= 3
    expected = np.array([[(image[i : i + 3, j : j + 3] * WEIGHTS).sum() for j in range(9)] for i in range(7)])
    for schedule in drawn:
        assert schedule in searched
        found = st.evaluate(CORRELATION, operands, schedule=schedule, target="interpreter")
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=str(schedule))


def test_search_draws_tiles_with_halos() -> None:
    beyond = Beyond(image_problem(), seed=3, seconds=60)
    drawn = [beyond.draw([], ()) or "" for _ in range(6)]
    assert all(drawn)
    assert any("split" in text for text in drawn)


@pytest.mark.parametrize(
    ("expression", "shape"), [("y(2*i+j) = B(i) * F(j)", {"y": (33,)}), ("y(i) = B(i+1) - B(i-1)", {"i": 14}), ("s = B(3) * B(i)", {})]
)
def test_draws_of_points_and_of_several_views_are_right(expression: str, shape: dict[str, Any]) -> None:
    operands = {"B": st.tensor(SIGNAL[:15], "s"), "F": np.array([1.0, 2, 3])}
    operands = {name: operand for name, operand in operands.items() if f"{name}(" in expression}
    narrowed = whole_space(make_problem(expression, operands, threads=2, shape=shape)).filtered().whole
    options = replace(narrowed.options, sizes=(2, 3), bounds=(), unrolls=(), distances=(), builds=())
    drawn = FullSpace(narrowed.with_options(options)).sample(5, seed=1)
    assert drawn
    expected = st.evaluate(expression, operands, schedule="default", shape=shape, target="interpreter")
    for schedule in drawn:
        found = st.evaluate(expression, operands, schedule=schedule, shape=shape, target="interpreter")
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=str(schedule))


def test_the_schedule_space_of_compound_subscripts_is_explored() -> None:
    found = st.explore("y(i) = B(i+j) * F(j)", formats={"B": "s"})
    in_place = 2 * 2**2  # orders of i and j; a protocol for each mode of B
    gathered = 2 * 2 * 2**2 * 2**2 + 2 * 2**2 * 2 + 2 * 2**2  # of no loop, one and both shared by w = B and y += w * F; protocols of w too
    assert found.space.count() == in_place + gathered
    assert {one.time for one in found.frontier} == {"nnz(B)"}
    assert any("precompute(B(i,j)," in str(schedule) for schedule in found.space.sample(20, seed=1))
    assert {str(one.schedule).partition(";")[0] for one in found.frontier} >= {"reorder(j, i)"}
    for one in found.frontier:
        assert st.compile("y(i) = B(i+j) * F(j)", {"B": "s"}, schedule=one.schedule).schedule == one.schedule


@pytest.mark.parametrize("form", ["csr", "csc", "dcsr"])
def test_stored_orders_that_loops_contradict_are_transposed_at_a_cost(form: str) -> None:
    schedule = 'convert(A, "dcsc"); reorder(j, q, i, p)'
    operands = {"A": st.tensor(IMAGE, form), "F": WEIGHTS}
    found = st.evaluate(CORRELATION, operands, schedule=schedule, target="interpreter")
    assert np.allclose(found, st.evaluate(CORRELATION, operands, schedule="default", target="interpreter"))
    problem = image_problem(form)
    program = st.compile(CORRELATION, {"A": form}, schedule=schedule).concretized.program
    plain = problem.concretized()
    assert operations(problem, program, plain.sources) > operations(problem, plain.program, plain.sources) or form == "csc"


@pytest.mark.parametrize(
    ("expression", "options"),
    [
        ("y(i) = B(2*i+3*j-1) * F(j)", {"shape": {"i": 100}}),
        ("y(i) = B(i-1) + B(i+1)", {"shape": {"i": 4000}, "boundary": "wrap"}),
        ("y(3*i+2*j) = B(i) * F(j)", {}),
        ("y(i) += B(3999-i) * B(i)", {}),
    ],
)
def test_what_is_cut_out_means_the_same(expression: str, options: dict[str, Any]) -> None:
    operands = {"B": st.tensor(SIGNAL, "s"), "F": np.array([1.0, 2, 3]), "y": np.ones(4000)}
    names = {"B", *(["F"] if "F(" in expression else []), *(["y"] if "+=" in expression else [])}
    operands = {name: operand for name, operand in operands.items() if name in names}
    problem = make_problem(expression, operands, threads=1, **options)
    found = cut_out(problem.viewed, problem.written, problem.operands, problem.known)
    if found is None:
        assert "3999" in expression  # the whole operand would have to stay
        return
    small, known = found
    assert all(max(operand.shape) < 100 for operand in small.values())
    again = make_problem(
        expression, small, threads=1, **{**options, "shape": {name: extent for name, extent in known.items() if name in problem.given}}
    )
    dense, places = as_read(again.viewed, small, again.extents, ("+", "*"))
    assert dense.keys() == places.keys() == {access.tensor for access in _reads(again)}
