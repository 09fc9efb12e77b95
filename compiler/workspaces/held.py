"""A workspace in scope: the code of its writes, and the code before its producer, between producer and consumer, and after the consumer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ..frozen import frozen
from ..ir.arithmetic import ZERO, add, multiply
from ..ir.names import Names
from ..ir.nodes import Allocate, Const, Declare, Step, Store, Value
from ..levels.level import Level
from .kind import workspace_kind
from .levels import EntryLevel, Storage


@frozen
class HeldWorkspace:
    """A workspace in scope; each kind has a subclass in its own file.

    Attributes:
        stored: its levels and values, for reads.
        zero: the identity of the semiring's add.
        depth: how many guards are around the ``where`` to which it belongs.
        once: the steps that make its arrays and variables, at the start of the kernel or of a thread.
    """

    kind: ClassVar[str]
    stored: Storage
    zero: Const
    depth: int
    once: tuple[Allocate | Declare, ...]

    @property
    def keeps_entries(self) -> bool:
        """Whether it knows which components were written."""
        return workspace_kind(self.kind).keeps_entries

    @property
    def looked_up(self) -> bool:
        """Whether its entries are only located, and never read in order."""
        return bool(self.stored.levels) and isinstance(self.stored.levels[-1], EntryLevel)

    def prepare(self, needs_zero: bool) -> list[Step]:
        """Return the steps before the producer."""
        return []

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        """Return the steps that store (op "") or accumulate a value at a row-major position."""
        return [Store(self.stored.values, position, value, op)]

    def mark(self, position: Value, names: Names) -> list[Step]:
        """Return the steps that note an entry without its value, for the counting pass of an insertion."""
        return []

    def finish(self) -> list[Step]:
        """Return the steps between producer and consumer."""
        return []

    def produced(self, steps: list[Step]) -> list[Step]:
        """Return the complete producer, given its steps, and the steps between it and the consumer."""
        return [*steps, *self.finish()]

    def clean(self, names: Names) -> list[Step]:
        """Return the steps after the consumer."""
        return []

    def slot_of_key_at(self, position: Value) -> Value:
        """Return the position of the value of an entry, given the entry's position in the sorted list."""
        return position


def row_major(levels: tuple[Level, ...], coordinate: Callable[[str], Value]) -> Value:
    """Return the key of a component; ``coordinate`` gives the values of indices."""
    key: Value = ZERO
    for level in levels:
        key = add(multiply(key, level.extent), coordinate(level.index))
    return key
