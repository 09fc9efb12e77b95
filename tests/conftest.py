"""What all tests share: how properties draw their examples, what may be skipped, programs verified between passes, golden files."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import settings

os.environ.setdefault("SPARSETUNE_VERIFY", "1")  # also for the processes that tests start
os.environ["SPARSETUNE_SHIPPED"] = ""  # no published schedule decides, neither here nor in processes that tests start
os.environ["SPARSETUNE_ANSWERS"] = ""  # nor results of lookups of earlier tests

ROOT = Path(__file__).resolve().parents[1]
COMPLETE = "SPARSETUNE_COMPLETE_TESTS"
"""Environment variable: if it is set, a test that would be skipped since a program or package is missing fails."""
PROGRAMS_AND_PACKAGES = ("not installed", "could not import", "pip install", "apt install", "C compiler")

settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("fixed")


def part(text: str) -> tuple[int, int]:
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError
    return number, parts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is printed now into the golden files instead of comparing")
    parser.addoption("--part", type=part, default="1/1", metavar="K/N", help="run of the chosen tests the K-th of each N in a row")


def pytest_configure(config: pytest.Config) -> None:
    if config.inipath != Path(__file__).resolve().with_name("pytest.ini"):
        raise pytest.UsageError("the tests have settings of their own; run 'pytest tests'")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells start background jobs so; programs under test would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # parts are of what -m and -k leave
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, parts = cast("tuple[int, int]", config.getoption("part"))
    left = [item for place, item in enumerate(items) if place % parts != number - 1]
    config.hook.pytest_deselected(items=left)
    items[:] = items[number - 1 :: parts]
    if not (ROOT / "pyproject.toml").exists():
        for item in items:
            if item.get_closest_marker("tree"):
                item.add_marker(pytest.mark.skip(reason="the project's own files are not here"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and os.environ.get(COMPLETE) and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if any(lacking in reason for lacking in PROGRAMS_AND_PACKAGES):
            report.outcome, report.longrepr = "failed", f"nothing may be missing here: {reason}"


@pytest.fixture(scope="session", autouse=True)
def database_of_these_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give tests that name no database one of their own, without what users or other processes have tuned."""
    os.environ["SPARSETUNE_DATABASE"] = str(tmp_path_factory.mktemp("database") / "schedules.sqlite")


@pytest.fixture(scope="session", autouse=True)
def choices_by_steps_alone() -> None:
    """Let no choice of these tests end by time: a collection of a large heap's garbage, or a slow machine, would change it."""
    from sparsetune.tuner import model

    model.SLACK = math.inf


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
