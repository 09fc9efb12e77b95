"""Which stored coordinates choose rows of dense operands, and how often such a row is in no cache, estimated from a sample of the pattern.

A chosen row of a dense operand is still in the cache if it is among the last distinct rows that fill it. Stretches of coordinates are
looked at in halves. A row that the second half chooses is a miss if neither half chose it before, but for its first line if the row before
it was chosen: hardware fetches the next line ahead. A row is thus remembered for one and a half halves on average, so a half is sized such
that as many coordinates choose as many distinct rows as the cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.native.machine import this_machine
from ..compiler.notation.nodes import Access, accesses
from ..compiler.storage.tensor import Tensor, level_extent
from .features import remembered
from .prefetches import LINE
from .problem import Problem

_STRETCHES = 16  # between fewer there may be the few long rows of a matrix, which choose what no other row does
_MOST = 2**17  # most coordinates that are looked at, in all halves together
_HALF = 2 / 3  # a half in parts of what the cache holds
_TRIES, _ENOUGH = 4, 1.15  # tries to find a half of the right size, and how far off it may be
_USUAL_BYTES = {1: 2**15, 2: 2**20}  # bytes of the first and second level of cache where the system does not tell
_AFAR = 0.25  # share of misses from which on a loop waits for what it gathers, and not for what it reads in order


def scattered_share(tensor: Tensor, level: int, rows: float, lines: float = 1.0) -> float:
    """Return the share of the lines of rows chosen by a level's coordinates that are neither of one of the last rows nor next to one.

    Args:
        tensor: stores the coordinates.
        level: which stores them.
        rows: how many rows the cache holds.
        lines: how many lines of the cache a row takes; fewer than one count as one.
    """
    kind, parts = tensor.format.levels[level], tensor.levels[level]
    coordinates, extent = parts.crd, level_extent(tensor, level)
    if kind.full or coordinates is None or rows >= min(extent, len(coordinates)):
        return 0.0
    line = 1.0 / max(1.0, lines)
    return remembered(tensor, ("scattered", level, round(rows), line), lambda: _scattered(coordinates, extent, rows, line))


def _scattered(coordinates: NDArray[Any], extent: int, rows: float, line: float) -> float:
    """Return the share of lines that are missed; ``line``: one line as a part of a row."""
    count, half = len(coordinates), _half(coordinates, extent, rows)
    if half == 0:
        return 0.0
    missed, stretches = 0.0, min(_STRETCHES, max(1, _MOST // half))
    places = (np.arange(stretches) + 0.5) / stretches
    begins = np.unique((places * (count - 2 * half)).astype(np.int64))
    for begin in begins:
        first, second = coordinates[begin : begin + half], coordinates[begin + half : begin + 2 * half]
        known, asked = np.zeros(extent + 1, dtype=bool), np.zeros(extent + 1, dtype=bool)  # place 0 is before the first coordinate
        known[first + 1] = asked[second + 1] = True
        new = np.flatnonzero(asked & ~known)
        missed += len(new) - line * np.count_nonzero(known[new - 1] | asked[new - 1])
    return float(missed / (len(begins) * half))


def _half(coordinates: NDArray[Any], extent: int, rows: float) -> int:
    """Return how many coordinates a half needs, so that one and a half times as many choose as many distinct rows as the cache holds:
    the more, the more often rows are chosen again. Counted in the middle of the level."""
    count, half = len(coordinates), max(int(_HALF * rows), 64)
    for _ in range(_TRIES):
        half = min(half, _MOST, count // 2)
        length = min(int(half / _HALF), count)
        begin = (count - length) // 2
        chosen = np.zeros(extent, dtype=bool)
        chosen[coordinates[begin : begin + length]] = True
        most = rows / max(1, np.count_nonzero(chosen))
        if most <= _ENOUGH:
            break
        half = int(min(most, 2.0) * half)
    return min(half, _MOST, count // 2)


def begun_by(problem: Problem, originals: tuple[str, ...]) -> Iterator[tuple[Access, Tensor]]:
    """Yield the stored operands whose first level one of some indices goes through."""
    for access, tensor in stored_reads(problem):
        if access.subscripts[tensor.format.order[0]].index in originals:
            yield access, tensor


def chosen_by(problem: Problem, originals: tuple[str, ...]) -> Iterator[tuple[str, Tensor, int]]:
    """Yield the indices, operands and levels that store coordinates of some indices."""
    for access, tensor in stored_reads(problem):
        for level, mode in enumerate(tensor.format.order):
            index = access.subscripts[mode].index
            if index in originals and not tensor.format.levels[level].full:
                yield index, tensor, level


def stored_reads(problem: Problem) -> Iterator[tuple[Access, Tensor]]:
    """Yield the accesses of operands that store coordinates, where subscripts are plain."""
    if problem.is_compound:
        return
    for access in accesses(problem.assignment.value):
        tensor = problem.operand(access.tensor)
        if tensor is not None and not tensor.format.is_dense and access.is_plain:
            yield access, tensor


def is_summed(problem: Problem, name: str, originals: tuple[str, ...]) -> bool:
    """Return whether the rows of an operand that some indices choose are summed up: the result has none of the rows' own indices."""
    read = [access for access in accesses(problem.assignment.value) if access.tensor == name]
    along = {index for access in read for index in access.indices}.difference(originals)
    return bool(along) and along.isdisjoint(problem.assignment.target.indices)


def gathers_from_afar(problem: Problem, originals: tuple[str, ...]) -> bool:
    """Return whether much of what stored coordinates of some indices gather from a dense operand is not in the second-level cache."""
    named = ((name, problem.operand(name)) for name in problem.formats)
    dense = [(name, operand) for name, operand in named if operand is not None and operand.format.is_dense]
    near = level_bytes(2)
    return any(
        missed_share(problem, operand, name, near, *where) > _AFAR for name, operand in dense for where in chosen_by(problem, originals)
    )


def missed_share(problem: Problem, operand: Tensor, name: str, cache: int, index: str, tensor: Tensor, level: int) -> float:
    """Return the share of the rows of a dense operand, chosen by an index, that come from outside a cache of so many bytes. The entries
    that choose them pass through the cache as well. The second level of cache and those beyond fetch all of the next row ahead where rows
    follow one another, the first one the next line alone."""
    if not any(index in access.indices for access in accesses(problem.assignment.value) if access.tensor == name):
        return 0.0
    row, entry = operand.nbytes / max(1, problem.extents[index]), tensor.nbytes / max(1, len(tensor.values))
    lines = row / LINE if cache <= level_bytes(1) else 1.0
    return scattered_share(tensor, level, cache / max(row + entry, 1.0), lines)


def level_bytes(level: int) -> int:
    """Return the bytes of the first or second level of cache."""
    return next((cache.bytes for cache in this_machine().caches if cache.level == level), _USUAL_BYTES[level])
