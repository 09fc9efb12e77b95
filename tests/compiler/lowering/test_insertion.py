"""Results that threads fill in, counted before or not: blocks below the last level that turn out not to be used touch no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st

EXPRESSION = "A(k,i) = B(k,j,i) * C(j,k)"
ONE_THREAD = "assemble(A, insert)"
SEVERAL = "parallelize(k, cpu_thread, no_races, dynamic, 1); assemble(A, insert)"
APPENDED = "parallelize(k, cpu_thread, no_races, dynamic, 1)"


def operands(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Return B, C and the rows that have a value: where C has nothing in common with B a row is begun and not kept."""
    used = np.arange(rows) % 3 == 0
    b, c = np.ones((rows, 2, columns)), np.zeros((2, rows))
    b[:, 1] = 0
    c[0, used], c[1, ~used] = 2.0, 1.0
    return st.tensor(b, "csf"), st.tensor(c, "csr; 1, 0"), used


@pytest.mark.parametrize("form", ["compressed, dense", "narrow, dense"])
@pytest.mark.parametrize("schedule", [ONE_THREAD, SEVERAL, APPENDED])
def test_rows_that_are_not_kept(schedule: str, form: str) -> None:
    b, c, used = operands(200, 64)  # the last row is not kept
    kernel = st.compile(EXPRESSION, {"B": "csf", "C": "csr; 1, 0", "A": form}, schedule=schedule)
    for _ in range(100):
        made = kernel(B=b, C=c, threads=1 if schedule == ONE_THREAD else 8)
        assert made.to_coordinates()[1].tolist() == [2.0] * (int(used.sum()) * 64)


@pytest.mark.parametrize("schedule", ["default", ONE_THREAD, SEVERAL, APPENDED])
def test_rows_of_another_semiring(schedule: str) -> None:
    b, c, used = operands(40, 6)
    b, c = (st.Tensor(given.shape, given.format, given.levels, given.values, np.inf) for given in (b, c))
    made = st.evaluate(
        EXPRESSION, {"B": b, "C": c}, output_format="compressed, dense", schedule=schedule, semiring=("min", "+"), threads=4
    )
    assert np.array_equal(made.to_numpy(), np.where(used[:, None], 3.0, np.inf) * np.ones(6))


@pytest.mark.parametrize("schedule", ["", "assemble(C, insert)", "parallelize(i, cpu_thread, no_races); assemble(C, insert)"])
def test_where_nothing_is_left_of_the_loops_there_is_nothing_to_count(schedule: str) -> None:
    found = st.compile("C(i,j) = 0", {"C": "csr"}, {"i": 3, "j": 4}, schedule)()
    assert (found.shape, found.nnz) == ((3, 4), 0)


@pytest.mark.parametrize("form", ["csr", "dcsr"])
def test_what_stands_before_a_loop_that_is_run_twice(form: str) -> None:
    """The range of coordinates between stored entries is found before each of the two loops, under the same names."""
    rng = np.random.default_rng(4)
    a, b = rng.random((9, 7)) * (rng.random((9, 7)) < 0.3), rng.random((7, 8)) * (rng.random((7, 8)) < 0.3)
    schedule = "pos(i, p, A); coord(p, c); parallelize(c, cpu_thread, no_races); assemble(C, insert)"
    kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", {"A": form, "B": "csr", "C": form}, schedule=schedule)
    assert np.allclose(kernel(A=st.tensor(a, form), B=st.tensor(b, "csr"), threads=2).to_numpy(), a @ b)
