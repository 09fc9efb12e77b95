"""Kernels beside SciPy, MKL and each other, as ratios of times taken in one race; seconds are never asserted.

Run with ``pytest tests/benchmarks --benchmark-enable``; ratios are in the report's extra information. Without that option
each kernel runs once or twice on a small input and its result is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.datasets.generate import generate
from sparsetune.tuner.kernels import compile_problem
from sparsetune.tuner.peers import Peer, choose_peers
from sparsetune.tuner.reports.operations import factorized, unfactorized
from sparsetune.tuner.reports.race import Pace, Series, race
from sparsetune.tuner.reports.speed import TRIAD, product_bytes
from sparsetune.tuner.reports.workloads import KERNELS, KernelCase, operands_of, problem_of, random_dense

pytestmark = pytest.mark.cc
THREADS = ", cpu_thread, no_races, dynamic, 64)"
SCHEDULES = {
    "SpMV": ("precompute(A(i,j) * x(j), [], [], w); parallelize([0], j, cpu_vector, parallel_reduction)", "parallelize(i"),
    "SpMM 32": ("precompute(A(i,j) * X(j,k), k, k, w); prefetch([0], j, X, 12)", "parallelize(i"),
    "SDDMM 128": (
        "precompute(U(i,k) * V(j,k), [], [], w); parallelize([0], k, cpu_vector, parallel_reduction); prefetch(j, V, 4)",
        "parallelize(i",
    ),
    "MTTKRP 32": ("precompute(T(i,j,k) * C(k,r), r, r, w); prefetch([0], k, C, 8)", "parallelize(i"),
    "TTV": ("precompute(T(i,j,k) * c(k), [], [], w)", "parallelize(i"),
}
FUSED = "precompute(T(i,j,k) * C(k,s), [s], [s], w)"


def source_of(case: KernelCase, large: bool) -> Tensor:
    order = 2 if case.sparse == "A" else 3
    size = {2: ("50x40:nnz=300", "100000x100000:nnz=1e6"), 3: ("20x15x30:nnz=300", "1000x1000x1000:nnz=1e6")}[order][large]
    return generate(f"random:uniform:{size}", ", ".join(["dense"] + ["compressed"] * (order - 1)))


def pace(benchmark: BenchmarkFixture) -> Pace:
    return Pace(2.0) if benchmark.enabled else Pace(0.0, 1, 1)


def runs_of(case: KernelCase, source: Tensor, threads: int, schedules: Mapping[str, str], peers: tuple[Peer, ...] = ()) -> dict[str, Any]:
    """Return functions that compute a kernel, by the names of schedules and peers."""
    problem = problem_of(case, operands_of(case, source), "", threads)
    ours = {name: compile_problem(problem, Schedule(text)).bind(problem.operands, threads) for name, text in schedules.items()}
    theirs = {peer.name: run for peer in peers if (run := peer.prepare(problem)) is not None}
    return {**ours, **theirs}


def agree(runs: Mapping[str, Any]) -> None:
    results = {name: dense(run()) for name, run in runs.items()}
    first = next(iter(results.values())).copy()
    for name, found in results.items():
        np.testing.assert_allclose(found, first, rtol=1e-10, err_msg=name)


def dense(found: Any) -> Any:
    return found.values if isinstance(found, Tensor) else np.array(found)


def report(benchmark: BenchmarkFixture, found: Mapping[str, Series], ours: str) -> None:
    """Put the time of every competitor over ours beside the benchmark."""
    benchmark.extra_info.update({f"{name} over {ours}": series.over(found[ours]).ratio for name, series in found.items() if name != ours})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", list(SCHEDULES))
def test_scheduled_against_default_and_peers(benchmark: BenchmarkFixture, name: str, threads: int) -> None:
    case, (serial, parallel) = KERNELS[name], SCHEDULES[name]
    source = source_of(case, benchmark.enabled)
    schedules = {"scheduled": serial if threads == 1 else f"{serial}; {parallel}{THREADS}", "default": ""}
    peers = tuple(peer for peer in choose_peers(()) if peer.name != "sparse")
    runs = runs_of(case, source, threads, schedules, peers)
    agree(runs)
    report(benchmark, race(runs, pace(benchmark)), "scheduled")
    benchmark(runs["scheduled"])


@pytest.mark.parametrize("name", ["SpMM 32", "SDDMM 128", "MTTKRP 32"])
def test_two_threads_against_one(benchmark: BenchmarkFixture, name: str) -> None:
    case, (serial, parallel) = KERNELS[name], SCHEDULES[name]
    source = source_of(case, benchmark.enabled)
    runs = {f"{threads} threads": runs_of(case, source, threads, {"run": f"{serial}; {parallel}{THREADS}"})["run"] for threads in (1, 2)}
    agree(runs)
    report(benchmark, race(runs, pace(benchmark)), "2 threads")
    benchmark(runs["2 threads"])


def test_fused_against_unfactorized(benchmark: BenchmarkFixture) -> None:
    case = KERNELS["TTMc 16x16"]
    size = "100x100x5000:nnz=1e6" if benchmark.enabled else "6x5x40:nnz=600"
    source = generate(f"random:uniform:{size}", "dense, compressed, compressed")
    runs = runs_of(case, source, 1, {"unfactorized": "", "fused": FUSED})
    agree(runs)
    report(benchmark, race(runs, pace(benchmark)), "fused")
    benchmark.extra_info["operations"] = unfactorized(source, case.dims) / factorized(source, case.dims)
    benchmark(runs["fused"])


def test_stencil_against_a_triad(benchmark: BenchmarkFixture) -> None:
    from sparsetune.compiler.pipeline import compile_kernel

    case, (serial, _) = KERNELS["SpMV"], SCHEDULES["SpMV"]
    source = generate(f"random:stencil27:{100 if benchmark.enabled else 4}", "csr")
    elements = 10_000_000 if benchmark.enabled else 1000
    runs = runs_of(case, source, 1, {"product": serial})
    runs["triad"] = compile_kernel(TRIAD).bind(b=random_dense("b", (elements,)), c=random_dense("c", (elements,)), threads=1)
    found = race(runs, pace(benchmark))
    share = found["triad"].over(found["product"]).ratio * product_bytes(*source.shape, source.nnz) / (24 * elements)
    benchmark.extra_info["share of the triad's bandwidth"] = share
    benchmark(runs["product"])
