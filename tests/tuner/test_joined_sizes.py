"""What the static model knows of products of several sparse operands: operations that it expects against those that there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.forests.choice import sizes_of
from sparsetune.compiler.space.forests.contraction import contraction_of
from sparsetune.compiler.space.joins import Joins
from sparsetune.compiler.space.relations import Join, Scan
from sparsetune.compiler.storage.positions import stored_prefixes
from sparsetune.tuner.costs import scalar_operations
from sparsetune.tuner.resolve import make_problem

N = 300


def _hub() -> Any:
    matrix = sp.lil_array((N, N))
    matrix[0, :] = matrix[:, 0] = 1.0
    matrix.setdiag(1.0)
    return sp.csr_array(matrix)


PATTERNS = {
    "uniform": sp.random_array((N, N), density=5 / N, format="csr", rng=np.random.default_rng(1)),
    "banded": sp.csr_array(np.triu(np.tril(np.ones((N, N)), 4), -4)),
    "blocks": sp.csr_array(sp.block_diag([np.ones((10, 10))] * (N // 10))),
    "hub": _hub(),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_operations_are_counted_where_operands_meet(name: str) -> None:
    """On the hub as if entries were spread evenly a product of two matrices took 120 times fewer operations than it takes."""
    one = PATTERNS[name]
    ones = sp.csr_array((np.ones(one.nnz), one.indices, one.indptr), shape=one.shape)
    for expression, exact in (
        ("D(i,j) = A(i,k) * B(k,j)", 2 * (ones @ ones).sum()),  # a multiplication and an addition each
        ("D(i,l) = A(i,k) * B(k,j) * C(j,l)", 3 * (ones @ ones @ ones).sum()),
    ):
        operands = {tensor: one for tensor in "ABC" if f"{tensor}(" in expression}
        problem = make_problem(expression, operands, "csr", threads=1)
        found = problem.concretized()
        assert scalar_operations(problem, found.program, found.sources) == pytest.approx(exact, rel=0.05)


def test_forests_know_what_operands_have_together() -> None:
    """Two matrices whose entries never meet are multiplied in no time."""
    odd, even = np.arange(1, N, 2), np.arange(0, N, 2)
    one = sp.csr_array(sp.coo_array((np.ones(N // 2), (even, odd)), shape=(N, N)))
    problem = make_problem("y(i) = A(i,k) * B(k,j) * x(j)", {"A": one, "B": one, "x": np.ones(N)}, threads=1)
    contraction = contraction_of(problem.assignment, problem.formats)
    fibres = {name: stored_prefixes(problem.operands[name]) for name in "AB"}
    sizes = sizes_of(contraction, problem.extents, fibres, problem.joins)
    assert (sizes.joined({0: 2}), sizes.joined({0: 2, 1: 2})) == (N // 2, 0.0)


def test_what_an_operand_stores_below_each_value_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[Scan] = []
    scan = Joins._scanned
    monkeypatch.setattr(Joins, "_scanned", lambda joins, one, marks: (None if marks else scanned.append(one)) or scan(joins, one, marks))
    matrix = st.tensor(PATTERNS["uniform"], "dcsr")
    joins = Joins({"A": matrix, "B": matrix}, dict.fromkeys("ikj", N))
    one, other = Scan("A", ("i", "k")), Scan("B", ("j", "k"))
    for parts in ({one}, {one, other}, {other}):
        assert joins.size(Join(frozenset(parts), frozenset("k")))
    assert sorted(scan.operand for scan in scanned) == ["A", "B"]


def chain_of_four(name: str, schedule: str) -> tuple[float, sp.csr_array]:
    """Return the operations that the model has for a product of four equal matrices, and their pattern as ones."""
    one = PATTERNS[name]
    problem = make_problem("D(i,m) = A(i,k) * B(k,j) * C(j,l) * E(l,m)", dict.fromkeys("ABCE", one), "csr", threads=1)
    found = problem.concretized()
    program = apply_schedule(found.program, Schedule(schedule), found.formats)
    ones = sp.csr_array((np.ones(one.nnz), one.indices, one.indptr), shape=one.shape)
    return scalar_operations(problem, program, found.sources), ones


@pytest.mark.parametrize("name", PATTERNS)
def test_what_several_workspaces_hold_is_known(name: str) -> None:
    """A chain of four by rows: each product is made once for each entry of the one before it."""
    by_rows = "precompute(A(i,k) * B(k,j) * C(j,l), l, l, a); precompute(A(i,k) * B(k,j), j, j, b)"
    found, ones = chain_of_four(name, by_rows)
    pairs = ones @ ones
    triples = (pairs > 0).astype(float) @ ones
    exact = 2 * (pairs.sum() + triples.sum() + ((triples > 0).astype(float) @ ones).sum())
    assert found == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("name", PATTERNS)
def test_products_that_are_hoisted_one_inside_the_other_leave_out_what_no_entry_reaches(name: str) -> None:
    """Rows of a matrix that are all there leave nothing out, and hid what the entries of the matrices outside do."""
    found, ones = chain_of_four(name, "precompute(A(i,k) * B(k,j), [], [], a); precompute(a * C(j,l), [], [], b)")
    pairs = ones @ ones
    exact = pairs.sum() + (pairs @ ones).sum() + 2 * (pairs @ pairs).sum()
    assert found == pytest.approx(exact, rel=0.1)
