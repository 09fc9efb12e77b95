"""Searches of blocks and warps of a GPU: all lanes look at once for what all of them need."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential import gpu

pytestmark = pytest.mark.cc
needs_cxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
SPMM = "Y(i,k) = A(i,j) * X(j,k)"
SHARES = (
    "collapse(i, j, f); pos(f, p, A); split(p, b, q, 32); split(q, w, n, 8); reorder(b, w, k, n); parallelize(b, gpu_block, no_races);"
    " parallelize(w, gpu_warp, no_races); parallelize(k, gpu_thread, atomics)"
)
WARPS = (
    "collapse(i, j, f); pos(f, p, A); split(p, w, n, 8); reorder(w, k, n); parallelize(w, gpu_warp, no_races);"
    " parallelize(k, gpu_thread, atomics)"
)


def test_lanes_look_together_for_what_is_the_block_s_and_alone_for_what_is_their_own() -> None:
    text = st.compile(SPMM, {"A": "csr"}, schedule=SHARES, target="cuda", arch="sm_90").source
    assert text.count("= st_upper_bound_of_warp_i32(") == 2  # the block's row, and in what the block has that of the warp
    assert "= st_upper_bound_i32(" not in text
    threads = "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 2); parallelize(b, gpu_block, no_races);"
    text = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=f"{threads} parallelize(t, gpu_thread, atomics)", target="cuda",
                      arch="sm_90").source  # fmt: skip
    together, alone = text.index("= st_upper_bound_of_warp_i32("), text.index("= st_upper_bound_i32(")
    assert together < text.index("st_thread_of_block()") < alone


@needs_cxx
@pytest.mark.parametrize("schedule", [SHARES, WARPS, WARPS.replace("gpu_warp, no_races", "gpu_warp, no_races, lanes, 4")])
@pytest.mark.parametrize(
    ("density", "shape"),
    [(0.02, (1500, 11)), (0.9, (3, 70)), (0.3, (33, 9)), (0.0, (5, 5)), (1.0, (1, 40)), (0.002, (2100, 9)), (0.5, (64, 4))],
)
def test_first_rows_are_found_in_many_and_in_few(schedule: str, density: float, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    kernel = st.compile(SPMM, {"A": "csr"}, schedule=schedule, target=gpu.TARGET)
    matrix = scipy.sparse.csr_array(rng.integers(1, 5, shape) * (rng.random(shape) < density).astype(float))
    x = rng.integers(1, 5, (shape[1], 5)).astype(float)
    np.testing.assert_array_equal(kernel(A=matrix, X=x), matrix @ x)


ENTRIES = "collapse(j, k, f); collapse(i, f, g); pos(g, p, B); split(p, t, q, 5); parallelize(t, gpu_thread, atomics)"


@needs_cxx
@pytest.mark.parametrize(("expression", "formats", "schedule"), [
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr"},
     "collapse(k, j, f); pos(f, p, B); split(p, t, q, 4); reorder(i, t, q); parallelize(i, gpu_thread, no_races)"),
    ("y(j) = A(i) * B(i,j,k) * c(k)", {"A": "compressed", "B": "csf"}, ENTRIES),
    ("y(j) = A(i,j) * B(i,j,k) * c(k)", {"A": "csr", "B": "csf"}, ENTRIES),
    ("y(i) = A(j) * B(i,j,k) * c(k)", {"A": "compressed", "B": "csf"}, ENTRIES),
])  # fmt: skip
def test_rows_that_another_operand_does_not_have_are_passed_over(expression: str, formats: dict[str, str], schedule: str) -> None:
    """A cursor that stayed before the entries of such a row was looked up the row's parent for again, and for ever."""
    rng, extents = np.random.default_rng(0), {"i": 7, "j": 11, "k": 5}
    left, *factors = re.findall(r"\((.*?)\)", expression.replace(",", ""))
    names = re.findall(r"(\w)\(", expression.partition("=")[2])
    shapes = [tuple(extents[index] for index in indices) for indices in factors]
    values = [rng.integers(1, 4, shape) * (rng.random(shape) < 0.4).astype(float) for shape in shapes]
    kernel = st.compile(expression, formats, schedule=schedule, target=gpu.TARGET)
    found = kernel(**dict(zip(names, values, strict=True)))
    np.testing.assert_array_equal(found, np.einsum(f"{','.join(factors)}->{left}", *values))
