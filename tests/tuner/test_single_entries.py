"""What is done without tuning for sums whose sparse operands hold one entry, counted as extents grow.

Neither the choice of the static model, which ``lookup`` gives where no database knows more, nor the default schedule where it chooses
none, nor the best member of a frontier does work that grows faster than that of the best of a uniform sample of the space.
"""

from __future__ import annotations

import pytest
from growing_work import Works, operands_of
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.tuner.explore import explore
from sparsetune.tuner.lookup import NOTHING, lookup_problem
from sparsetune.tuner.resolve import make_problem

EXTENTS = (12, 48)
FEW = (
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "csr", "C": "csr", "A": "csr"}),
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "dcsr", "C": "coo"}),
    ("a(i) = B(i,j) * c(j) + D(j,i) * e(j)", {"B": "csr", "D": "dcsr"}),
)
MANY = (
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "csr", "C": "csr"}),
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "csc", "C": "csc", "D": "csc", "A": "csc"}),
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "dcsr", "C": "dcsr", "D": "dcsr", "A": "dcsr"}),
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "coo", "C": "coo", "D": "coo"}),
    ("A(i,j) = B(i,j) + C(i,k) * D(k,j)", {"B": "coo", "C": "dcsr", "D": "csr", "A": "csr"}),
    ("A(i,j) = B(i,j) + C(i,k) * D(j,k)", {"B": "csr", "C": "csr"}),
    ("A(i,j) = B(i,j) + C(j,i)", {"B": "csr", "C": "csc"}),
    ("A(i,j) = B(i,j) + C(j,i)", {"B": "csr", "C": "csr", "A": "csr"}),
    ("A(i,j) = B(i,j) * C(i,j) + D(i,j)", {"B": "csr", "D": "dcsr"}),
    ("A(i,j) = B(i,k) * C(k,j) + D(i,k) * E(k,j)", {"B": "csr", "C": "csr", "D": "csr", "E": "csr", "A": "csr"}),
    ("A(i,j) = B(i,k) * C(k,j) + D(i,k) * E(k,j)", {"B": "dcsr", "D": "csc"}),
    ("A(i,j) = B(i,j) + C(i,j) * d(j) + E(i,k) * F(k,j)", {"B": "csr", "C": "csr", "E": "csr", "A": "csr"}),
    ("a(i) = b(i) + C(i,j) * d(j)", {"b": "s", "C": "dcsr", "a": "s"}),
    ("a(i) = B(i,j) * c(j) - D(i,j) * e(j)", {"B": "csc", "D": "csr"}),
    ("a = B(i,j) * C(i,j) + D(i,j)", {"B": "csr", "C": "dcsr", "D": "coo"}),
)


def check(expression: str, formats: dict[str, str], samples: int) -> None:
    found = explore(expression, formats, time_limit=None)  # the frontier does not depend on how busy the machine is
    shares = {name: 0.0 for name, form in found.space.members.formats.items() if not form.is_dense}
    result = found.space.members.assignment.target.tensor
    problem = make_problem(expression, operands_of(found, EXTENTS[1], shares), formats.get(result), threads=1)
    chosen = lookup_problem(problem, NOTHING, ()).schedule  # the default where nothing is expected to be faster
    members = [found.space.spelled(next(iter(kind.schedules))) for kind in found.classes]
    schedules = list(dict.fromkeys([chosen, *members, *found.space.sample(samples, seed=5)]))
    stored = {name: form for name, form in found.space.members.formats.items() if not form.is_dense}
    works = Works(found, [compile_kernel(found.expression, stored, schedule=schedule) for schedule in schedules], EXTENTS, shares)
    best = works.best(range(len(schedules)))
    assert not works.grows_faster(0, best), f"'{chosen}' grows faster than '{schedules[best]}'"
    kept = [place for place, schedule in enumerate(schedules) if schedule in members]
    assert not all(works.grows_faster(place, best) for place in kept), f"no member grows as slowly as '{schedules[best]}'"


@pytest.mark.parametrize(("expression", "formats"), FEW)
def test_sums_of_single_entries_cost_no_more_than_the_best_of_a_sample(expression: str, formats: dict[str, str]) -> None:
    check(expression, formats, 6)


@pytest.mark.nightly
@pytest.mark.parametrize(("expression", "formats"), MANY)
def test_more_sums_of_single_entries(expression: str, formats: dict[str, str]) -> None:
    check(expression, formats, 20)
