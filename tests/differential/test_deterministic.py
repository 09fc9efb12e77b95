"""Private copies that are added in the order of the threads: the same bits on every run."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.pipeline import compile_kernel

pytestmark = pytest.mark.cc


@pytest.mark.parametrize("race", ["temporary", "parallel_reduction"])
@pytest.mark.parametrize("schedule", ["parallelize(j, cpu_thread, {}, static)",
                                      "split(j, a, b, 3); parallelize(a, cpu_thread, {}, static, 2)",
                                      "precompute(A(i,j) * x(j), i, i, w); parallelize([0], j, cpu_thread, {}, static)"])  # fmt: skip
def test_private_copies_give_the_same_bits_on_every_run(schedule: str, race: str) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((40, 300)) * 10.0 ** rng.integers(-8, 8, (40, 300))
    bound = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csc"}, schedule=schedule.format(race)).bind(
        A=matrix, x=rng.standard_normal(300), threads=7
    )
    first = bound().copy()
    assert all(np.array_equal(bound(), first) for _ in range(40))
