"""What members of frontiers really do, counted as inputs grow.

On every input some member stays within a constant of the best of a sample of the space, and no schedule of the sample grows slower than a
member on every input. Costs need not be ordered: with ``D`` almost empty, inner products of ``B`` and ``C`` that skip its empty rows do
less than sums of rows of ``C``, and far more where nothing is empty, so that both are members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf

import numpy as np
import pytest
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.pipeline import compile_kernel
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


Shares = Mapping[str, float]
"""Of operands the entries a row; below one, one entry in all."""

FASTER = 1.5
"""So many times as fast work grows, on operands of three times the extent, where it is not within a constant: 3 for each further power."""


def operands_of(found: Exploration, extent: int, shares: Shares) -> dict[str, object]:
    """Return operands whose extents all are ``extent``, the sparse ones with entries at random places."""
    made: dict[str, object] = {}
    for seed, access in enumerate(accesses(found.space.members.assignment.value)):
        rng, form = np.random.default_rng(seed), found.space.members.formats[access.tensor]
        shape = (extent,) * len(form)
        if form.is_dense:
            made[access.tensor] = rng.random(shape)
        else:
            entries = entries_of(shares[access.tensor], extent)
            places = rng.integers(0, extent, (len(form), entries))
            made[access.tensor] = tensor((places, np.ones(entries)), form, shape)
    return made


def entries_of(share: float, extent: int) -> int:
    return max(1, round(share * extent))


class Works:
    """What schedules do on operands of two extents, beside a pass over operands and dimensions, which all of them pay.

    Args:
        found: the exploration that they are of.
        kernels: they, compiled.
        extents: of all operands.
        shares: of the sparse ones.
    """

    def __init__(self, found: Exploration, kernels: Sequence[Kernel], extents: tuple[int, int], shares: Shares) -> None:
        self._kernels, self._small, self._large = kernels, dict[int, float](), dict[int, tuple[float, float]]()
        self._operands = [operands_of(found, extent, shares) for extent in extents]
        self._paid = [6 * (max(entries_of(share, extent) for share in shares.values()) + extent) for extent in extents]

    def _done(self, place: int, size: int, most: float = inf) -> float:
        run = self._kernels[place].bind_operands(self._operands[size], threads=1)
        return work(run, most - self._paid[size]) + self._paid[size]

    def small(self, place: int) -> float:
        """Return what a schedule does on the smaller operands."""
        if place not in self._small:
            self._small[place] = self._done(place, 0)
        return self._small[place]

    def large(self, place: int, most: float = inf) -> float:
        """Return what a schedule does on the larger operands; where that is more than ``most``, anything that is more."""
        counted, until = self._large.get(place, (inf, -inf))
        if until < min(counted, most):
            self._large[place] = self._done(place, 1, most), most
        return self._large[place][0]

    def bound(self, one: int, other: int) -> float:
        """Return what the second schedule does at most on the larger operands where what the first does grows faster."""
        return self.large(one) * self.small(other) / (FASTER * self.small(one))

    def grows_faster(self, one: int, other: int) -> bool:
        """Whether what the first schedule does grows faster than what the second does."""
        most = self.bound(one, other)
        return self.large(other, most) <= most

    def best(self, places: Sequence[int]) -> int:
        """Return the schedule that does least on the larger operands; the first of several."""
        found = places[0]
        for place in places[1:]:
            found = place if self.large(place, self.large(found)) < self.large(found) else found
        return found


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
