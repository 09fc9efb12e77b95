"""Contestants of a race write into the same memory."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.build.bound import BoundKernel
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.datasets.generate import generate
from sparsetune.tuner.kernels import Candidate
from sparsetune.tuner.reports.one_memory import OneMemory
from sparsetune.tuner.resolve import make_problem

pytestmark = pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")


def test_dense_results_lie_in_one_place() -> None:
    matrix = generate("random:uniform:60x40:nnz=300", "csr")
    x = np.random.default_rng(0).random(40)
    memory = OneMemory(make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": x}, threads=1))
    runs = [memory.bind(Schedule(text)) for text in ("", "unroll(j, 2)", 'build(auto, "-O2")')]
    places = {run().ctypes.data for run in runs}
    assert len(places) == 1
    for run in runs:
        np.testing.assert_allclose(run(), matrix.to_numpy() @ x)


def test_a_call_that_stands_alone_converts_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice that converts was raced without its conversions, and won by them."""
    matrix = generate("random:uniform:60x40:nnz=300", "csc")
    memory = OneMemory(make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(40)}, threads=1))
    calls = [memory.call(Schedule(text)) for text in ("", 'convert(A, "csr"); reorder(i, j)')]
    bound: list[object] = []
    bind = Candidate.bind
    monkeypatch.setattr(Candidate, "bind", lambda one, *given: bound.append(one) or bind(one, *given))
    for call, times in zip(calls, (0, 3), strict=True):
        bound.clear()
        for _ in range(3):
            np.testing.assert_allclose(call(), matrix.to_numpy().sum(axis=1))
        assert len(bound) == times
    assert len({call().ctypes.data for call in calls}) == 1


def test_a_call_with_a_sparse_result_converts_and_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = generate("random:uniform:60x40:nnz=300", "csc")
    memory = OneMemory(make_problem("B(i,j) = 2 * A(i,j)", {"A": matrix}, "csr", threads=1))
    call = memory.call(Schedule('convert(A, "csr"); reorder(i, j)'))
    ran: list[object] = []
    run = BoundKernel.__call__
    monkeypatch.setattr(BoundKernel, "__call__", lambda one: ran.append(one) or run(one))
    np.testing.assert_allclose(call().to_numpy(), 2 * matrix.to_numpy())
    assert len(ran) == 1


def test_sparse_results_and_numbers_are_made_anew() -> None:
    matrix = generate("random:uniform:60x40:nnz=300", "csr")
    for expression, form in (("B(i,j) = 2 * A(i,j)", "csr"), ("s = A(i,j)", None)):
        memory = OneMemory(make_problem(expression, {"A": matrix}, form, threads=1))
        one, other = (memory.bind(Schedule(text)) for text in ("", "unroll(i, 2)"))
        assert one() is not other()
