"""Finds races between iterations of parallel loops in the interpreter, which runs without threads.

Two iterations race on an element that both use and one writes, unless both update it atomically.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..numpy_later import np
from .nodes import I64, SHARE_NUMBER, Call, Declare, Step, Store
from .rewrite import mentions, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARE_NUMBER = Call(SHARE_NUMBER, (), I64)
_RUN = 1 << 40  # more than the iterations of any loop that is interpreted


class Turn:
    """The number of the current iteration: it grows over all runs of parallel loops, and is 0 outside of them."""

    def __init__(self) -> None:
        self.number = 0
        self._runs = 0

    def begin(self) -> None:
        """Begin a parallel loop. Arrays that are allocated from now on are private to a thread."""
        self._runs += 1
        self.number = self._runs * _RUN

    def next(self) -> None:
        """Go on to the next iteration of the parallel loop."""
        self.number += 1

    def end(self) -> None:
        """End the parallel loop: what follows belongs to no iteration."""
        self.number = 0

    def others(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the numbers belong to other iterations of the current loop."""
        return (numbers >= self.number - self.number % _RUN) & (numbers != self.number)


class Users:
    """For each element of an array, the iterations that last used it. Iterations of earlier loops do not count."""

    def __init__(self, count: int) -> None:
        self.readers, self.writers = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.atomic = np.zeros(count, bool)

    def read(self, places: Any, turn: Turn) -> bool:
        """Note a read. Return whether another iteration wrote the element."""
        self.readers[places] = np.where(turn.others(self.readers[places]), turn.number - turn.number % _RUN, turn.number)
        return bool(turn.others(self.writers[places]).any())

    def write(self, places: Any, turn: Turn, atomic: bool) -> bool:
        """Note a write. Return whether another iteration used the element, unless both uses are atomic updates."""
        met = turn.others(self.writers[places])
        before = self.writers[places] == turn.number
        harmless = self.atomic[places] & atomic
        self.atomic[places] = atomic & (self.atomic[places] | ~(met | before))
        self.writers[places] = turn.number
        return bool(((met & ~harmless) | turn.others(self.readers[places])).any())


def kept_by_shares(body: Step) -> frozenset[str]:
    """Return the arrays of which every share uses a part of its own: the place of a store depends on the number of the share."""
    nodes = list(walk(body))
    numbers = {node.variable.name for node in nodes if isinstance(node, Declare) and node.value == _SHARE_NUMBER}
    return frozenset(node.array for node in nodes if isinstance(node, Store) and mentions(node.index, numbers))
