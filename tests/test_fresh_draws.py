"""Properties on examples that nobody has seen: every other run draws the same ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.nightly
def test_properties_hold_for_fresh_draws() -> None:
    """What fails here shows its example and how to draw it again; it becomes an ``@example`` of its test, or a test of its own."""
    tests = Path(__file__).parent
    chosen = ["-m", "hypothesis and not nightly", "--hypothesis-profile", "fresh", "-n", "auto", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([sys.executable, "-m", "pytest", str(tests), *chosen], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
