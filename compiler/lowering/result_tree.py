"""The coordinate tree of an assembled result: which of its levels are appended to, and where their positions are."""

from __future__ import annotations

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, multiply
from ..ir.nodes import Value
from .assembled_levels import AssembledLevel, cursor


@frozen
class ResultTree:
    """The levels of an assembled result. Those that are inserted into are above those that are appended to, or are dense levels below them.

    Attributes:
        name: the name of the result.
        levels: the levels in the order in which the result is written.
    """

    name: str
    levels: tuple[AssembledLevel, ...]

    @property
    def last(self) -> int:
        """The last level to which entries are appended; -1 if all levels are inserted into."""
        return max((level for level, entry in enumerate(self.levels) if entry.cursor is not None), default=-1)

    def level_of(self, index: str) -> int:
        """Return the number of the level that stores an index, counted from 0; there must be one."""
        return next(level for level, entry in enumerate(self.levels) if entry.index == index)

    def stores(self, index: str) -> bool:
        """Return whether one of the levels stores an index."""
        return any(entry.index == index for entry in self.levels)

    def child(self, level: int) -> int | None:
        """Return the next level below to which entries are appended."""
        return next((below for below in range(level + 1, self.last + 1) if self.levels[below].cursor is not None), None)

    def stored_above(self, level: int) -> int | None:
        """Return the next level above to which entries are appended."""
        return next((above for above in range(level - 1, -1, -1) if self.levels[above].cursor is not None), None)

    def position(self, level: int, coordinates: dict[str, Value]) -> Value:
        """Return the position of a level at the current coordinates: the cursor, or for levels that are inserted into arithmetic."""
        above = self.stored_above(level + 1)
        start = 0 if above is None else above + 1
        position: Value = ZERO if above is None else cursor(self.levels[above])
        for entry in self.levels[start : level + 1]:
            position = add(multiply(position, entry.extent), coordinates[entry.index])
        return position

    def block(self, level: int) -> Value:
        """Return how many positions of the levels below that are inserted into belong to one position of a level."""
        size: Value = ONE
        for entry in self.levels[level + 1 :]:
            if not entry.kind.inserts:
                break
            size = multiply(size, entry.extent)
        return size

    @property
    def stored(self) -> list[AssembledLevel]:
        """The levels to which entries are appended."""
        return [entry for entry in self.levels if entry.cursor is not None]
