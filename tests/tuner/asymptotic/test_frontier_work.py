"""What members of frontiers really do, counted as inputs grow.

On every input some member stays within a constant of the best of a sample of the space, and no schedule of the sample grows slower than a
member on every input. Costs need not be ordered: with ``D`` almost empty, inner products of ``B`` and ``C`` that skip its empty rows do
less than sums of rows of ``C``, and far more where nothing is empty, so that both are members.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from growing_work import Shares, Works
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.tuner.exploration import Exploration
from sparsetune.tuner.explore import explore

FEW = (
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    ("a(i) = B(i,j) * c(j) + D(i,j) * e(j)", {"B": "csr", "D": "csr"}),
)
MANY = (
    ("A(i,j) = B(i,j) + C(i,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    ("A(i,j) = B(i,k) * C(k,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    ("a(i) = B(i,j) * c(j)", {"B": "csr"}),
    ("a(j) = B(i,j) * c(i)", {"B": "csr"}),
    ("a(i) = B(i,j) * c(j)", {"B": "csc"}),
    ("a(i) = B(i,j) * c(j)", {"B": "dcsr"}),
    ("a(i) = b(i) + C(i,j) * d(j)", {"C": "csr"}),
    ("a(i) = B(i,j) * C(j,k) * d(k)", {"B": "csr", "C": "csr"}),
    ("A(i,k) = B(i,j) * C(j,k)", {"B": "csr"}),
    ("A(i,k) = B(i,j) * C(j,k)", {"B": "csr", "C": "csr"}),
    ("A(i,k) = B(i,j) * C(j,k)", {"A": "csr", "B": "csc", "C": "csr"}),
    ("A(i,k) = B(i,j) * C(j,k)", {"A": "csr", "B": "csr", "C": "csc"}),
    ("A(i,j) = B(i,k) * C(k,j) + D(i,j)", {"A": "csr", "B": "csr", "C": "csr", "D": "csr"}),
    ("A(i,j) = B(i,k) * C(k,j) + D(i,j)", {"B": "csr", "C": "csr", "D": "csr"}),
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "csr", "C": "csr"}),
    ("A(i,j) = B(i,j) + C(i,j) + D(i,j)", {"A": "csr", "B": "csr", "C": "csr", "D": "csr"}),
    ("A(i,j) = B(i,j) + C(j,i)", {"A": "csr", "B": "csr", "C": "csr"}),
    ("A(i,j) = B(i,j) * C(i,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    ("A(i,j) = B(i,j) * (C(i,j) + D(i,j))", {"A": "csr", "B": "csr", "C": "csr", "D": "csr"}),
    ("A(i,j) = B(i,j) + C(i,j) * D(i,j)", {"A": "csr", "B": "csr", "C": "csr", "D": "csr"}),
    ("A(i,j) = B(i,j) * C(i,k) * D(k,j)", {"A": "csr", "B": "csr"}),
    ("A(i,j) = B(i,j) * C(i,k) * D(k,j)", {"A": "csr", "B": "csr", "C": "csr", "D": "csr"}),
    ("A(i,l) = B(i,j) * C(j,k) * D(k,l)", {"A": "csr", "B": "csr", "C": "csr", "D": "csr"}),
    ("A(i,l) = B(i,j) * C(j,k) * D(k,l)", {"B": "csr"}),
    ("a = B(i,j) * C(i,j)", {"B": "csr", "C": "csr"}),
    ("a = B(i,j) * c(i) * d(j)", {"B": "csr"}),
    ("a(i) = B(i,j) * c(j) + b(i)", {"B": "csr"}),
    ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"}),
)


def all_shares(found: Exploration) -> Iterator[Shares]:
    """Yield what sparse operands hold: one entry, two a row, and one of them one entry where the others are half full or full."""
    names = [name for name, form in found.space.members.formats.items() if not form.is_dense]
    yield dict.fromkeys(names, 0.0)
    yield dict.fromkeys(names, 2.0)
    for few in names:
        yield {**dict.fromkeys(names, 12.0), few: 0.0}


def check(expression: str, formats: dict[str, str], extents: tuple[int, int], samples: int) -> None:
    """Compare how work grows: some member's grows no faster than the best one's, and no member's faster than another schedule's
    whatever the operands hold."""
    found = explore(expression, formats)
    members = [found.space.spelled(member) for kind in found.classes for member in islice(kind.schedules, 6)]
    schedules = list(dict.fromkeys([*members, *found.space.sample(samples, seed=3)]))
    stored = {name: form for name, form in found.space.members.formats.items() if not form.is_dense}
    kernels = [compile_kernel(found.expression, stored, schedule=schedule) for schedule in schedules]
    kept, everything = range(len(set(members))), range(len(schedules))
    rivals = {place: set(everything) - {place} for place in kept}
    for number, shares in enumerate(all_shares(found)):
        works = Works(found, kernels, extents, shares)
        if number < 2:
            best = works.best(everything)
            assert not all(works.grows_faster(place, best) for place in kept), f"no member grows as slowly as {schedules[best]} on {shares}"
        for other in everything:  # is counted as far as anything depends on it
            works.large(other, max((works.bound(place, other) for place, others in rivals.items() if other in others), default=0.0))
        rivals = {place: {other for other in others if works.grows_faster(place, other)} for place, others in rivals.items() if others}
    beaten = {str(schedules[place]): str(schedules[min(others)]) for place, others in rivals.items() if others}
    assert not beaten


@pytest.mark.parametrize(("expression", "formats"), FEW)
def test_members_work_as_little_as_the_best_of_a_sample(expression: str, formats: dict[str, str]) -> None:
    check(expression, formats, (12, 36), 6)


@pytest.mark.nightly
@pytest.mark.parametrize(("expression", "formats"), FEW + MANY)
def test_members_of_many_frontiers_work_as_little_as_the_best_of_a_sample(expression: str, formats: dict[str, str]) -> None:
    check(expression, formats, (12, 36), 20)
