"""ThreadSanitizer finds the races that a schedule says to ignore, and none in kernels whose race strategies keep threads apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from differential import tuner_candidates
from differential.scheduled import Scheduled, kinds_of, random_scheduled
from differential.thread_sanitizer import is_there, report

pytestmark = [
    pytest.mark.cc, pytest.mark.slow, pytest.mark.nightly,
    pytest.mark.skipif(not is_there(), reason="the compiler lacks ThreadSanitizer (libtsan)"),
]  # fmt: skip
SHAPE = {"i": 40, "j": 50, "k": 20, "l": 6, "m": 3, "r": 8}
SPMV = "y(i) = A(i,j) * x(j)"


def said(case: Scheduled, folder: Path) -> str:
    arrays = case.operands(case.extents_in(SHAPE), "scattered", np.random.default_rng(0))
    return report(case.compiled().bind_operands(arrays, 4), 4, folder)


@pytest.mark.parametrize(
    ("formats", "schedule", "racy"),
    [
        ("A=csc", "parallelize(j, cpu_thread, ignore_races)", True),
        ("A=csc", "parallelize(j, cpu_thread, atomics)", False),
        ("A=csc", "parallelize(j, cpu_thread, temporary)", False),
        ("A=csr", "parallelize(i, cpu_thread, no_races)", False),
        ("A=csc", "precompute(A(i,j) * x(j), i, i, w); parallelize([0], j, cpu_thread, ignore_races)", True),
        ("A=csc", "precompute(A(i,j) * x(j), i, i, w); parallelize([0], j, cpu_thread, atomics)", False),
        ("A=csc", "precompute(A(i,j) * x(j), i, i, w); parallelize([0], j, cpu_thread, parallel_reduction)", False),
    ],
)
def test_the_sanitizer_tells_racy_kernels_from_others(formats: str, schedule: str, racy: bool, tmp_path: Path) -> None:
    found = said(Scheduled(0, SPMV, kinds_of(formats), schedule), tmp_path)
    assert bool(found) == racy, found


@pytest.mark.parametrize("part", range(8))
def test_parallel_candidates_have_no_race(part: int, tmp_path: Path) -> None:
    seeds = range(len(tuner_candidates.chosen_candidates(0, True)))[part::64]
    found = [(case, text) for case in map(tuner_candidates.parallel_candidate, seeds) if (text := said(case, tmp_path))]
    assert not found


@pytest.mark.parametrize("part", range(8))
def test_random_parallel_schedules_have_no_race(part: int, tmp_path: Path) -> None:
    drawn = (random_scheduled(seed) for seed in range(part, 400, 8))
    parallel = [case for case in drawn if "cpu_thread" in case.schedule and "ignore_races" not in case.schedule]
    found = [(case, text) for case in parallel if (text := said(case, tmp_path))]
    assert not found
