"""Thousands of random expressions against the dense oracle; ``campaign`` runs more of them, also under sanitizers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from differential.cases import random_case
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
    assert len(kinds) == 7
    assert any(0 in case.shape for case in cases)
    assert any(case.accumulates for case in cases)
    assert any(case.semiring != ("+", "*") for case in cases)
    assert {len(operand.shape) for case in cases for operand in case.operands.values()} >= {0, 1, 2, 3, 4}
