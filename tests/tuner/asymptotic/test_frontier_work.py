"""What members of frontiers really do, counted as inputs grow: within a constant of the best of a sample of the space."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.exploration import Exploration
from sparsetune.tuner.explore import explore
from sparsetune.tuner.reports.contest import work

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


def operands_of(found: Exploration, extent: int, entries: int) -> dict[str, object]:
    """Return operands whose extents all are ``extent``, the sparse ones with that many entries, one in every row first."""
    made: dict[str, object] = {}
    for seed, access in enumerate(accesses(found.space.members.assignment.value)):
        rng, form = np.random.default_rng(seed), found.space.members.formats[access.tensor]
        shape = (extent,) * len(form)
        if form.is_dense:
            made[access.tensor] = rng.random(shape)
        else:
            places = rng.integers(0, extent, (len(form), entries))
            made[access.tensor] = tensor((places, np.ones(entries)), form, shape)
    return made


def works(found: Exploration, schedules: list[Schedule], operands: dict[str, object]) -> list[int]:
    """Return what the schedules do, beside a pass over the operands and over every dimension, which all of them pay."""
    formats = {name: form for name, form in found.space.members.formats.items() if not form.is_dense}
    kernels = (compile_kernel(found.expression, formats, schedule=schedule) for schedule in schedules)
    return [work(kernel.bind_operands(operands, threads=1)) for kernel in kernels]


def check(expression: str, formats: dict[str, str], extents: tuple[int, int], samples: int) -> None:
    """Compare how work grows, on operands of one entry and of two entries a row: no member's grows faster than the best one's."""
    found = explore(expression, formats)
    members = [found.space.spelled(member) for kind in found.classes for member in islice(kind.schedules, 6)]
    schedules = list(dict.fromkeys([*members, *found.space.sample(samples, seed=3)]))
    for a_row in (0, 2):
        done, sunk = [], []
        for extent in extents:
            entries = max(1, a_row * extent)
            done.append(works(found, schedules, operands_of(found, extent, entries)))
            sunk.append(6 * (entries + extent))
        best = min(range(len(schedules)), key=done[1].__getitem__)
        for place in range(len(set(members))):
            small, large = ((work[place] + paid) / (work[best] + paid) for work, paid in zip(done, sunk, strict=True))
            assert large < 1.5 * small, f"{schedules[place]} does {large:.1f} times what {schedules[best]} does, {small:.1f} times on less"


@pytest.mark.parametrize(("expression", "formats"), FEW)
def test_members_work_as_little_as_the_best_of_a_sample(expression: str, formats: dict[str, str]) -> None:
    check(expression, formats, (12, 36), 6)


@pytest.mark.nightly
@pytest.mark.parametrize(("expression", "formats"), FEW + MANY)
def test_members_of_many_frontiers_work_as_little_as_the_best_of_a_sample(expression: str, formats: dict[str, str]) -> None:
    check(expression, formats, (16, 48), 20)
