"""What the page on pruning says about its measurements, and the work that it counts."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.reports.contest import work
from sparsetune.tuner.reports.pruning import NOISE, Finding, page


def finding(inside: float, outside: float) -> Finding:
    return Finding("SpGEMM2", "pigeon-taco", 300, "banded", 32, 24, 3, inside, outside, 1.0, 1_200_000, 1_100_000)


def test_work_is_what_a_loop_does() -> None:
    # y += B(i,j) * x(j): an entry takes its coordinate, two values, and a pass; a row two positions, a pass and a store or so.
    dense = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]])
    bound = compile_kernel("y(i) = B(i,j) * x(j)", {"B": "csr"}).bind_operands({"B": tensor(dense, "csr"), "x": np.ones(3)}, 1)
    entries, rows = 3, 3
    assert entries * 4 + rows * 2 <= work(bound) <= entries * 4 + rows * 6
    assert work(bound) == work(bound)  # no run sees what another one left
    assert work(bound, work(bound)) == work(bound)
    assert 7 < work(bound, 7) < work(bound), "it was ended early"


@pytest.mark.parametrize(("inside", "shown"), [(1.0, True), (1.05, True), (1.3, False)])
def test_the_verdict_follows_from_the_ratios(inside: float, shown: bool) -> None:
    text = page([finding(inside, 1.0)])
    assert ("In every case the fastest program is on the frontier" in text) == shown
    assert (f"by more than noise ({NOISE}) for SpGEMM2 on banded (1.30)" in text) != shown
    assert "| 1,200,000 | 1,100,000 |" in text
