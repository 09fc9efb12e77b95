"""``.github/workflows/nightly-tests.yml``: its jobs run every nightly test once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "nightly-tests.yml"
FEW = "tests/differential/test_thread_sanitizer.py"
"""Has nightly tests and others."""
LONGEST = 360
"""Minutes after which GitHub ends a job."""

pytestmark = pytest.mark.tree


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    (found,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    return found


def collected(*words: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", FEW, "-q", "-p", "no:cacheprovider", "--collect-only", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_each_part_is_a_job_that_ends_in_time(job: dict[str, Any]) -> None:
    last = job["steps"][-1]["run"]
    found = re.fullmatch(r"python -m pytest tests -q -m nightly --part \$\{\{ matrix\.part \}\}/(\d+)", last)
    assert found, last
    assert job["strategy"]["matrix"]["part"] == [*range(1, int(found[1]) + 1)]
    assert job["strategy"]["fail-fast"] is False
    assert job["timeout-minutes"] < LONGEST


def test_parts_have_every_nightly_test_once() -> None:
    every = collected("-m", "nightly")
    parts = [collected("-m", "nightly", "--part", f"{part}/3") for part in (1, 2, 3)]
    assert sorted(test for part in parts for test in part) == sorted(every)
    assert all(len(every) // 3 <= len(part) <= len(every) // 3 + 1 for part in parts)


@pytest.mark.parametrize("part", ["4/3", "first"])
def test_a_part_that_there_is_not_is_refused(part: str) -> None:
    command = [sys.executable, "-m", "pytest", FEW, "-p", "no:cacheprovider", "--part", part]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"argument --part: invalid part value: '{part}'" in done.stderr
