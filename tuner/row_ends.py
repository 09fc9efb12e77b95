"""Whether a processor predicts the branches at the ends of rows, from the lengths of successive rows."""

from __future__ import annotations

import numpy as np

from ..compiler.storage.tensor import Tensor
from .features import remembered

REMEMBERED = 2**13
"""Most rows whose lengths a processor's branch prediction remembers from call to call."""

FEW = 2**9
"""Most rows with which a call takes no longer than looking for a better schedule; their ends are not looked at."""

SEVERAL = 3.0
"""Average entries of rows up to which batches sum several rows at once (``passes.row_sums``), faster than rows that end as foreseen."""

STEADY = ((0.1, 12.0), (0.5, 8.0))
"""Where the ends of many rows are foreseen: (share, most): at most this share of the rows differs in length from the row before, and a row
has up to ``most`` entries on average. In longer rows ends cost less."""

_STRETCHES, _LENGTH = 8, 2**12


def ends_are_foreseen(tensor: Tensor, level: int, cache_bytes: float) -> bool:
    """Return whether branch prediction foresees where the rows of a level end, so that summing short rows one by one is faster than in
    batches (``passes.batches``): rows have more than a few entries, and are few enough, or most are as long as the row before and
    all lie in a cache."""
    pos = tensor.levels[level].pos
    if pos is None or len(pos) <= FEW:
        return False
    rows = len(pos) - 1
    average = (int(pos[-1]) - int(pos[0])) / rows
    if average <= SEVERAL:
        return False
    if rows <= REMEMBERED:
        return True
    allowed = max((share for share, most in STEADY if average <= most), default=0.0)
    return allowed > 0 and tensor.nbytes <= cache_bytes and changes(tensor, level) <= allowed


def changes(tensor: Tensor, level: int) -> float:
    """Return the share of the rows of a level that differ in length from the row before, from an even sample of stretches of rows."""
    pos = tensor.levels[level].pos
    assert pos is not None

    def found() -> float:
        last = max(0, len(pos) - 1 - _LENGTH)
        begins = np.unique(np.linspace(0, last, _STRETCHES).astype(np.int64))
        lengths = [np.diff(pos[begin : begin + _LENGTH + 1]) for begin in begins]
        compared = [one[1:] != one[:-1] for one in lengths]
        return float(np.concatenate(compared).mean()) if len(pos) > 2 else 0.0

    return remembered(tensor, ("changes", level), found)
