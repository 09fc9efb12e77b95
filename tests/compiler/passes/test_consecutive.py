"""What treats every entry by itself is one loop over all entries, whatever rows they are in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st

PARALLEL = "parallelize(i, cpu_thread, no_races, {})"


def loops(source: str) -> int:
    """How many loops the kernel has, those over claimed pieces aside."""
    return source.count("for (int64_t")


@pytest.mark.parametrize(
    ("expression", "formats", "schedule"),
    [
        ("R(i,j) = exp(A(i,j))", {"A": "csr", "R": "csr"}, ""),
        ("R(i,j) = A(i,j) * x(j)", {"A": "csr", "R": "csr"}, ""),
        ("R(i,j) = 2 * A(i,j)", {"A": "dcsr", "R": "dcsr"}, ""),
        ("R(i,j,k) = tanh(A(i,j,k)) * A(i,j,k)", {"A": "csf", "R": "csf"}, ""),
        ("R(i,j) = exp(A(i,j))", {"A": "csr", "R": "csr"}, PARALLEL.format("static")),
        ("R(i,j) = exp(A(i,j))", {"A": "csr", "R": "csr"}, PARALLEL.format("dynamic, 64")),
        ("R(i,j) = exp(A(i,j))", {"A": "csr", "R": "csr"}, "collapse(i, j, f); pos(f, p, A)"),
    ],
)
def test_entries_have_one_loop(expression: str, formats: dict[str, Any], schedule: str) -> None:
    assert loops(st.compile(expression, formats, schedule=schedule).source) == 1


@pytest.mark.parametrize(
    ("expression", "formats"),
    [
        ("R(i,j) = A(i,j) * y(i)", {"A": "csr", "R": "csr"}),  # the row counts
        ("y(i) = A(i,j)", {"A": "csr"}),
        ("y(j) = A(i,j)", {"A": "csr"}),
        ("R(i,j) = exp(A(i,j))", {"A": st.Format("dense, padded"), "R": "csr"}),  # rows do not follow one another
        ("R(i,j) = T(i,j,k) * x(i,k)", {"T": "dense, compressed, compressed", "R": "csr"}),
    ],
)
def test_rows_that_matter_keep_their_loop(expression: str, formats: dict[str, Any]) -> None:
    assert loops(st.compile(expression, formats).source) >= 2


@pytest.mark.cc
@pytest.mark.parametrize("schedule", ["", PARALLEL.format("static"), PARALLEL.format("dynamic, 2"), PARALLEL.format("guided, 8")])
@pytest.mark.parametrize("rows", [0, 1, 7, 3000])
def test_results_are_those_of_rows(rows: int, schedule: str) -> None:
    """Empty rows, empty matrices, and more entries than a thread claims at a time."""
    rng = np.random.default_rng(rows)
    matrix: Any = sp.random_array((rows, 40), density=0.1, format="csr", rng=rng)
    kernel = st.compile("R(i,j) = exp(A(i,j)) * x(j)", {"A": "csr", "R": "csr"}, schedule=schedule)
    x = rng.random(40)
    result: Any = kernel(A=matrix, x=x, threads=3).to_scipy()
    assert np.allclose(result.data, np.exp(matrix.data) * x[matrix.indices])
    assert np.array_equal(result.indptr, matrix.indptr)


@pytest.mark.cc
def test_tensors_of_three_modes_and_fibres_without_entries() -> None:
    rng = np.random.default_rng(3)
    dense = rng.random((9, 8, 7)) * (rng.random((9, 8, 7)) < 0.1)
    for form in ("csf", st.Format("dense, compressed, compressed"), st.Format("dense, dense, compressed"), "coo"):
        found = st.evaluate("R(i,j,k) = sqrt(A(i,j,k))", {"A": st.tensor(dense, form)}, output_format=form)
        assert np.allclose(found.to_numpy(), np.sqrt(dense))


@pytest.mark.parametrize(
    ("expression", "result", "extents"),
    [
        ("R(i,j) = T(i,j,k) * x(k)", "csr", {}),
        ("R(i,j,r) = T(i,j,k) * x(k,r)", st.Format("dense, compressed, dense"), {"r": 16}),
        ("R(i,j,r) = T(i,j,k) * x(k,r)", st.Format("dense, compressed, dense"), {}),
        ("R(i,j) = T(i,j,k) * y(j) * x(k)", "csr", {}),
    ],
)
@pytest.mark.parametrize("schedule", ["", PARALLEL.format("static"), PARALLEL.format("dynamic, 2")])
def test_fibres_with_loops_of_their_own_have_one_loop(expression: str, result: Any, extents: dict[str, int], schedule: str) -> None:
    rng = np.random.default_rng(5)
    dense = rng.integers(1, 9, (40, 30, 20)) * (rng.random((40, 30, 20)) < 0.03) * (rng.random((40, 1, 1)) < 0.7) * 1.0
    kernel = st.compile(expression, {"T": "dense, compressed, compressed", "R": result}, extents, schedule=schedule)
    program = str(kernel.stages["consecutive"])
    assert "T2_pos[0]" in program
    assert " i: i64 in" not in program
    x, y = rng.integers(0, 9, (20, 16) if "r" in expression.split("=")[1] else 20) * 1.0, rng.integers(0, 9, 30) * 1.0
    found = kernel(T=st.tensor(dense, "dense, compressed, compressed"), x=x, threads=3, **({"y": y} if "y(" in expression else {}))
    scaled = dense * y[:, None] if "y(" in expression else dense
    np.testing.assert_array_equal(found.to_numpy(), scaled @ x)


def test_sums_over_all_rows_keep_their_loops() -> None:
    """An iteration that adds to a variable of outside does more than to store at its own place."""
    kernel = st.compile("y = T(i,j,k) * x(k)", {"T": "dense, compressed, compressed"})
    assert " i: i64 in" in str(kernel.stages["consecutive"])
