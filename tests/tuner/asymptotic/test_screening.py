"""Candidates that another one beats asymptotically are not measured; those known to win are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.errors import TuningError
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.space.situation import Situation
from sparsetune.datasets.generate import generate
from sparsetune.tuner.asymptotic.screening import Screening, beaten
from sparsetune.tuner.costs import operations
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.prune import SWITCHES, surviving_space
from sparsetune.tuner.resolve import make_problem

RNG = np.random.default_rng(3)


def stored(shape: tuple[int, ...], form: str, density: float):
    return generate(f"random:uniform:{'x'.join(map(str, shape))}:density={density}:seed=5", form)


def spmv2() -> Problem:
    matrices = {name: stored((600, 600), "csr", 0.02) for name in "BC"}
    return make_problem("a(i) = B(i,j) * C(j,k) * d(k)", {**matrices, "d": RNG.random(600)}, threads=1)


def spgemm() -> Problem:
    return make_problem("A(i,j) = B(i,k) * C(k,j)", {name: stored((300, 300), "csr", 0.02) for name in "BC"}, "csr", threads=1)


def spgemm2() -> Problem:
    operands = {name: stored((200, 200), "csr", 0.1) for name in "BCD"}
    return make_problem("A(i,j) = B(i,k) * C(k,l) * D(l,j)", operands, "csr", threads=1)


def spgemm2_dense() -> Problem:
    return make_problem(spgemm2().expression, spgemm2().operands, threads=1)


def mttkrp() -> Problem:
    operands = {"B": stored((60, 50, 40), "csf", 0.02), "C": RNG.random((50, 16)), "D": RNG.random((40, 16))}
    return make_problem("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", operands, threads=1)


def ttmc() -> Problem:
    operands = {"B": stored((40, 30, 60), "csf", 0.2), "C": RNG.random((30, 16)), "D": RNG.random((60, 16))}
    return make_problem("A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", operands, threads=1)


def sddmm_spmm() -> Problem:
    operands = {"B": stored((80, 80), "csr", 0.1), **{name: RNG.random((80, 24)) for name in "CDE"}}
    return make_problem("A(i,l) = B(i,j) * C(i,k) * D(j,k) * E(j,l)", operands, threads=1)


WINNERS = (  # up to the name of the workspace
    (ttmc, "precompute(B(i,j,k) * D(k,m), m, m, w"),
    (mttkrp, "precompute(B(i,j,k) * D(k,r), r, r, w"),
    (spmv2, "precompute(C(j,k) * d(k), j, j, w"),
    (spgemm, ""),
    (spgemm2, "precompute(B(i,k) * C(k,l), l, l, w"),
    (sddmm_spmm, "precompute(C(i,k) * D(j,k), [], [], w"),
)


def texts(problem: Problem, skip: tuple[str, ...] = ()) -> list[str]:
    return [template.text for template in surviving_space(problem, skip)[0].templates]


@pytest.mark.parametrize(("make", "winner"), WINNERS)
def test_known_winners_stay(make: Callable[[], Problem], winner: str) -> None:
    found = texts(make())
    assert "" in found
    assert any(text.startswith(winner) for text in found)


def test_dominated_workspaces_and_orders_are_dropped() -> None:
    assert not any("B(i,j) * C(j,k)" in text for text in texts(spmv2()))  # a product of matrices before the vector comes
    assert any("B(i,j) * C(j,k)" in text for text in texts(spmv2(), ("asymptotic",)))
    assert not any(text.startswith("reorder") for text in texts(sddmm_spmm()))  # k and l both inside
    assert any(text.startswith("reorder") for text in texts(sddmm_spmm(), SWITCHES))


def single_ttmc() -> Problem:
    """TTMc where every fibre holds one entry, so that a workspace saves little."""
    entries = generate("random:uniform:40x40x500:nnz=40:seed=1", "csf")
    return make_problem(ttmc().expression, {"B": entries, "C": RNG.random((40, 16)), "D": RNG.random((500, 16))}, threads=1)


@pytest.mark.parametrize(("make", "loses"), [(ttmc, True), (single_ttmc, False)])
def test_what_is_better_only_on_larger_inputs_drops_nothing(make: Callable[[], Problem], loses: bool) -> None:
    problem = make()
    default = concretize(problem.assignment, problem.formats)
    screening = Screening(problem.assignment, Situation(default.program, default.formats, problem.extents))
    factored = apply_schedule(default.program, "precompute(B(i,j,k) * D(k,m), m, m, w)", default.formats, problem.extents)
    costs = [screening.cost(program) for program in (default.program, factored)]
    assert costs[0] is not None
    assert costs[1] is not None
    assert screening.is_less(costs[1], costs[0])
    expected = [operations(problem, program, default.sources) for program in (default.program, factored)]
    assert beaten(costs, expected, lambda _: True, screening, Deadline(None)) == [loses, False]
    assert any(text.startswith("{") for text in texts(problem, ("loop depth",))) != loses  # the loops of the default, with prefetches


def surviving_stages(problem: Problem) -> list[tuple[str, int]]:
    return [(stage["stage"], stage["kept"]) for stage in surviving_space(problem)[1]]


def test_the_switch_leaves_the_stage_out() -> None:
    assert "asymptotic" in dict(surviving_stages(spgemm()))
    assert "asymptotic" not in [stage["stage"] for stage in surviving_space(spgemm(), ["asymptotic"])[1]]
    with pytest.raises(TuningError, match="rules that can be left out are memory, asymptotic, loop depth, order"):
        surviving_space(spgemm(), ["legal"])
    with pytest.raises(TuningError, match="given as a list"):
        surviving_space(spgemm(), "asymptotic")


@pytest.mark.parametrize(
    ("make", "schedule", "cost"),
    [
        (spmv2, "", "{(i,j,k) | B(i,j) and C(j,k)}"),
        (spmv2, "precompute(C(j,k) * d(k), [j], [j], w)", "{}"),
        (mttkrp, "", "{(i,r,j,k) | B(i,j,k)}"),
        (mttkrp, "precompute(B(i,j,k) * D(k,r), r, r, w)", "{(i,r,j,k) | B(i,j,k)}"),
        (mttkrp, "split(r, r0, r1, 8); reorder(i, r0, j, k, r1); precompute(B(i,j,k) * D(k,r), r1, r1, w)", "{(i,r,j,k) | B(i,j,k)}"),
        (ttmc, "precompute(B(i,j,k) * D(k,m), m, m, w)", "{(i,l,m,j) | exists k1: B(i,j,k1)} + {(i,m,j,k) | B(i,j,k)}"),
        (spgemm2, "precompute(B(i,k) * C(k,l), l, l, w1)",
         "{(i,j,l) | exists k1: B(i,k1) and C(k1,l) and D(l,j)} + {(i,k,l) | B(i,k) and C(k,l)}"),
        (spgemm2_dense, "precompute(B(i,k) * C(k,l), l, l, w1)", "{(i,l)} + {(i,j,l) | D(l,j)} + {(i,k,l) | B(i,k) and C(k,l)}"),
    ],
)  # fmt: skip
def test_costs_in_the_formats_at_hand(make: Callable[[], Problem], schedule: str, cost: str) -> None:
    """An array is cleared and read whole; of a tile's loops one counts; what clears a dense result is sunk."""
    problem = make()
    default = concretize(problem.assignment, problem.formats)
    screening = Screening(problem.assignment, Situation(default.program, default.formats, problem.extents))
    found = screening.cost(apply_schedule(default.program, schedule, default.formats, problem.extents))
    assert found is not None
    assert set(screening.show(found).split(" + ")) == set(cost.split(" + "))


def test_accumulation_and_loops_over_positions() -> None:
    matrix = stored((50, 50), "csr", 0.1)
    problem = make_problem("a(i) += B(i,j) * c(j)", {"a": RNG.random(50), "B": matrix, "c": RNG.random(50)}, threads=1)
    default = concretize(problem.assignment, problem.formats)
    screening = Screening(problem.assignment, Situation(default.program, default.formats, problem.extents))
    assert screening.cost(default.program) == 0  # reading B and one dimension
    plain = make_problem("a(i) = B(i,j) * c(j)", {"B": matrix, "c": RNG.random(50)}, threads=1)
    found = concretize(plain.assignment, plain.formats)
    positions = apply_schedule(found.program, "collapse(i, j, f); pos(f, p, B)", found.formats)
    assert Screening(plain.assignment, Situation(found.program, found.formats, {})).cost(positions) == 0  # as the loops they come from
