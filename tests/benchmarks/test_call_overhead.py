"""What a call costs beside the kernel itself: under 10 microseconds bound, under 40 plain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = pytest.mark.cc
BOUND_LIMIT, CALL_LIMIT = 10e-6, 40e-6


@pytest.fixture(scope="module")
def operands() -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {"A": sp.random_array((10, 10), density=0.3, format="csr", rng=random), "x": random.random(10)}


@pytest.fixture(scope="module")
def kernel() -> Any:
    return st.compile("y(i) = A(i,j) * x(j)", formats={"A": "csr"})


def raw_call(bound: Any) -> Any:
    """Return a function that only enters the C code of a bound kernel."""
    return bound._kernel_run


def report(benchmark: BenchmarkFixture, kernel_seconds: float, limit: float) -> None:
    """Put what remains of the quickest round without the kernel beside the limit."""
    stats: Any = benchmark.stats
    if benchmark.enabled:
        overhead = stats.stats.min - kernel_seconds
        benchmark.extra_info.update(overhead_microseconds=1e6 * overhead, limit_microseconds=1e6 * limit, kept=overhead < limit)


def seconds(function: Any) -> float:
    import timeit

    return min(timeit.repeat(function, number=1000, repeat=20)) / 1000


def test_bound(benchmark: BenchmarkFixture, kernel: Any, operands: dict[str, Any]) -> None:
    bound = kernel.bind(**operands, threads=1)
    benchmark(bound)
    report(benchmark, seconds(raw_call(bound)), BOUND_LIMIT)


def test_plain_call(benchmark: BenchmarkFixture, kernel: Any, operands: dict[str, Any]) -> None:
    benchmark(lambda: kernel(A=operands["A"], x=operands["x"], threads=1))
    report(benchmark, seconds(raw_call(kernel.bind(**operands, threads=1))), CALL_LIMIT)


def test_plain_call_on_a_tensor(benchmark: BenchmarkFixture, kernel: Any, operands: dict[str, Any]) -> None:
    stored = st.tensor(operands["A"])
    benchmark(lambda: kernel(A=stored, x=operands["x"], threads=1))
    report(benchmark, seconds(raw_call(kernel.bind(**operands, threads=1))), CALL_LIMIT)
