"""Hashed workspaces on GPUs: tables of fixed size, since nothing can grow while a kernel runs (csrc/st_cuda_tables.h).

A table has room for the ``need`` of one iteration, the most keys that it can insert. Here that is the whole range; ``passes.needs``
counts the keys of each iteration beforehand. The threads of a block or warp fill a table together, and claim slots atomically.
"""

from __future__ import annotations

from ..frozen import frozen
from ..ir.arithmetic import ZERO, integer
from ..ir.names import Names
from ..ir.nodes import I64, ArrayRef, Call, Declare, Fill, Load, Run, SetVar, Step, Store, Type, Value, Var
from .held import HeldWorkspace
from .levels import Storage, entry_levels, key_levels
from .making import Making

FREE = integer(-1)


@frozen
class TableWorkspace(HeldWorkspace):
    """A table of keys, values at the same slots, and a sorted list of the keys unless entries are only located."""

    kind = "hashed"
    table: str
    keys: str
    key_type: Type
    count: Var
    need: Var
    size: Var

    @property
    def _reference(self) -> ArrayRef:
        return ArrayRef(self.table, self.key_type)

    def prepare(self, needs_zero: bool) -> list[Step]:
        return [
            SetVar(self.size, Call("table_size", (self.need,), I64)),
            Fill(self.table, ZERO, self.size, FREE),
            Fill(self.stored.values, ZERO, self.size, self.zero),
        ]

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        slot = Var(names.local("slot"), I64)
        return [self._inserted(slot, position), Store(self.stored.values, slot, value, op)]

    def mark(self, position: Value, names: Names) -> list[Step]:
        return [self._inserted(Var(names.local("slot"), I64), position)]

    def _inserted(self, slot: Var, key: Value) -> Step:
        return Declare(slot, Call("table_insert", (self._reference, self.size, key), I64))

    def finish(self) -> list[Step]:
        if self.looked_up:
            return []
        keys = ArrayRef(self.keys, self.key_type)
        return [SetVar(self.count, Call("table_keys", (keys, self._reference, self.size), I64)), Run("sort", (keys, self.count))]

    def slot_of_key_at(self, position: Value) -> Value:
        return Call("hash_find", (self._reference, ZERO, self.size, Load(self.keys, position, self.key_type)), I64)


def table_for(making: Making) -> TableWorkspace:
    """Return the workspace with room for the whole range."""
    need, size = making.counter("_need", making.length), making.counter("_size", ZERO)
    room = Call("table_size", (making.length,), I64)
    table, values = making.array("_table", making.key_type, room), making.array("_vals", making.type, room)
    keys, count = making.array("_keys", making.key_type, room), making.counter("_count", ZERO)
    if making.looked_up:
        levels = entry_levels(making.indices, making.extents, table=(ArrayRef(table.array, making.key_type), size.variable))
    else:
        levels = key_levels(making.indices, making.extents, keys.array, making.key_type, count.variable)
    stored = Storage(making.name, levels, values.array, making.type)
    once = (need, size, table, values, keys, count)
    return TableWorkspace(
        stored, making.zero, making.depth, once, table.array, keys.array, making.key_type, count.variable, need.variable, size.variable
    )
