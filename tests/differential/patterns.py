"""Patterns and values of random tensors: empty, full, empty and full rows, one entry; explicit zeros and cancellation."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from typing import Any

import numpy as np

from .formats import Coordinates

MANY = 2500
"""Above so many coordinates a tensor stores a scattered few of them."""

PATTERNS = ("scattered", "scattered", "scattered", "dense", "empty", "full", "rows", "one", "diagonal")


def random_extent(rng: Random, indices: int, *, large: bool = False) -> int:
    """Return an extent: 0 and 1 now and then, small enough that all coordinates of all indices can be visited.

    Large ones, for one or two indices, make assembled arrays grow.
    """
    if large:
        return rng.randint(1000, 3000) if indices == 1 else rng.randint(40, 70)
    most = {1: 12, 2: 9, 3: 7, 4: 5, 5: 4}.get(indices, 3)
    return rng.choices((0, 1, rng.randint(2, most)), (2, 9, 89))[0]


def random_coordinates(rng: Random, shape: tuple[int, ...]) -> list[Coordinates]:
    """Return distinct coordinates of some pattern, in random order."""
    size = math.prod(shape)
    if size > MANY:
        return [tuple(map(int, np.unravel_index(place, shape))) for place in rng.sample(range(size), rng.randint(0, MANY))]
    everything = list(product(*(range(extent) for extent in shape)))
    rng.shuffle(everything)
    match rng.choice(PATTERNS):
        case "scattered":
            share = rng.choice((0.05, 0.15, 0.3))
            return [place for place in everything if rng.random() < share]
        case "dense":
            return [place for place in everything if rng.random() < 0.7]
        case "empty":
            return []
        case "rows":
            mode = rng.randrange(len(shape)) if shape else 0
            full = {coordinate for coordinate in range(shape[mode] if shape else 0) if rng.random() < 0.35}
            return [place for place in everything if not place or place[mode] in full]
        case "one":
            return everything[:1]
        case "diagonal":
            return [place for place in everything if len(set(place)) <= 1]
        case _:
            return everything


def random_values(
    rng: Random, count: int, dtype: np.dtype[Any], *, positive: bool = False, exact: bool = False, special: bool = False
) -> np.ndarray[Any, Any]:
    """Return stored values: small numbers that cancel often, some of them explicit zeros.

    Args:
        rng: where they are drawn from.
        count: how many.
        dtype: of the values.
        positive: draw no zeros and no negative numbers.
        exact: draw whole numbers only, so that no product or sum is rounded.
        special: put NaN, infinities and negative zeros among them.
    """
    if dtype.kind == "b":
        return np.array([positive or rng.random() < 0.85 for _ in range(count)], dtype)
    small = (1, 1, -1, 2, -2, 3) if dtype.kind != "u" else (1, 1, 2, 3, 5, 7)
    whole = exact or dtype.kind != "f" or rng.random() < 0.7
    draw = [rng.choice(small) if whole else rng.gauss(0, 1) for _ in range(count)]
    if positive:
        return np.array([abs(value) + 0.5 if dtype.kind == "f" else abs(value) for value in draw], dtype)
    if special and dtype.kind == "f":
        draw = [rng.choice((np.nan, np.inf, -np.inf, -0.0)) if rng.random() < 0.15 else value for value in draw]
    return np.array([0 if rng.random() < 0.1 else value for value in draw], dtype)
