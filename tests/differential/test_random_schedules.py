"""Random legal schedules, every candidate of the tuner and the library: they compile and are right, with one and several threads."""

from __future__ import annotations

import pytest

from differential import scheduled
from differential.runner import Failure, run_isolated

pytestmark = [pytest.mark.cc, pytest.mark.slow]
CASES = 200


@pytest.fixture(scope="module")
def failures() -> list[Failure]:
    return run_isolated(range(CASES), chunk=20, work=scheduled.run_random, describe=scheduled.random_scheduled)


def _refused(failure: Failure) -> bool:
    return failure.message.startswith("does not compile")


@pytest.mark.nightly
def test_random_schedules_that_compile_are_right(failures: list[Failure]) -> None:
    wrong = [failure for failure in failures if not _refused(failure)]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.nightly
@pytest.mark.xfail(reason="some combinations over collapsed and cut loops are legal one by one, and refused when they are lowered")
def test_random_legal_schedules_compile(failures: list[Failure]) -> None:
    refused = [failure for failure in failures if _refused(failure)]
    assert not refused, "\n".join(map(str, refused))


@pytest.mark.parametrize("part", [0])
def test_candidates_and_the_library_are_right(part: int) -> None:
    seeds = range(len(scheduled.chosen_candidates(1, False)))[part::8]
    found = run_isolated(seeds, chunk=30, work=scheduled.run_candidates, describe=scheduled.some_candidate)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_all_candidates_are_right() -> None:
    seeds = range(len(scheduled.chosen_candidates(1, False)))
    found = run_isolated(seeds, chunk=40, work=scheduled.run_candidates, describe=scheduled.some_candidate)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_a_campaign_of_random_schedules() -> None:
    found = run_isolated(range(1000, 4000), chunk=20, work=scheduled.run_random, describe=scheduled.random_scheduled)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_parallel_candidates_lose_no_update() -> None:
    """The run time of OpenMP is not instrumented for ThreadSanitizer, which then reports its barriers; whole numbers show races instead."""
    seeds = range(len(scheduled.chosen_candidates(0, True)))
    found = run_isolated(seeds, chunk=40, work=scheduled.run_stress, describe=scheduled.parallel_candidate)
    assert not found, "\n".join(map(str, found))
