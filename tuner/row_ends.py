"""The time of sums of short rows, one by one and in batches: most of it are branches at the ends of rows that a processor mispredicts.

A processor learns the lengths of rows from those that surprise it. If a call has no more *surprises* than its tables hold, it foresees
all of them in the next call, however random they are, and sums one by one are faster. The more there are beyond that, the more are
forgotten before the next call, and it loses time with each of these. Batches (``passes.batches``) do without these branches, but need steps
for each block of rows, and more for each row the longer the longest one of its block is. A block has rows of one parent alone, as the
fibres of a slice, unless code has one loop over those of all.

Times are cycles a row. They were fitted to sums of rows of equal, random and real lengths, one after another and a few in each slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.frozen import frozen
from ..compiler.ir.limits import AVERAGE_STEADY, BESIDE, FEWEST, ROWS, SHORT, STEADY, STEADY_SHORT
from ..compiler.storage.positions import stored_prefixes
from .remembered import remembered
from .steps import asks
from .surprises import surprising_share

if TYPE_CHECKING:
    from ..compiler.storage.tensor import Tensor

UNROLLED = 2
"""How many entries of a row are summed without a branch, one by one."""

_STRETCHES, _LENGTH = 8, 64 * ROWS  # of the rows that are looked at: so many that what follows long histories is seen a few times
USUAL = 6
"""Entries of the rows whose ends machines are asked about: so many of these ends as the constant ``surprises`` says are remembered."""

_PLACES = 1 / 12  # of a row's end, for each of its entries over those of the end alone, in what a processor remembers
_FORGOTTEN = 4.0  # the share of surprises that is still remembered falls with this power of their number
_SURPRISE = 26.0  # cycles that a mispredicted end of a row costs
_ROW, _ENTRY = 1.9, 1.3  # cycles of a row and of each entry, one by one
_OVERLAPPING, _WAITING = 64, 1.2  # entries of a row that are added beside those of others; more cycles of each further one
_PARENT = 4.0  # cycles to begin the rows of one parent
_FEW = 2.9, 20.0  # more cycles of a row and of a block where a block has few rows, whose sums are made for long ones
_LEFT_ALONE = 1.45, 1.55, 22.0  # cycles of a row, of an entry and of a block, where batches leave rows to sums one by one
_UNEVEN = 2.0  # more cycles of such a row where not all are alike, which is found out by comparing each with the one before
_LONG = 9.5, 1.1  # cycles of a row and of an entry where batches leave rows to vectors
_BATCHED = 2.3, 0.9, 83.0  # cycles of a row, of an entry and of a block in a batch; branches of a block depend on how many rows it has
_LONGER = np.array([0.0, 3.0, 5.5, 9.0])  # more cycles of a row where the longest of its block has up to 4, 8, 16 or more entries


@frozen
class RowEnds:
    """How the rows of a level end.

    Attributes:
        surprises: how many ends, of rows and of the rows of their parents, are not foreseen in a first call. Branches over the entries
            of a row are remembered with its end, so that an end of a long row counts for more than one of a row of ``USUAL`` entries.
        alone: cycles of a row summed one by one.
        batched: the same in batches.
        lost_alone, lost_batched: more cycles of these if no surprise is foreseen in later calls either.
    """

    surprises: float
    alone: float
    batched: float
    lost_alone: float
    lost_batched: float

    def alone_over_batched(self, remembered: float) -> float:
        """Return the time of sums one by one over that of batches, if the ends of so many rows are remembered from call to call."""
        forgotten = 1.0 - min(1.0, remembered / max(1.0, self.surprises)) ** _FORGOTTEN
        return (self.alone + forgotten * self.lost_alone) / (self.batched + forgotten * self.lost_batched)


@asks
def alone_over_batched(tensor: Tensor, level: int, joined: bool, known: float) -> float:
    """Return the time of sums of a level's rows one by one over that of batches, if ``known`` ends are remembered from call to call."""
    return row_ends(tensor, level, joined).alone_over_batched(known)


