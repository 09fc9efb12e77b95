"""The static model of GPUs: which mapping it expects to wait least, by the lengths of rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.device_costs import device_cost
from sparsetune.tuner.model import expected_cost, static_choice
from sparsetune.tuner.problem import Problem, make_problem

SPMV = "y(i) = A(i,j) * x(j)"
ROWS, WARPS = "parallelize(i, gpu_thread, no_races)", "parallelize(i, gpu_warp, no_races); parallelize(j, gpu_thread, parallel_reduction)"
SHARES = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 512); split(q, t, n, 4); parallelize(b, gpu_block, no_races);"
    " parallelize(t, gpu_thread, atomics)"
)


def problem(rows: int, columns: int, each: int, longest: int = 0, expression: str = SPMV) -> Problem:
    """Rows of so many entries, and one that may be longer."""
    counts = np.full(rows, each)
    counts[0] = max(each, longest)
    pos = np.concatenate(([0], np.cumsum(counts)))
    crd = np.concatenate([np.arange(counts[0]), np.tile(np.arange(each), rows - 1)]).astype(np.int32)
    matrix = scipy.sparse.csr_array((np.ones(pos[-1]), crd, pos.astype(np.int32)), shape=(rows, columns))
    dense = {"x": np.ones(columns)} if expression == SPMV else {"X": np.ones((columns, 64))}
    return make_problem(expression, {"A": matrix, **dense}, target="cuda", arch="sm_90")


def chosen(given: Problem) -> str:
    found = static_choice(given)
    return "" if found is None else str(found.schedule)


def test_rows_go_to_threads_warps_or_shares_of_entries_by_their_lengths() -> None:
    short, long, odd = problem(200_000, 500, 2), problem(4000, 4000, 300), problem(20_000, 100_000, 5, 100_000)
    assert [min((ROWS, WARPS, SHARES), key=lambda text: expected_cost(given, Schedule(text))) for given in (short, long, odd)] == [
        ROWS, WARPS, SHARES,
    ]  # fmt: skip


@pytest.mark.parametrize(("rows", "each", "longest", "unit"), [(4000, 300, 0, "gpu_warp"), (20_000, 5, 50_000, "pos(")])
def test_the_choice_without_records_depends_on_the_data(rows: int, each: int, longest: int, unit: str) -> None:
    assert unit in chosen(problem(rows, 50_000, each, longest))


def test_the_default_costs_what_rows_to_threads_do() -> None:
    given = problem(1000, 50, 20)
    found = given.concretized()
    assert device_cost(given, found.program, found.sources) == expected_cost(given, Schedule(ROWS))


def test_lanes_of_a_warp_are_as_many_as_rows_have_entries_for() -> None:
    def cost(lanes: int) -> float:
        return expected_cost(problem(400_000, 50, 6), Schedule(WARPS.replace("no_races", f"no_races, lanes, {lanes}")))

    assert cost(4) < cost(32)
    assert cost(8) < cost(32)


def test_columns_of_a_dense_operand_are_the_work_of_lanes() -> None:
    given = problem(20_000, 20_000, 30, expression="Y(i,k) = A(i,j) * X(j,k)")
    lanes = "reorder(i, k, j); parallelize(i, gpu_warp, no_races); parallelize(k, gpu_thread, no_races)"
    assert expected_cost(given, Schedule(lanes)) < 0.5 * expected_cost(given, Schedule(ROWS))
    assert "gpu_" in chosen(given)


def test_more_bytes_take_longer_however_well_they_are_shared() -> None:
    few, many = (expected_cost(problem(rows, 1000, 100), Schedule(WARPS)) for rows in (50_000, 100_000))
    assert many > 1.5 * few
