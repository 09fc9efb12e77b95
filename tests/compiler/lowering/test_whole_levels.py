"""Positions of an operand on a GPU: host code knows how many there are, and reads nothing back; warps look once where theirs begin."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from differential import gpu

FIBRES = "collapse(i, j, f); pos(f, p, B(i,j,k)); parallelize(p, gpu_warp, no_races); parallelize(k, gpu_thread, parallel_reduction)"
TTV = "T(i,j) = B(i,j,k) * c(k)"


def test_lengths_of_levels_are_bounds() -> None:
    text = st.compile(TTV, {"B": "csf", "T": "dcsr"}, schedule=FIBRES, target="cuda", arch="sm_90").source
    assert "p_end = B2_length;" in text
    assert "st_device.take(" not in text
    assert "B1_pos" not in text[: text.index("ST_EXPORT")]
    shares = (
        "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 2); parallelize(b, gpu_block, temporary);"
        " parallelize(t, gpu_thread, temporary)"
    )
    carried = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=shares, target="cuda", arch="sm_90").source
    assert "st_device.take(" not in carried  # slots for all shares, which host code counts


@pytest.mark.cc
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_all_positions_are_gone_through(share: float) -> None:
    rng = np.random.default_rng(0)
    tensor = rng.integers(1, 5, (7, 5, 9)) * (rng.random((7, 5, 9)) < share).astype(float)
    kernel = st.compile(TTV, {"B": "csf", "T": "dcsr"}, schedule=FIBRES, target=gpu.TARGET)
    np.testing.assert_array_equal(kernel(B=tensor, c=np.arange(9.0)).to_numpy(), tensor @ np.arange(9.0))


def test_warps_look_once_for_their_rows() -> None:
    """All lanes of a warp that has a share of fibres begin in the same slice, which they find together."""
    schedule = (
        "reorder(i, j, r, k); collapse(i, j, f); pos(f, p, B(i,j,k)); split(p, b, n, 16); reorder(b, r, n, k); parallelize(b, gpu_warp,"
        " no_races); parallelize(r, gpu_thread, atomics)"
    )
    text = st.compile("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"}, schedule=schedule, target="cuda", arch="sm_90").source
    assert "int64_t first_B1 = st_upper_bound_of_warp_i32(B2_pos, 1, B1_length + 1, p_low) - 1;\n    for (int64_t r =" in text
    assert "st_upper_bound_i32(" not in text
