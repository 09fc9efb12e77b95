"""Dense products: the static model multiplies chains in the order of least products, and leaves large matrices to BLAS."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.costs import scalar_operations
from sparsetune.tuner.kernels import compile_problem
from sparsetune.tuner.model import expected_cost, model_choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.routines import matrix_product


def chain(extents: tuple[int, ...], threads: int = 1) -> Problem:
    source, letters, names = np.random.default_rng(1), "ijklmno", "BCDEFG"[: len(extents) - 1]
    factors = " * ".join(f"{name}({letters[place]},{letters[place + 1]})" for place, name in enumerate(names))
    matrices = {name: source.random(extents[place : place + 2]) for place, name in enumerate(names)}
    return make_problem(f"A({letters[0]},{letters[len(names)]}) = {factors}", matrices, threads=threads)


def least_products(extents: tuple[int, ...]) -> int:
    """The dynamic program for the order of a matrix chain, over the places at which it is split."""

    @cache
    def best(first: int, last: int) -> int:
        splits = range(first + 1, last)
        return min((best(first, at) + best(at, last) + extents[first] * extents[at] * extents[last] for at in splits), default=0)

    return best(0, len(extents) - 1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("extents", [(200,) * 4, (300, 20, 500, 40, 700), (30, 350, 150, 50, 100, 200), (300, 350, 150, 50, 100, 200, 250)])
def test_a_chain_is_products_by_blas_in_the_best_order(extents: tuple[int, ...], threads: int) -> None:
    problem = chain(extents, threads)
    if not problem.has_blas:
        pytest.skip("no BLAS")
    schedule, found = model_choice(problem), problem.concretized()
    assert schedule is not None
    assert str(schedule).count("gemm") == len(extents) - 2
    program = apply_schedule(found.program, schedule, found.formats, problem.constants)
    assert scalar_operations(problem, program, found.sources) == 2 * least_products(extents)


def test_a_tiny_chain_is_loops() -> None:
    assert "gemm" not in str(model_choice(chain((8, 8, 8, 8))))


@pytest.mark.parametrize(("size", "blas_is_faster"), [(8, False), (64, True), (400, True)])
def test_a_call_costs_more_to_begin_and_less_for_a_product(size: int, blas_is_faster: bool) -> None:
    problem = chain((size,) * 3)
    call, loops = (expected_cost(problem, Schedule(text)) for text in ("call([], gemm)", "reorder(i, k, j)"))
    assert (call < loops) is blas_is_faster


@pytest.mark.parametrize(("text", "extents", "by_blas"), [
    ("y(i) = A(i,j) * x(j)", (800, 600), True),
    ("y(j) = A(i,j) * x(i)", (800, 600), True),
    ("y(j) = A(i,j) * x(i)", (5000, 200), False),  # the sums of a row stay in registers
    ("y(j) = A(i,j) * x(i)", (100, 100), False),
])  # fmt: skip
def test_large_matrices_are_multiplied_with_vectors_by_blas(text: str, extents: tuple[int, int], by_blas: bool) -> None:
    source = np.random.default_rng(1)
    matrix, vector = source.random(extents), source.random(extents[0 if "y(j)" in text else 1])
    problem = make_problem(text, {"A": matrix, "x": vector}, threads=1)
    if not problem.has_blas:
        pytest.skip("no BLAS")
    schedule = model_choice(problem)
    assert ("gemv" in str(schedule)) is by_blas
    right = matrix.T @ vector if "y(j)" in text else matrix @ vector
    assert np.allclose(compile_problem(problem, schedule or Schedule()).bind(problem.operands, 1)(), right)


def test_rows_of_a_chain_are_vectors_to_blas() -> None:
    problem = chain((1, 500, 800, 600))
    if not problem.has_blas:
        pytest.skip("no BLAS")
    assert str(model_choice(problem)).count("call") == 2


def test_blas_takes_threads_for_large_products() -> None:
    assert matrix_product(500, 500, 500, threads=2) < 0.6 * matrix_product(500, 500, 500)
    assert matrix_product(30, 30, 30, threads=2) == matrix_product(30, 30, 30)
