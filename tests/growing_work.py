"""How what schedules do grows with their operands, counted on operands of two extents."""

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
