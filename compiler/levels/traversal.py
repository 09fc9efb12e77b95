"""The state of packing between two levels of a tensor, and of checking one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import DataError, FormatError
from ..frozen import frozen
from ..numpy_later import np
from ..storage.entries import SortedEntries

if TYPE_CHECKING:
    from numpy.typing import NDArray


@frozen
class Frontier:
    """The positions of the entries after some levels have been packed.

    Args:
        count: number of positions in the last packed level.
        position: the position of each entry; None if it is 0 for all, or the entry's own number (``identity``).
        identity: whether each entry has its own position, in order.
        ordered: whether positions do not decrease from entry to entry, which fails below hashed levels.
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
    """The coordinates of the entries that one level has to store.

    Args:
        found: the entries, sorted by levels.
        level: which level, from 0.
        last: the last of the levels that share its positions: itself, or the last of the singletons directly below.
        extent: the extent of its mode.
        shared: for levels with one coordinate per parent, whether they share the positions of a level of entries above.
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
        """How many different coordinates there are, added up over all parents."""
        return self.found.heads(self.last)

    @property
    def first(self) -> NDArray[np.int8]:
        """The first level at which each entry differs from the one before."""
        return self.found.differences[0]

    @property
    def refusal(self) -> str:
        """The start of the message for a level that cannot hold the entries."""
        return f"format '{self.format}' cannot hold these entries: level {self.level + 1}"

    def refuse(self, why: str) -> NoReturn:
        """Raise the error of a level that cannot hold the entries.

        Raises:
            FormatError: always.
        """
        raise FormatError(f"{self.refusal} is {why}")


@frozen
class Claimed:
    """Foreign arrays that are said to be one level of a tensor.

    Args:
        kind: the name of the level's kind.
        level: which level, from 0.
        extent: the extent of its mode.
        parents: how many positions the level above has.
        repeats: whether a parent may have the same coordinate several times.
        parts: the arrays.
    """

    kind: str
    level: int
    extent: int
    parents: int
    repeats: bool
    parts: dict[str, NDArray[Any]]

    def require(self, condition: bool, rule: str) -> None:
        """Check a rule of the level.

        Raises:
            DataError: the rule is broken; the message names the level and the rule.
        """
        if not condition:
            raise DataError(f"level {self.level + 1} is broken: a level that is {self.kind} {rule}")
