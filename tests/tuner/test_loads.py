"""What the static model charges for workspaces: like dense operands where places in them are chosen by what is stored, as what code has
to do where they are in registers, and for clearing them what the work of forests charges."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.forests import work as forest_work
from sparsetune.compiler.space.forests.choice import sizes_of
from sparsetune.compiler.space.forests.optimum import evaluated
from sparsetune.compiler.space.forests.space import Forests
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.positions import stored_prefixes
from sparsetune.datasets.generate import generate
from sparsetune.tuner import costs
from sparsetune.tuner.model import expected_cost, model_choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem

CHAIN = "A(i,m) = T(i,j) * E(j,l) * F(l,m)"
FIRST = "precompute(E(j,l) * F(l,m), [j, m], [j, m], w)"


def chain(source: str, width: int) -> Problem:
    stored = generate(source, "csr")
    return make_problem(CHAIN, {"T": stored, "E": np.ones((stored.shape[1], width)), "F": np.ones((width, width))}, threads=1)


def test_rows_of_a_workspace_that_stored_coordinates_choose_are_as_far_away_as_those_of_an_operand() -> None:
    """``E F`` was taken first because its rows were said to come one after the other, where stored columns choose them."""
    problem = chain("random:banded:6000:bandwidth=5", 32)
    spmm = make_problem("A(i,m) = T(i,j) * W(j,m)", {"T": problem.operands["T"], "W": np.ones((6000, 32))}, threads=1)
    product = make_problem("W(j,m) = E(j,l) * F(l,m)", {name: problem.operands[name] for name in "EF"}, threads=1)
    apart = expected_cost(spmm, Schedule()) + expected_cost(product, Schedule("reorder(j, l, m)"))
    assert expected_cost(problem, Schedule(f"{FIRST}; reorder([0], j, l, m)")) >= apart


def test_a_value_that_is_taken_out_of_a_vector_is_loaded() -> None:
    """With one entry in each innermost fibre both orders of the last two factors do the same, a row of registers read element by element
    or an operand."""
    places = np.unique(np.random.default_rng(0).integers(0, 30, (3, 4000)), axis=1)
    fourth = np.random.default_rng(1).integers(0, 30, places.shape[1])
    stored = tensor((np.vstack([places, fourth]), np.ones(places.shape[1])), "csf", (30, 30, 30, 30))
    operands = {"T": stored, **{name: np.ones((30, 8)) for name in "UVW"}}
    problem = make_problem("A(i,r,s,t) = T(i,j,k,l) * U(j,r) * V(k,s) * W(l,t)", operands, threads=1)
    inner = "precompute(T(i,j,k,l) * W(l,t), t, t, w1); precompute(w1(t) * V(k,s), [s, t], [s, t], w2)"
    outer = "precompute(T(i,j,k,l) * V(k,s), s, s, w1); precompute(w1(s) * W(l,t), [s, t], [s, t], w2)"
    assert expected_cost(problem, Schedule(outer)) >= 0.98 * expected_cost(problem, Schedule(inner))


def test_vectors_of_a_loop_around_short_sums_are_cheaper_than_sums_across_lanes() -> None:
    """A(i,n) sums over four values of l: its code goes through n in vectors, and was 1.3 to 2.9 times as fast as one that converts E and
    adds up four lanes for every n, which was said to be cheaper."""
    stored = generate("random:uniform:3000x20x20:nnz=2e4", "csf")
    operands = {"T": stored, "C": np.ones((20, 4)), "D": np.ones((20, 4)), "E": np.ones((4, 64))}
    problem = make_problem("A(i,n) = T(i,j,k) * C(j,l) * D(k,l) * E(l,n)", operands, threads=1)
    rows = "precompute(T(i,j,k) * D(k,l), l, l, w1); precompute(w1(l) * C(j,l), l, l, w2)"
    across = f'{rows}; convert(E, "dense, dense; 1, 0"); parallelize([1], l, cpu_vector, parallel_reduction)'
    assert 1.2 * expected_cost(problem, Schedule(rows)) < expected_cost(problem, Schedule(across))
    assert "convert" not in str(model_choice(problem, Deadline(30.0)))


@pytest.mark.parametrize("columns", [4, 200, 9000, 300_000])
def test_clearing_costs_the_same_in_a_forest_and_in_its_schedule(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workspaces in registers, in the first two levels of cache and in memory, cleared by vectors."""
    problem = chain(f"random:uniform:50x{columns}:nnz=100", 16)
    forests = Forests(problem.assignment, problem.formats)
    forest = forests.find(FIRST)
    assert forest is not None
    sizes = sizes_of(forests.contraction, problem.extents, {"T": stored_prefixes(problem.operands["T"])})

    def both() -> tuple[float, float]:
        found = problem.concretized()
        program = apply_schedule(found.program, Schedule(FIRST), found.formats, problem.constants)
        return evaluated(forest, forest_work.work(sizes)), costs.operations(problem, program, found.sources)

    charged = both()
    for module in (forest_work, costs):
        monkeypatch.setattr(module, "cleared", lambda *_: 0.0)
    of_forest, of_schedule = (one - other for one, other in zip(charged, both(), strict=True))
    assert of_forest == pytest.approx(of_schedule, rel=1e-6)
    assert (of_forest == 0) == (16 * columns <= 256)
