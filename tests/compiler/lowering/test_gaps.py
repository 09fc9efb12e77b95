"""A dense result whose rows a loop stores in order is set to zero in the gaps between them alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor

SPMM, MTTKRP = "Y(i,k) = A(i,j) * X(j,k)", "Y(i,k) = A(i,j,l) * X(j,k) * Z(l,k)"
SHARED = "parallelize(i, cpu_thread, no_races, dynamic, 2)"
ROWS, INNER, WIDTH = 12, 5, 8


def spmm(schedule: str = "", width: int | None = WIDTH, form: str = "dcsr", semiring: tuple[str, str] = ("+", "*")) -> Kernel:
    extents = {} if width is None else {"k": width}
    return compile_kernel(SPMM, {"A": form}, extents=extents, schedule=schedule, semiring=semiring)


def cleared(kernel: Kernel) -> list[str]:
    """Return what a kernel sets to zero, as the stage after lowering has it."""
    lines = kernel.stages["lowering"].splitlines()
    return [line.strip() for line in lines if "Y_vals" in line and (" .. " in line or "place" in line)]


@pytest.mark.parametrize("schedule", ["", SHARED])
@pytest.mark.parametrize("width", [WIDTH, None])
def test_gaps_alone_are_cleared(schedule: str, width: int | None) -> None:
    kernel = spmm(schedule, width)
    source = kernel.stages["lowering"]
    assert "i_next" in source
    assert "if 2 * i_size <= 3 * (i64(A1_pos[1]) - i64(A1_pos[0])):" in source  # where few rows are stored, all is cleared ahead
    own = "i_next" in source and any(line.startswith(f"Y_vals[i * {width or 'k_size'} ..") for line in cleared(kernel))
    assert own == (width is None)  # rows of a known size are stored as they are


@pytest.mark.parametrize("form", ["csr", "coo", "hashed, compressed", "bitmap, compressed"])
def test_other_rows_are_cleared_as_before(form: str) -> None:
    assert "i_next" not in spmm(form=form).source


def test_short_rows_are_cleared_all_together() -> None:
    assert "i_next" not in spmm(width=4).source
    assert "i_next" not in compile_kernel("y(i) = A(i,j) * x(j)", {"A": "dcsr"}).source


def test_a_row_is_not_cleared_where_others_write_it() -> None:
    assert "i_next" not in compile_kernel("Y(k,i) = A(i,j) * X(j,k)", {"A": "dcsr"}, extents={"k": WIDTH}).source
    assert "i_next" not in compile_kernel(SPMM, {"A": "dcsc"}, extents={"k": WIDTH}).source


STORED = st.one_of(
    *(st.lists(st.sampled_from(kinds), min_size=ROWS, max_size=ROWS) for kinds in ((True, False), (True, True, True, True, False)))
)


@settings(max_examples=40, deadline=None)
@given(stored=STORED, seed=st.integers(0, 99))
@pytest.mark.parametrize("schedule", ["", SHARED, "parallelize(i, cpu_thread, no_races, static)"])
@pytest.mark.parametrize("width", [WIDTH, None])
def test_every_row_is_written(schedule: str, width: int | None, stored: list[bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.random((ROWS, INNER)) * np.array(stored)[:, None]
    x, out = rng.random((INNER, WIDTH)), np.full((ROWS, WIDTH), np.nan)
    spmm(schedule, width)(A=tensor(dense, "dcsr"), X=x, threads=3, out=out)
    np.testing.assert_allclose(out, dense @ x)


def test_gaps_hold_what_a_semiring_fills_with() -> None:
    dense = np.full((ROWS, INNER), np.inf)
    dense[[3, 7], [1, 2]] = 1.0, 2.0
    matrix = tensor((np.array([[3, 7], [1, 2]]), np.array([1.0, 2.0])), "dcsr", (ROWS, INNER))
    x, out = np.ones((INNER, WIDTH)), np.zeros((ROWS, WIDTH))
    spmm(semiring=("min", "+"))(A=matrix, X=x, out=out)
    np.testing.assert_array_equal(out, np.min(dense[:, :, None] + x[None], axis=1))


def test_rows_of_higher_order() -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((ROWS, INNER, INNER)) * (rng.random(ROWS) < 0.5)[:, None, None]
    x, z = rng.random((INNER, WIDTH)), rng.random((INNER, WIDTH))
    kernel = compile_kernel(MTTKRP, {"A": "csf"}, extents={"k": WIDTH})
    assert "i_next" in kernel.source
    np.testing.assert_allclose(kernel(A=tensor(dense, "csf"), X=x, Z=z), np.einsum("ijl,jk,lk->ik", dense, x, z))
