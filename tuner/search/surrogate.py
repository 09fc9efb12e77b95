"""What points take that were not tried: a Gaussian process over structures and what is in their holes.

The logarithm of a time is a sum of parts, each alike where points are alike: one of the structure, alike where structures share directives;
one of each value, the same in all structures with holes of that role; and one of the values together in this structure, which counts less
where points of the structure took about the same time: what is flat has nothing to find. How much each part counts is not known before, nor
how far numbers reach, so what explains the times best is taken from a few mixtures. What compilers and flags are worth depends on the code:
wider vectors may gain nothing in a dozen structures and a tenth in the next, so they have no part in common.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from ...compiler.frozen import frozen
from ...compiler.native.blas import one_thread
from ...compiler.space.decorations import BUILD
from .allocator import Expected, similarity
from .roles import keys, role

if TYPE_CHECKING:
    from .space import Point, Space

Vector: TypeAlias = "NDArray[np.float64]"
Matrix: TypeAlias = "NDArray[np.float64]"

_MEAN = 9.0  # prior variance of the mean of all points, over that of points around it
_NOISE = 0.002  # share of the variance that no part explains: errors of measurement
_PRIOR, _DEVIATION = 3.0, 0.3  # what the standard deviation of logarithms is taken for, and how many measurements that is worth
_TREND = 0.3  # share of the variance by which structures at the end of the static ranking are slower
_MOST = 160  # points that are looked at, since time grows with their cube: the fastest and the latest

_MIXTURES = ((0.6, 0.1, 0.3), (0.35, 0.3, 0.35), (0.2, 0.1, 0.7), (0.6, 0.35, 0.05))
"""Shares of the variance: of structures, of values in all structures, of values together in one."""

_REACHES = (1.5, 4.0)
"""How many doublings of a number lie between times that have little to do with each other."""


@frozen
class _Features:
    """Points as arrays, a row each: the structure; by role, the logarithm of a number, and what was decided, -1 where there is no hole."""

    structures: NDArray[np.int64]
    numbers: Matrix
    decisions: NDArray[np.int64]


@frozen
class _Fit:
    """Times explained by a mixture: the logarithm of its likelihood, the Cholesky factor of the points' covariances over ``scale``, their
    logarithms, less ``middle``, in its terms."""

    likelihood: float
    lower: NDArray[np.floating[Any]]
    white: NDArray[np.floating[Any]]
    scale: float
    middle: float
    weights: tuple[float, ...]
    reach: float


def _mixed(weights: Sequence[float], parts: Sequence[Matrix], swings: Matrix) -> Matrix:
    """Return covariances: the weighted sum of all parts, that of values together times how much they count in both structures."""
    structures, shared, joint, mean, trend = (weight * part for weight, part in zip(weights, parts, strict=True))
    return structures + shared + joint * swings + mean + trend


def _swings(structures: NDArray[np.int64], logs: Vector, count: int) -> Vector:
    """Return how far the times of each structure deviate, over what is usual and at most 1; what few points show counts in part."""
    counts = np.bincount(structures, minlength=count)
    means = np.bincount(structures, logs, count) / np.maximum(counts, 1)
    squares = np.bincount(structures, (logs - means[structures]) ** 2, count)
    freedom = np.maximum(counts - 1, 0)
    usual = (squares.sum() + _PRIOR * _DEVIATION**2) / (freedom.sum() + _PRIOR)
    return np.sqrt(np.minimum(1, (squares / usual + _PRIOR) / (freedom + _PRIOR)))


class Surrogate:
    """What is expected of points, given what others took.

    Args:
        space: of the points.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._alike = similarity([template.text for template in space.templates])
        names = (name for template in space.templates for name in _told_apart(map(role, template.holes)))
        self._roles: Mapping[tuple[str, int], int] = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self._own = {number for (name, _), number in self._roles.items() if name == BUILD}
        self._decisions: dict[tuple[int, int | str], int] = {}
        self._rows: dict[Point, tuple[list[float], list[int]]] = {}

    def expected(self, times: Mapping[Point, float], points: Sequence[Point]) -> Expected:
        """Return what is expected of points.

        Args:
            times: logarithms of times of other points, in the order in which they were told.
            points: of which to tell.
        """
        with one_thread():
            return self._expected(times, points)

    def _expected(self, times: Mapping[Point, float], points: Sequence[Point]) -> Expected:
        told = list(times)
        if len(told) > _MOST:
            fast = set(sorted(told, key=times.__getitem__)[: _MOST // 2])
            told = [point for number, point in enumerate(told) if point in fast or number >= len(told) - _MOST // 2]
        seen, asked = self._features(told), self._features(points)
        logs = np.array([times[point] for point in told])
        swing = _swings(seen.structures, logs, len(self._space.templates))
        fits = (self._fit(seen, logs, swing, reach) for reach in _REACHES)
        best = max((fit for some in fits for fit in some), key=lambda fit: fit.likelihood)
        across = _mixed(best.weights, self._parts(seen, asked, best.reach), np.outer(swing[seen.structures], swing[asked.structures]))
        pulls = solve_triangular(best.lower, across, lower=True, check_finite=False)
        structures, shared, joint, mean, trend = best.weights
        own = structures + shared + joint * swing[asked.structures] ** 2 + mean + trend * self._ranks(asked) ** 2 + _NOISE
        variance = best.scale * np.maximum(own - np.einsum("ij,ij->j", pulls, pulls), _NOISE)
        return Expected(best.middle + np.einsum("ij,i->j", pulls, best.white), np.sqrt(variance), np.full(len(points), len(told) + _PRIOR))

    def _fit(self, seen: _Features, logs: Vector, swing: Vector, reach: float) -> Iterator[_Fit]:
        """Yield how well each mixture explains times."""
        count, middle = len(logs), float(np.median(logs))
        parts, swings = self._parts(seen, seen, reach), np.outer(swing[seen.structures], swing[seen.structures])
        for mixture in _MIXTURES:
            weights = (*mixture, _MEAN, _TREND)
            lower = cholesky(_mixed(weights, parts, swings) + _NOISE * np.eye(count), lower=True, check_finite=False)
            white = solve_triangular(lower, logs - middle, lower=True, check_finite=False)
            scale = (float(white @ white) + _PRIOR * _DEVIATION**2) / (count + _PRIOR)
            likelihood = -(count + _PRIOR) / 2 * math.log(scale) - float(np.log(np.diag(lower)).sum())
            yield _Fit(likelihood, lower, white, scale, middle, weights, reach)

    def chance(self, worked: Collection[Point], failed: Collection[Point], points: Sequence[Point]) -> Vector:
        """Return how likely points are to work: a failure speaks against what is like it in its structure, a point that works for that. It
        says nothing about times, so a structure is not slow because its first point fails."""
        asked = self._features(points)
        good, bad = (self._parts(self._features(list(some)), asked, _REACHES[-1])[2].sum(axis=0) for some in (worked, failed))
        return (1 + good) / (1 + good + bad)

    def _ranks(self, of: _Features) -> Vector:
        return np.log1p(of.structures) / math.log1p(len(self._space.templates))

    def _parts(self, some: _Features, others: _Features, reach: float) -> tuple[Matrix, ...]:
        """Return how alike points are in each part."""
        one = some.structures[:, None] == others.structures[None, :]
        structures = 0.65 * self._alike[np.ix_(some.structures, others.structures)] + 0.35 * one
        shared, joint = np.zeros(one.shape), np.ones(one.shape)
        for place in range(len(self._roles)):
            decisions = some.decisions[:, place, None], others.decisions[None, :, place]
            away = np.abs(some.numbers[:, place, None] - others.numbers[None, :, place]) * math.sqrt(3) / reach
            near = np.where(decisions[0] == decisions[1], 1.0, np.nan_to_num((1 + away) * np.exp(-away), nan=0.0))
            if place not in self._own:
                shared += near
            joint *= np.where(one, 0.1 + 0.9 * near, 0)
        shared /= max(1, len(self._roles) - len(self._own))
        return structures, shared, joint, np.ones(one.shape), np.outer(self._ranks(some), self._ranks(others))

    def _features(self, points: Sequence[Point]) -> _Features:
        rows = [self._row(point) for point in points]
        return _Features(
            np.array([point.template for point in points], dtype=np.int64),
            np.array([row[0] for row in rows]).reshape(len(points), len(self._roles)),
            np.array([row[1] for row in rows], dtype=np.int64).reshape(len(points), len(self._roles)),
        )

    def _row(self, point: Point) -> tuple[list[float], list[int]]:
        found = self._rows.get(point)
        if found is None:
            numbers, decisions = [math.nan] * len(self._roles), [-1] * len(self._roles)
            decided = keys(self._space.templates[point.template].holes, point.values)
            for name, (_, what), value in zip(_told_apart(name for name, _ in decided), decided, point.values, strict=True):
                place = self._roles[name]
                numbers[place] = math.log2(1 + abs(value)) if isinstance(value, int) else math.nan
                decisions[place] = self._decisions.setdefault((place, what), len(self._decisions))
            found = self._rows[point] = numbers, decisions
        return found


def _told_apart(roles: Iterable[str]) -> list[tuple[str, int]]:
    """Return the roles of a structure's holes, numbered where several have the same: two loops may be unrolled."""
    seen = Counter[str]()
    found: list[tuple[str, int]] = []
    for name in roles:
        found.append((name, seen[name]))
        seen[name] += 1
    return found
