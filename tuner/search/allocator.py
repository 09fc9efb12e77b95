"""Which structure to try next: the one whose next point is expected to improve most upon the best so far.

The logarithms of times are modelled as a Gaussian process over structures. Structures that share directives have similar times, those
further down the static ranking tend to be slower, each has a part of its own, and its points scatter around that, depending on what is in
its holes. So times of some structures say something about those that were not tried yet. How far the points of a structure scatter is
known only from these points, so the next one has Student's distribution. The longer a structure has not improved, the less it is expected
to: the chance that the last of n draws is the best of them is one in n. So a structure that began badly gets another chance later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...compiler.frozen import frozen

_SHARED, _OWN = 0.6, 0.3
"""Shares of the variance of structures' times: explained by directives in common, and a structure's own."""

_SPREAD, _SCATTER = 0.4, 0.25
"""Standard deviations of logarithms before anything is known: between structures, and between the points of one."""

_MEAN = 9.0  # prior variance of the mean of all structures, over the variance between them
_PRIOR = 3  # how many measurements the standard deviations above are worth
_PATIENCE = 4.0  # points without progress after which a structure has half of its chances left
_ELSEWHERE = 3  # every third point is of a structure that does not lead, in case the leader is a dead end
_BETTER = 0.99  # a point of at most this many times a structure's best so far is progress
_FAILED = math.log(2)  # a failure counts as slower than the slowest by this much, as a logarithm
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


class Allocator:
    """Told what points of structures took, names the structure to try next.

    Args:
        structures: their texts, the most promising first.
    """

    def __init__(self, structures: Sequence[str]) -> None:
        self._texts = structures
        self._told: list[tuple[int, float | None]] = []
        self._best = np.full(len(structures), np.inf)
        self._stale = np.zeros(len(structures))  # points of each structure since it has become better

    def tell(self, structure: int, seconds: float | None) -> None:
        """Report a point of a structure by its number; None: it failed."""
        self._told.append((structure, None if seconds is None else math.log(seconds)))
        better = seconds is not None and seconds < _BETTER * self._best[structure]
        self._stale[structure] = 0 if better else self._stale[structure] + 1
        self._best[structure] = min(self._best[structure], math.inf if seconds is None else seconds)

    def choose(self, live: Collection[int], asked: Sequence[int] = ()) -> int:
        """Return the number of the structure to try next.

        Args:
            live: the structures that have points left.
            asked: structures of points that are being measured.
        """
        found = [(structure, time) for structure, time in self._told if time is not None]
        if not found:
            return next((structure for structure in sorted(live) if structure not in asked), min(live))
        slowest = max(time for _, time in found)
        data = [(structure, slowest + _FAILED if time is None else time) for structure, time in self._told]
        numbers = np.array(sorted(live))
        leader = int(np.argmin(self._best))
        if len(numbers) > 1 and len(self._told) % _ELSEWHERE == 0:
            numbers = numbers[numbers != leader]
        expected = self._expected(data, numbers)
        if asked:  # they count as if they took what is expected, so that another process tries something else
            believed = self._expected(data, np.array(asked)).mean
            expected = self._expected([*data, *zip(asked, believed.tolist(), strict=True)], numbers)
        left = _PATIENCE / (_PATIENCE + self._stale[numbers])
        return int(numbers[np.argmax(left * expected.improvement(min(time for _, time in found)))])

    def _expected(self, data: Sequence[tuple[int, float]], numbers: NDArray[np.int64]) -> Expected:
        """Return what is expected of the next point of each structure."""
        tried = np.array([structure for structure, _ in data])
        times = np.array([time for _, time in data])
        between, within, counts = _variances(tried, times, len(self._texts))
        slope = math.sqrt(between) / math.log1p(len(self._texts))
        ranks = np.log1p(np.arange(len(self._texts)))

        def covariance(some: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
            alike = _SHARED * self._similarity[np.ix_(some, others)] + _OWN * (some[:, None] == others[None, :])
            return between * (_MEAN + alike) + slope**2 * np.outer(ranks[some], ranks[others])

        trend = np.median(times - slope * ranks[tried])
        across = covariance(tried, numbers)
        weights = np.linalg.solve(covariance(tried, tried) + np.diag(within[tried]), across)
        mean = trend + slope * ranks[numbers] + weights.T @ (times - trend - slope * ranks[tried])
        own = between * (_MEAN + _SHARED + _OWN) + slope**2 * ranks[numbers] ** 2
        variance = np.maximum(own - np.einsum("ij,ij->j", weights, across), 0) + within[numbers]
        return Expected(mean, np.sqrt(variance), _PRIOR - 1 + counts[numbers])

    @cached_property
    def _similarity(self) -> NDArray[np.float64]:
        """The share of directives that two structures have in common (Jaccard's index), for all pairs."""
        return similarity(self._texts)


def similarity(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the share of directives that two structures have in common (Jaccard's index), for all pairs."""
    words = [frozenset(_NUMBER.sub("#", text).split("; ")) for text in texts]
    return np.array([[len(a & b) / max(1, len(a | b)) for b in words] for a in words])


@frozen
class Expected:
    """Student's distributions of logarithms of times: mean, scale, and degrees of freedom (more than one)."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    freedom: NDArray[np.float64]

    def improvement(self, best: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much each is expected to fall below ``best``, or its own of these, counting 0 where it does not."""
        from scipy.special import betaln, stdtr

        margin, freedom = (best - self.mean) / self.scale, self.freedom
        density = np.exp(-betaln(0.5, freedom / 2) - (freedom + 1) / 2 * np.log1p(margin**2 / freedom)) / np.sqrt(freedom)
        return self.scale * (margin * stdtr(freedom, margin) + (freedom + margin**2) / (freedom - 1) * density)


def _variances(
    structures: NDArray[np.int64], times: NDArray[np.float64], count: int
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the variance between structures, that between the points of each, and how many points each has.

    Each variance is drawn towards what is usual: that of a structure towards that of all, that of all towards a constant.
    """
    counts = np.bincount(structures, minlength=count)
    tried = np.flatnonzero(counts)
    means = np.bincount(structures, times, count) / np.maximum(counts, 1)
    squares = np.bincount(structures, (times - means[structures]) ** 2, count)
    between = (float(np.sum((means[tried] - means[tried].mean()) ** 2)) + _PRIOR * _SPREAD**2) / (len(tried) + _PRIOR)
    usual = (squares.sum() + _PRIOR * _SCATTER**2) / (len(times) - len(tried) + _PRIOR)
    return between, (squares + _PRIOR * max(usual, _SCATTER**2)) / (np.maximum(counts - 1, 0) + _PRIOR), counts.astype(np.float64)
