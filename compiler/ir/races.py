"""Races between iterations of parallel loops, found by the interpreter whatever the threads would do.

Two iterations race on an element that both use and one writes, unless both update it atomically.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .nodes import I64, SHARE_NUMBER, Call, Declare, Step, Store
from .rewrite import mentions, walk

_SHARE_NUMBER = Call(SHARE_NUMBER, (), I64)
_RUN = 1 << 40  # more than the iterations of any loop that is interpreted


class Turn:
    """Whose turn it is: a number for every iteration of every run of a parallel loop, growing; 0 outside of all."""

    def __init__(self) -> None:
        self.number = 0
        self._runs = 0

    def begin(self) -> None:
        """A parallel loop begins; what is allocated from now on is private to a thread."""
        self._runs += 1
        self.number = self._runs * _RUN

    def next(self) -> None:
        self.number += 1

    def end(self) -> None:
        self.number = 0

    def others(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which numbers are those of other iterations of the loop that runs."""
        return (numbers >= self.number - self.number % _RUN) & (numbers != self.number)


class Users:
    """Which iterations of a parallel loop used each element of an array last; those of earlier runs do not count."""

    def __init__(self, count: int) -> None:
        self.readers, self.writers = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.atomic = np.zeros(count, bool)

    def read(self, places: Any, turn: Turn) -> bool:
        """Note a read. Returns whether another iteration wrote the element."""
        self.readers[places] = np.where(turn.others(self.readers[places]), turn.number - turn.number % _RUN, turn.number)
        return bool(turn.others(self.writers[places]).any())

    def write(self, places: Any, turn: Turn, atomic: bool) -> bool:
        """Note a write. Returns whether another iteration used the element, other than by an atomic update like this one."""
        met = turn.others(self.writers[places])
        before = self.writers[places] == turn.number
        harmless = self.atomic[places] & atomic
        self.atomic[places] = atomic & (self.atomic[places] | ~(met | before))
        self.writers[places] = turn.number
        return bool(((met & ~harmless) | turn.others(self.readers[places])).any())


def kept_by_shares(body: Step) -> frozenset[str]:
    """Return the arrays of which every share uses a part of its own: what is stored depends on the number of the share."""
    nodes = list(walk(body))
    numbers = {node.variable.name for node in nodes if isinstance(node, Declare) and node.value == _SHARE_NUMBER}
    return frozenset(node.array for node in nodes if isinstance(node, Store) and mentions(node.index, numbers))