def row_ends(tensor: Tensor, level: int, joined: bool = False) -> RowEnds:
    """Return how the rows end that a level with positions ``pos`` stores, at least one, from an even sample of stretches of rows.

    Args:
        tensor: has the level.
        level: its number.
        joined: whether one loop goes through the rows of all parents (``passes.consecutive``).
    """
    return remembered(tensor, ("row ends", level, joined), lambda: _row_ends(tensor, level, joined))


def _row_ends(tensor: Tensor, level: int, joined: bool) -> RowEnds:
    pos, above = tensor.levels[level].pos, None if joined or level == 0 else tensor.levels[level - 1].pos
    assert pos is not None
    rows, parents = len(pos) - 1, 1.0 if joined else (1.0, 1.0, *stored_prefixes(tensor))[level]
    lengths = _sampled(pos)
    families = np.array([round(rows / max(1.0, parents))]) if above is None else _sampled(above)
    surprising, further = surprising_share(lengths), surprising_share(families)
    alone, batched, left = _of_blocks(lengths)
    alone += _PARENT * parents / rows
    few, blocks = _in_families(families)
    among_few = few * (alone + _FEW[0]) + blocks[0] * _FEW[1]
    among_many = (1.0 - few) * batched + blocks[1] * (left * _LEFT_ALONE[2] + (1.0 - left) * _BATCHED[2])
    lost = _SURPRISE * surprising * (few + (1.0 - few) * left) + further * blocks[1] * (1.0 - left) * _BATCHED[2]
    places = (1 + _PLACES * float(lengths.mean())) / (1 + _PLACES * USUAL)
    return RowEnds(surprising * rows * places + further * parents, alone, among_few + among_many, _SURPRISE * surprising, lost)


def _sampled(pos: NDArray[Any]) -> NDArray[Any]:
    """Return the lengths of sampled rows, of all where there are few: rows in two stretches would be foreseen the second time."""
    if len(pos) <= _STRETCHES * _LENGTH:
        return np.diff(pos)
    begins = np.linspace(0, len(pos) - 1 - _LENGTH, _STRETCHES).astype(np.int64)
    return np.concatenate([np.diff(pos[begin : begin + _LENGTH + 1]) for begin in begins])


def _in_families(families: NDArray[Any]) -> tuple[float, tuple[float, float]]:
    """Return the share of rows among too few of one parent for a batch, and how many blocks these and the other rows have, over all rows.

    Args:
        families: how many rows have one parent.
    """
    several, rows = families[families >= FEWEST], max(1.0, float(families.sum()))
    return 1.0 - float(several.sum()) / rows, ((len(families) - len(several)) / rows, float(np.ceil(several / ROWS).sum()) / rows)


def _of_blocks(lengths: NDArray[Any]) -> tuple[float, float, float]:
    """Return the cycles of a row summed one by one, of one in a block of many, and the share of blocks whose rows are not batched: they
    are long, or most are as long as the row before."""
    blocks = lengths[: len(lengths) // ROWS * ROWS].reshape(-1, ROWS) if len(lengths) >= ROWS else lengths.reshape(1, -1)
    entries, longest = blocks.mean(axis=1), blocks.max(axis=1)
    changes = np.count_nonzero(np.diff(blocks, axis=1), axis=1)
    most = ROWS * np.where(entries > AVERAGE_STEADY, STEADY, STEADY_SHORT)
    long, steady = entries > SHORT, (changes == 0) | ((longest > BESIDE[0]) & (changes <= most))
    alone = _ROW + _ENTRY * entries + _WAITING * np.maximum(blocks - _OVERLAPPING, 0).mean(axis=1)
    left = np.where(long, _LONG[0] + _LONG[1] * entries, _LEFT_ALONE[0] + _LEFT_ALONE[1] * entries + _UNEVEN * (changes > 0))
    batched = _BATCHED[0] + _BATCHED[1] * entries + _LONGER[np.searchsorted(BESIDE, longest)]
    return float(alone.mean()), float(np.where(long | steady, left, batched).mean()), float((long | steady).mean())
