"""Chains of more matrices than have all their contraction paths looked at: products of two are found before the time is over."""

from __future__ import annotations

from functools import reduce
from operator import matmul
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.schedule.addresses import enclosing_loops, leaves
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.space.forests.bound import LeastWork
from sparsetune.compiler.space.forests.choice import promising, sizes_of
from sparsetune.compiler.space.forests.contraction import contraction_of
from sparsetune.compiler.space.forests.likely import likely_paths
from sparsetune.compiler.space.situation import FEW_FACTORS
from sparsetune.tuner.model import model_choice
from sparsetune.tuner.resolve import make_problem


def chain(count: int, extent: int = 200, entries: int = 3) -> tuple[str, dict[str, Any]]:
    """Return a chain of different matrices with so many entries a row."""
    source = np.random.default_rng(count)
    factors = [f"A{number}(i{number},i{number + 1})" for number in range(count)]
    shape = (extent, extent)
    matrices = [sp.random_array(shape, density=entries / extent, format="csr", rng=source) for _ in factors]
    return f"Y(i0,i{count}) = " + " * ".join(factors), {f"A{number}": one for number, one in enumerate(matrices)}


LONGER = [pytest.param(count, form, marks=pytest.mark.nightly) for count in (30, 50, 66) for form in ("csr", None)]


@pytest.mark.parametrize(("count", "form"), [(20, "csr"), *LONGER])
def test_chains_are_multiplied_two_at_a_time(count: int, form: str | None) -> None:
    """The default goes through all combinations of entries, and has more loops inside one another than can be compiled where there are
    66 matrices."""
    text, operands = chain(count)
    problem = make_problem(text, operands, form, threads=1)
    chosen = model_choice(problem)
    assert chosen is not None
    found = problem.concretized()
    program = apply_schedule(found.program, chosen, found.formats, problem.constants)
    assert max(len(enclosing_loops(program.statement, address)) for address, _ in leaves(program.statement)) <= 4
    result = st.evaluate(text, operands, output_format=form, threads=1)
    np.testing.assert_allclose(result if form is None else result.to_numpy(), reduce(matmul, operands.values()).toarray(), rtol=1e-9)


def test_a_forest_is_chosen_however_slow_the_machine_is() -> None:
    """The time for a choice may be over before the first forest is found; the default of a long chain never ends."""
    text, operands = chain(20)
    problem = make_problem(text, operands, "csr", threads=1)
    chosen = model_choice(problem, Deadline(0.0))
    assert chosen is not None
    found = problem.concretized()
    assert len(found.program.workspaces) < len(apply_schedule(found.program, chosen, found.formats, problem.constants).workspaces)


def test_a_vector_at_the_end_is_multiplied_first() -> None:
    """All other orders multiply matrices by matrices."""
    text, operands = chain(9)
    text, operands = text.replace("Y(i0,i9)", "y(i0)") + " * x(i9)", {**operands, "x": np.ones(200)}
    chosen = model_choice(make_problem(text, operands, threads=1))
    assert chosen is not None
    kernel = st.compile(text, dict.fromkeys(list(operands)[:-1], "csr"), schedule=chosen)
    entries = sum(matrix.nnz for matrix in list(operands.values())[:-1])
    assert kernel.bind(**operands, threads=1).count()["flops"] <= 2 * entries


def test_paths_of_long_products_multiply_two_parts_with_an_index_in_common() -> None:
    text, operands = chain(FEW_FACTORS + 6)
    problem = make_problem(text, operands, "csr", threads=1)
    contraction = contraction_of(problem.assignment, problem.formats)
    known = sizes_of(contraction, problem.extents, {}, None)
    paths = tuple(likely_paths(contraction, LeastWork(contraction, known)))
    assert len(set(paths)) == len(paths) <= 3
    for path in paths:
        made = {1 << number for number in range(len(contraction.operands))}
        for term in path:
            assert made.issuperset(term.parts), "each part is there before it is multiplied"
            assert contraction.open(term.parts[0]) & contraction.open(term.parts[1])
            made = made.difference(term.parts) | {term.operands}
        assert made == {contraction.everything}
    costs = [forest.memory_depth for forest in promising(contraction, known, 10, lambda: None)]
    assert min(costs) == 1 < max(costs), "rows one after the other, and whole matrices"
