"""Loops over all positions of an operand on a GPU: host code knows how many there are, and reads nothing back before a kernel starts."""

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
