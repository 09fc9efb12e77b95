"""How many entries and fibres each rank has of a random tensor that is too large to be stored.

Cells are stored independently of one another, each with the same probability. So the number of a fibre's children that have entries is
binomial, and for a fibre that has entries it is binomial given that it is not 0. Numbers of fibres are drawn level by level, from the root
on, with the same distribution as if the tensor were drawn cell by cell. The only approximation is that each grid draws a new pattern.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ...compiler.format import parse_format
from ..distributed.pattern import Pattern, index_sizes, local_shapes

_DEVIATIONS = 12  # standard deviations beyond which a binomial number lies in less than one of 10^30 draws


class DrawnPattern(Pattern):
    """The pattern of a tensor in CSF whose cells are stored with a probability; it replaces the tensor where only sizes are needed.

    Args:
        shape: extents by mode.
        density: the probability of a cell.
        seed: of the draws.
    """

    density: float
    seed: int
    is_sparse = True
    dtype = np.dtype(np.float64)

    def __init__(self, shape: tuple[int, ...], density: float, seed: int = 0) -> None:
        super().__init__(shape, (), parse_format("csf", len(shape)), self.dtype.itemsize)
        object.__setattr__(self, "density", density)
        object.__setattr__(self, "seed", seed)

    @property
    def order(self) -> int:
        return len(self.shape)

    @property
    def pattern(self) -> Pattern:
        """The pattern itself, as tensors have it."""
        return self

    @property
    def nnz(self) -> int:
        """How many entries are expected, rounded."""
        return round(self.density * math.prod(self.shape))

    def counts(self, grid: Sequence[int]) -> NDArray[np.int64]:
        return self.stored(tuple(grid))[-1]

    def bytes(self, grid: Sequence[int]) -> NDArray[np.int64]:
        parents, total = np.ones(math.prod(grid), np.int64), np.zeros(math.prod(grid), np.int64)
        extents = local_shapes(self.shape, grid)
        for mode, stored in enumerate(self.stored(tuple(grid))):
            total += (parents + 1) * index_sizes(stored) + stored * index_sizes(extents[:, mode])
            parents = stored
        return total + parents * self.itemsize

    @lru_cache(8)  # noqa: B019  patterns live as long as a page is made
    def stored(self, grid: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
        """Return how many fibres with entries each rank has, level by level; those of the last level are its entries."""
        rng = np.random.default_rng([self.seed, *self.shape, *grid])
        ranks = [drawn_levels(tuple(map(int, shape)), self.density, rng) for shape in local_shapes(self.shape, grid)]
        return tuple(np.array(level, np.int64) for level in zip(*ranks, strict=True))


def drawn_levels(shape: Sequence[int], density: float, rng: np.random.Generator) -> list[int]:
    """Return the numbers of fibres with entries, level by level, of a tensor whose cells are stored with a probability."""
    found: list[int] = []
    for mode, extent in enumerate(shape):
        likely = -math.expm1(math.prod(shape[mode + 1 :]) * math.log1p(-density)) if density < 1 else 1.0
        found.append(_children(found[-1], extent, likely, rng) if found else int(rng.binomial(extent, likely)))
    return found


def _children(parents: int, extent: int, likely: float, rng: np.random.Generator) -> int:
    """Return the sum of ``parents`` binomial numbers, each drawn until it is not 0."""
    if parents == 0 or extent == 0:
        return 0
    values, chances = _chances(extent, likely)
    return int(rng.multinomial(parents, chances) @ values)


@lru_cache(4096)
def _chances(extent: int, likely: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the values that a binomial number other than 0 takes, and their probabilities."""
    mean, spread = extent * likely, _DEVIATIONS * math.sqrt(extent * likely * (1 - likely)) + 3 * _DEVIATIONS
    values = np.arange(max(1, math.floor(mean - spread)), min(extent, math.ceil(mean + spread)) + 1)
    chances = stats.binom.pmf(values, extent, likely)
    return values, chances / chances.sum()
