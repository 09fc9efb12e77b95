"""What the static model counts for products: factors and rows that stay in registers are multiplied as seldom as code does that."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.native.machine import held_vectors, this_machine
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.datasets.generate import generate
from sparsetune.tuner.model import expected_cost, model_choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem

SAMPLED = "S(i,j,k) = T(i,j,k) * U(i,r) * V(j,r) * W(k,r)"
PAIRS = "precompute(U(i,r) * V(j,r), [i, j, r], [i, j, r], w); join(i, [0], [1]); join(j, [0], [1])"
ONCE = "precompute(U(i,r) * V(j,r) * W(k,r), [i, j, k], [i, j, k], w); join(i, [0], [1]); join(j, [0], [1]); join(k, [0], [1])"


def sampled(width: int) -> Problem:
    stored = generate("random:uniform:200x150x400:nnz=1e5", "csf")
    factors = {name: np.ones((extent, width)) for name, extent in zip("UVW", stored.shape, strict=True)}
    return make_problem(SAMPLED, {"T": stored, **factors}, "csf", threads=1)


def times(problem: Problem, text: str) -> float:
    return expected_cost(problem, Schedule(text)) / expected_cost(problem, Schedule())


@pytest.mark.usefixtures("usual_constants")
def test_what_code_multiplies_once_in_any_case_gains_nothing() -> None:
    """Rows of U and V are multiplied once for each fibre, and an entry of T with a whole sum, by default too: the same code, in the same
    time. That was foretold to take 0.92 and 0.95 of the time."""
    problem = sampled(32)
    assert times(problem, PAIRS) == pytest.approx(1.03, abs=0.04)
    assert times(problem, ONCE) == pytest.approx(1.05, abs=0.06)
    assert "precompute" not in str(model_choice(problem))


@pytest.mark.usefixtures("usual_constants")
def test_products_that_find_no_registers_are_made_for_each_entry() -> None:
    """Two rows of so many vectors are more than there is room for; kept in a workspace, their products take 0.7 to 0.8 of the time."""
    unit = this_machine().vector_bytes
    long = 8 * 2 ** int(np.log2(held_vectors(unit) * unit / 8 / 8))
    assert times(sampled(long), PAIRS) < 0.9


@pytest.mark.usefixtures("usual_constants")
def test_an_inner_product_is_multiplied_by_what_does_not_change_once() -> None:
    stored = generate("random:uniform:2000x2000:nnz=2e4", "csr")
    operands = {"T": stored, "U": np.ones((2000, 64)), "V": np.ones((2000, 64))}
    problem = make_problem("S(i,j) = T(i,j) * U(i,r) * V(j,r)", operands, "csr", threads=1)
    assert times(problem, "precompute(U(i,r) * V(j,r), [], [], w)") == pytest.approx(1.03, abs=0.04)


@pytest.mark.usefixtures("usual_constants")
def test_the_order_in_which_rows_of_factors_are_written_does_not_matter() -> None:
    """Those that change seldom are multiplied first in any case: an entry costs as much where a factor's row changes with each as first."""
    stored = generate("random:uniform:40x30x20x50:nnz=1e5", "csf")
    factors = {name: np.ones((extent, 16)) for name, extent in zip("BCD", stored.shape[1:], strict=True)}
    costs = [
        expected_cost(make_problem(f"A(i,r) = {text}", {"T": stored, **factors}, threads=1), Schedule())
        for text in ("T(i,j,k,l) * B(j,r) * C(k,r) * D(l,r)", "D(l,r) * T(i,j,k,l) * C(k,r) * B(j,r)")
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)
    two = make_problem("A(i,r) = T(i,j,k,l) * B(j,r) * D(l,r)", {"T": stored, "B": factors["B"], "D": factors["D"]}, threads=1)
    assert costs[0] < 1.1 * expected_cost(two, Schedule())  # a further row, which changes seldom, costs little
