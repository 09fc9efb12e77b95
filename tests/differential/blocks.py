"""What cases of many rows draw: runs of rows without entries, with few, as many each, many, and all, or none but for one full row.

Compilers and libraries take rows in blocks, and treat blocks apart that are empty, or whose rows are long, short or alike
(``compiler/passes/batches.py``). Matrices of a few rows show nothing of it.
"""

from __future__ import annotations

import math
from random import Random

from sparsetune.compiler.format import Format

from .expressions import ROW
from .formats import COMPRESSED, DENSE, Coordinates

SHARE = 0.1
"""Of all cases, those that have many rows."""

FEWEST, MOST = 130, 600
"""Rows of such cases: more than two blocks of 64."""

RUNS = ("empty", "empty", "empty", "few", "few", "alike", "uneven", "long", "full", "lone")


def row_extent(rng: Random, index: str) -> int:
    """Return how far an index goes: that of the rows far, others past a vector or two now and then."""
    if index == ROW:
        return rng.randint(FEWEST, MOST)
    return rng.randint(17, 64) if rng.random() < 0.5 else rng.randint(1, 5)


def row_format(order: int) -> Format:
    """Return the usual format: dense vectors, compressed rows."""
    return Format((DENSE,) * order if order < 2 else (DENSE, *(COMPRESSED,) * (order - 1)))


def row_coordinates(rng: Random, shape: tuple[int, ...]) -> list[Coordinates]:
    """Return distinct coordinates in random order, with runs of rows along the longest mode."""
    mode = shape.index(max(shape))
    others = (*shape[:mode], *shape[mode + 1 :])
    width = math.prod(others)
    found = [
        _placed(row, mode, place, others)
        for row, length in enumerate(row_lengths(rng, shape[mode], width))
        for place in rng.sample(range(width), length)
    ]
    rng.shuffle(found)
    return found


def row_lengths(rng: Random, rows: int, width: int) -> list[int]:
    """Return how many entries each row has, at most ``width``: drawn alike for a run of rows; some runs are longer than two blocks."""
    found: list[int] = []
    while len(found) < rows:
        kind, same = rng.choice(RUNS), rng.randint(0, width)
        run = rng.choice((1, rng.randint(2, 40), rng.randint(64, 128), rng.randint(129, 250)))
        lone = rng.randrange(run)
        for row in range(run):
            match kind:
                case "empty":
                    found.append(0)
                case "few":
                    found.append(rng.randint(0, min(4, width)))
                case "alike":
                    found.append(same)
                case "long":
                    found.append(rng.randint(width // 2, width))
                case "full":
                    found.append(width)
                case "lone":
                    found.append(width if row == lone else 0)
                case _:
                    found.append(rng.choice((0, min(1, width), same, width)) if rng.random() < 0.5 else rng.randint(0, width))
    return found[:rows]


def _placed(row: int, mode: int, place: int, others: tuple[int, ...]) -> Coordinates:
    """Return the coordinates of a place within a row."""
    found: list[int] = []
    for extent in reversed(others):
        place, coordinate = divmod(place, extent)
        found.append(coordinate)
    found.reverse()
    return (*found[:mode], row, *found[mode:])
