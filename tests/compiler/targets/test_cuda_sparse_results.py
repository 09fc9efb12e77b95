"""Sparse results on a GPU: they are counted, then filled, whichever loops are distributed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import sparsetune as st
from differential import gpu
from differential.gpu_results import ALONE, COLLECTED, INNER
from differential.scheduled import SHAPES, Scheduled, kinds_of

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]


def wrong(cases: tuple[tuple[str, str, str], ...], folder: Path) -> list[str]:
    """Return what is wrong with the results of expressions, formats and schedules: rows that have nothing, all of them, one entry."""
    given = [Scheduled(number, expression, kinds_of(formats), schedule) for number, (expression, formats, schedule) in enumerate(cases)]
    made = [gpu.compiled(case) for case in given]
    gpu.build([kernel.default_kernel for kernel in made], folder, "kernels")
    found = ((case, gpu.fault(case, kernel, (*gpu.MANY, (len(SHAPES), "blocks")))) for case, kernel in zip(given, made, strict=True))
    return [f"{case}: {fault}" for case, fault in found if fault]


def test_one_thread_does_what_no_loop_distributes(tmp_path: Path) -> None:
    assert not wrong(ALONE, tmp_path)


@pytest.mark.parametrize("cases", [INNER, COLLECTED], ids=["appended", "collected"])
def test_distributed_loops_write_sparse_results(cases: tuple[tuple[str, str, str], ...], tmp_path: Path) -> None:
    """Iterations append side by side, or threads collect entries in a table together."""
    assert not wrong(cases, tmp_path)


@pytest.mark.parametrize("pattern", ["some", "last", "none", "all"])
def test_blocks_go_through_their_iterations_in_rounds(pattern: str) -> None:
    schedule = "assemble(y, insert); split(i, a, b, 600); parallelize(a, gpu_block, no_races); parallelize(b, gpu_thread, no_races)"
    matrix = np.arange(1.0, 1401).reshape(700, 2)
    rows = {"some": np.arange(700) % 7 == 3, "last": np.arange(700) == 599, "none": np.zeros(700, bool), "all": np.ones(700, bool)}[pattern]
    matrix *= rows[:, None]
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr", "y": "compressed"}, schedule=schedule, target=gpu.TARGET)
    assert "st_scan_of_block(" in kernel.source
    assert not re.search(r"st_barrier_of_block\(\);\s*st_barrier_of_block\(\);", kernel.source)
    found = kernel(A=matrix, x=np.ones(2))
    assert found.nnz == rows.sum()
    assert np.array_equal(found.to_numpy(), matrix.sum(1))


@pytest.mark.parametrize("race", ["atomics", "temporary"])
def test_sums_of_threads_that_have_no_entry_to_add_to_are_refused(race: str) -> None:
    schedule = f'convert(B(i,j), "dense"); assemble(Z, insert); parallelize(k, gpu_thread, {race})'
    refused = r"on a GPU threads fill it together and cannot keep its entries; distribute a loop around it instead$"
    with pytest.raises(st.ScheduleError, match=refused):
        _ = st.compile("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csc", "Z": "csc"}, schedule=schedule, target=gpu.TARGET).source
    remedy = schedule.replace(f"parallelize(k, gpu_thread, {race})", "parallelize(j, gpu_thread, no_races)")
    _ = st.compile("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csc", "Z": "csc"}, schedule=remedy, target=gpu.TARGET).source
