"""How the work of schedules grows with their operands, counted on operands of two extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.exploration import Exploration
from sparsetune.tuner.reports.contest import work

Shares = Mapping[str, float]
"""Entries a row of each sparse operand; below one, one entry in all."""

FASTER = 1.5
"""The ratio from which one work grows faster than another, on operands of three times the extent: each further power gives a factor of
3."""


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
    """The work of schedules on operands of two extents, without a pass over operands and dimensions, which all of them need.

    Args:
        found: the exploration that they are of.
        kernels: of the schedules.
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
        """Return the work of a schedule on the smaller operands."""
        if place not in self._small:
            self._small[place] = self._done(place, 0)
        return self._small[place]

    def large(self, place: int, most: float = inf) -> float:
        """Return the work of a schedule on the larger operands; any number above ``most`` where it is more than that."""
        counted, until = self._large.get(place, (inf, -inf))
        if until < min(counted, most):
            self._large[place] = self._done(place, 1, most), most
        return self._large[place][0]

    def bound(self, one: int, other: int) -> float:
        """Return the most work of the second schedule on the larger operands with which the work of the first one still grows faster."""
        return self.large(one) * self.small(other) / (FASTER * self.small(one))

    def grows_faster(self, one: int, other: int) -> bool:
        """Whether the work of the first schedule grows faster than that of the second."""
        most = self.bound(one, other)
        return self.large(other, most) <= most

    def best(self, places: Sequence[int]) -> int:
        """Return the schedule with the least work on the larger operands; the first of several."""
        found = places[0]
        for place in places[1:]:
            found = place if self.large(place, self.large(found)) < self.large(found) else found
        return found
