"""Thousands of random expressions against the dense oracle; ``campaign`` runs more of them, also under sanitizers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sparsetune.compiler.pipeline import compile_kernel

from differential.again import datasets, spoil
from differential.blocks import FEWEST
from differential.cases import Operand, random_case
from differential.expressions import ROW
from differential.formats import COMPRESSED, DENSE
from differential.runner import run_isolated

CASES = 2000
SEED = 0
SANITIZED = 1000
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.cc
@pytest.mark.slow
def test_random_cases_agree_with_the_oracle() -> None:
    failures = run_isolated(range(SEED, SEED + CASES))
    assert not failures, "\n".join(map(str, failures))


@pytest.mark.cc
@pytest.mark.nightly
def test_random_cases_under_sanitizers_and_interpreted() -> None:
    """Addresses and undefined behaviour are watched in C, and every loop IR is run by its interpreter too."""
    command = [sys.executable, "-m", "tests.differential.campaign", "--cases", str(SANITIZED), "--seed", "900", "--sanitize"]
    done = subprocess.run([*command, "--interpret-every", "1"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_cases_are_reproducible_and_varied() -> None:
    cases = [random_case(seed) for seed in range(300)]
    assert [str(case) for case in cases] == [str(random_case(seed)) for seed in range(300)]
    kinds = {kind for case in cases for form in case.formats.values() for kind in form.levels}
    assert len(kinds) == 9
    assert any(0 in case.shape for case in cases)
    assert any(case.accumulates for case in cases)
    assert any(case.semiring != ("+", "*") for case in cases)
    assert {len(operand.shape) for case in cases for operand in case.operands.values()} >= {0, 1, 2, 3, 4}


def test_some_cases_have_blocks_of_rows_of_every_manner() -> None:
    """Blocks of 64 rows are empty, or have long rows, and in sums of two sparse operands not the same ones are empty."""
    cases = [case for case in map(random_case, range(1000)) if case.extents.get(ROW, 0) >= FEWEST]
    assert len(cases) > 60
    found = [[_blocks(operand) for operand in case.operands.values() if _has_rows(operand)] for case in cases]
    assert sum(any((blocks == 0).any() and blocks.any() for blocks in case) for case in found) > 30
    assert sum(any((blocks > 24).any() for blocks in case) for case in found) > 15
    assert sum(len({tuple(blocks == 0) for blocks in case}) > 1 for case in found) > 15


def test_kernels_run_again_on_other_data_of_the_same_formats() -> None:
    pairs = [tuple(datasets(case)) for case in map(random_case, range(150))]
    assert all(first.formats == second.formats and first.dtype == second.dtype for first, second in pairs)
    assert all(second.extents[index] == extent for first, second in pairs for index, extent in first.constants.items())
    assert sum(first.extents != second.extents for first, second in pairs) > 75


@pytest.mark.cc
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_results_hold_garbage_before_kernels_run(dtype: str) -> None:
    """Elements that a kernel does not write are zeros in fresh memory, and look right."""
    kernel = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csr"}).bind(A=np.zeros((4, 3), dtype), x=np.zeros(3, dtype))
    kernel._kernel_run = lambda: 0
    spoil(kernel)
    assert kernel().all()


def _has_rows(operand: Operand) -> bool:
    return len(operand.shape) == 2 and operand.shape[0] >= FEWEST and operand.form.levels == (DENSE, COMPRESSED)


def _blocks(operand: Operand) -> NDArray[Any]:
    """Return how many entries a row has on average, by blocks."""
    counts = np.bincount([row for row, _ in operand.coordinates], minlength=operand.shape[0])
    return np.array([counts[first : first + 64].mean() for first in range(0, len(counts), 64)])
