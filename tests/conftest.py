"""What all tests share: programs verified between passes, the switch that rewrites golden files, and patient property tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ.setdefault("SPARSETUNE_VERIFY", "1")  # also for the processes that tests start
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is printed now into the golden files instead of comparing")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
