"""Where packing and unpacking stand between two levels of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, FormatError
from ..frozen import frozen
from ..storage.entries import SortedEntries
from ..storage.sealed import sealed


@frozen
class Frontier:
    """Where the entries stand after some levels have been packed.

    Args:
        count: number of positions of the last packed level.
        position: the position of each entry; None where that is 0 for all, or the entry's own number (``identity``).
        identity: whether each entry has its own position, in order.
        ordered: whether positions do not decrease from entry to entry (not so below hashed levels).
    """

    count: int
    position: NDArray[Any] | None = None
    identity: bool = False
    ordered: bool = True

    def positions(self, entries: int) -> NDArray[np.int64]:
        """Return the position of each entry as an array."""
        if self.position is not None:
            return self.position.astype(np.int64, copy=False)
        return np.arange(entries) if self.identity else np.zeros(entries, np.int64)


@frozen
class Column:
    """What one level has to store of the entries.

    Args:
        found: the entries, sorted by levels.
        level: which level, from 0.
        last: the last of the levels that share its positions: itself, or the last of the singletons directly below.
        extent: of its mode.
        shared: for levels that have one coordinate per parent, whether they share the positions of a level of entries above.
        format: the whole format, for messages.
    """

    found: SortedEntries
    level: int
    last: int
    extent: int
    shared: bool
    format: str

    @property
    def coordinates(self) -> NDArray[Any]:
        """The coordinate of every entry."""
        return self.found.columns[self.level]

    @property
    def children(self) -> int:
        """How many different coordinates there are, below all parents together."""
        return self.found.heads(self.last)

    @property
    def first(self) -> NDArray[np.int8]:
        """The first level at which each entry differs from the one before."""
        return self.found.differences[0]

    @property
    def refusal(self) -> str:
        """How the message begins where the level cannot hold the entries."""
        return f"format '{self.format}' cannot hold these entries: level {self.level + 1}"

    def refuse(self, why: str) -> NoReturn:
        """Say that the level cannot hold the entries.

        Raises:
            FormatError: always.
        """
        raise FormatError(f"{self.refusal} is {why}")


@frozen
class Walk:
    """Where a walk down the levels of a stored tensor stands.

    Args:
        columns: the coordinates, by level, of the positions that were reached.
        positions: the positions reached; None while they are all positions of the level, in order.
        count: how many were reached.
    """

    columns: tuple[NDArray[Any], ...] = ()
    positions: NDArray[np.int64] | None = None
    count: int = 1

    def down(self, repeated: Callable[[NDArray[Any]], NDArray[Any]], column: NDArray[Any], positions: NDArray[np.int64] | None) -> Walk:
        """Return the walk one level further, the columns so far repeated for the children."""
        return Walk((*(sealed(repeated(above)) for above in self.columns), column), positions, len(column))

    def alongside(self, column: NDArray[Any]) -> Walk:
        """Return the walk one level further, where each position has one child, which has its number."""
        return Walk((*self.columns, column), self.positions, self.count)


@frozen
class Claimed:
    """One level of arrays that somebody claims to be a tensor's.

    Args:
        kind: the name of the level's kind.
        level: which level, from 0.
        extent: of its mode.
        parents: how many positions the level above has.
        repeats: whether coordinates may stand several times below a parent.
        parts: the arrays.
    """

    kind: str
    level: int
    extent: int
    parents: int
    repeats: bool
    parts: dict[str, NDArray[Any]]

    def require(self, condition: bool, rule: str) -> None:
        """See that a rule of the level holds.

        Raises:
            DataError: naming the level and the rule.
        """
        if not condition:
            raise DataError(f"level {self.level + 1} is broken: a level that is {self.kind} {rule}")
