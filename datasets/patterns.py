"""Random patterns of any order: where the entries of a synthetic input stand. All are seeded and vectorised."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..compiler.errors import DataError
from ..compiler.native.memory import claim
from ..compiler.storage.kernels import active

Columns = tuple[NDArray[np.int64], ...]
Draw = Callable[[int], Columns]

_ROUNDS = 12


def distinct(draw: Draw, shape: tuple[int, ...], nnz: int, rng: np.random.Generator) -> Columns:
    """Return ``nnz`` distinct coordinate tuples from a distribution, lexicographically sorted where 62 bits hold them.

    Tuples are drawn until there are enough. A very skewed distribution may not give enough distinct ones: after a dozen rounds the rest is
    drawn uniformly.

    Args:
        draw: returns as many tuples as it is told, by mode, with repetitions.
        shape: extents.
        nnz: how many tuples to return.
        rng: generator for the other random choices.

    Raises:
        DataError: the shape has fewer than ``nnz`` coordinates.
        ResourceError: there is no memory for so many.
    """
    size = math.prod(shape)
    if nnz > size:
        raise DataError(f"{nnz} entries do not fit into the shape {'x'.join(map(str, shape))}, which has {size}")
    claim(nnz * 8 * (len(shape) + 2), f"the drawing of {nnz} entries")
    if size >= 2**62:
        return draw(nnz)
    if 2 * nnz > size:
        return _unravel(np.flatnonzero(_chosen(size, nnz, rng)), shape)
    keys, wanted = np.empty(0, np.int64), nnz + nnz // 16 + 16
    for round_ in range(_ROUNDS):
        columns = draw(wanted) if round_ < _ROUNDS - 1 else uniform(shape, rng)(2 * wanted)
        fresh = _fresh(keys, _sorted_unique(_ravel(columns, shape), size))
        keys = fresh if round_ == 0 else np.insert(keys, np.searchsorted(keys, fresh), fresh)
        missing = nnz - len(keys)
        if missing <= 0:
            return _unravel(keys[_chosen(len(keys), nnz, rng)], shape)
        # draw as many more as the share of new tuples in this round suggests
        wanted = min(missing * wanted // max(len(fresh), 1), 4 * missing) + 16
    raise DataError(f"could not draw {nnz} distinct entries; ask for fewer")


def _ravel(columns: Columns, shape: tuple[int, ...]) -> NDArray[np.int64]:
    keys = np.zeros(len(columns[0]), np.int64)
    for column, extent in zip(columns, shape, strict=True):
        keys *= extent
        keys += column
    return keys


def _unravel(keys: NDArray[np.int64], shape: tuple[int, ...]) -> Columns:
    columns: list[NDArray[np.int64]] = []
    for extent in reversed(shape[1:]):
        keys, column = np.divmod(keys, extent)
        columns.append(column)
    return (keys, *reversed(columns))


def _sorted_unique(keys: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    (unique,), _ = active().sort((keys,), (size,), np.zeros(len(keys), np.bool_), 1, False)
    return unique.astype(np.int64, copy=False)


def _fresh(known: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys that are not among the known ones; both are sorted."""
    if not len(known):
        return keys
    return keys[known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] != keys]


def _chosen(size: int, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a mask of ``size`` with ``count`` true places."""
    few = min(count, size - count)
    mask = np.zeros(size, np.bool_)
    mask[rng.choice(size, few, replace=False, shuffle=False)] = True
    return mask if few == count else ~mask


def uniform(shape: tuple[int, ...], rng: np.random.Generator) -> Draw:
    """Return a distribution in which every coordinate is equally likely."""
    return lambda count: tuple(rng.integers(0, extent, count) for extent in shape)


def zipf(shape: tuple[int, ...], exponent: float, rng: np.random.Generator) -> Draw:
    """Return a distribution in which the k-th most frequent coordinate of a mode has a frequency like k**-exponent, in random order.

    Drawn as the whole part of a bounded Pareto variable, by inversion.
    """
    claim(16 * sum(shape), f"the frequencies of coordinates in the shape {'x'.join(map(str, shape))}")
    places = [rng.permutation(extent) for extent in shape]
    return lambda count: tuple(place[_pareto(len(place), exponent, rng.random(count))] for place in places)


def _pareto(extent: int, exponent: float, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    if abs(exponent - 1) < 1e-9:
        drawn = np.exp(uniforms * math.log(extent + 1))
    else:
        tail = 1 - exponent
        drawn = (1 + uniforms * ((extent + 1) ** tail - 1)) ** (1 / tail)
    return np.minimum(drawn.astype(np.int64), extent) - 1


def rmat(scale: int, probabilities: tuple[float, float, float], rng: np.random.Generator) -> Draw:
    """Return the distribution of a recursive matrix (R-MAT) of 2**scale rows: each bit of the coordinates picks a quadrant (Chakrabarti,
    Zhan, Faloutsos 2004)."""
    a, b, c = probabilities

    def draw(count: int) -> Columns:
        rows, columns = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for _ in range(scale):
            quadrant = rng.random(count, np.float32)
            below = quadrant >= a + b
            right = (quadrant >= a) & ~below | (quadrant >= a + b + c)
            for coordinate, bit in ((rows, below), (columns, right)):
                coordinate <<= 1
                coordinate |= bit
        return rows, columns

    return draw


def skewed(shape: tuple[int, ...], skew: float, rng: np.random.Generator) -> Draw:
    """Return a distribution whose frequencies in the first mode fall exponentially, by exp(-skew) from first to last; other modes are
    uniform."""
    rows = shape[0]

    def draw(count: int) -> Columns:
        uniforms = rng.random(count)
        placed = -np.log1p(uniforms * math.expm1(-skew)) / skew if skew else uniforms
        first = np.minimum((placed * rows).astype(np.int64), rows - 1)
        return (first, *(rng.integers(0, extent, count) for extent in shape[1:]))

    return draw
