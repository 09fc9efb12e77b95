"""Workspaces with a map from keys to slots, for ranges too large for a dense array (csrc/st_map.h); on a GPU a table (``table``)."""

from __future__ import annotations

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, compare, integer
from ..ir.names import Names
from ..ir.nodes import I64, MAP, ArrayRef, Call, Declare, For, Grow, If, Load, Run, SetVar, Step, Steps, Store, Value, Var
from .held import HeldWorkspace
from .levels import Storage, entry_levels, key_levels
from .making import Making
from .table import TableWorkspace, table_for

START = integer(64)  # slots at first


@frozen
class HashedWorkspace(HeldWorkspace):
    """A map from keys to slots, and a sorted list of the keys unless entries are only located."""

    kind = "hashed"
    map: str
    keys: str
    count: Var
    capacity: Var
    keys_capacity: Var

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        slot = Var(names.local("slot"), I64)
        new = Steps((
            SetVar(self.count, ONE, "+"),
            Grow(self.stored.values, self.stored.type, self.capacity, self.count),
            Store(self.stored.values, slot, value),
        ))  # fmt: skip
        again = Steps((Store(self.stored.values, slot, value, op),))
        insert = Call("map_insert", (ArrayRef(self.map, MAP), position), I64)
        return [Declare(slot, insert), If(compare("==", slot, self.count), new, again)]

    def mark(self, position: Value, names: Names) -> list[Step]:
        slot = Var(names.local("slot"), I64)
        insert = Call("map_insert", (ArrayRef(self.map, MAP), position), I64)
        return [Declare(slot, insert), If(compare("==", slot, self.count), Steps((SetVar(self.count, ONE, "+"),)))]

    def finish(self) -> list[Step]:
        if self.looked_up:
            return []
        place = Var("n", I64)
        copy = Store(self.keys, place, Call("map_key", (ArrayRef(self.map, MAP), place), I64))
        return [
            Grow(self.keys, I64, self.keys_capacity, self.count),
            For(place, ZERO, self.count, Steps((copy,))),
            Run("sort", (ArrayRef(self.keys, I64), self.count)),
        ]

    def clean(self, names: Names) -> list[Step]:
        return [Run("map_clear", (ArrayRef(self.map, MAP),)), SetVar(self.count, ZERO)]

    def slot_of_key_at(self, position: Value) -> Value:
        return Call("map_find", (ArrayRef(self.map, MAP), Load(self.keys, position, I64)), I64)


def make_map(making: Making) -> HashedWorkspace | TableWorkspace:
    """Return a map from keys to slots; on a GPU a table."""
    if making.on_gpu:
        return table_for(making)
    count = making.counter("_count", ZERO)
    capacity, keys_capacity = making.counter("_capacity", START), making.counter("_keys_capacity", START)
    table = making.array("_map", MAP, START)
    values, keys = making.array("_vals", making.type, START), making.array("_keys", I64, START)
    if making.looked_up:
        levels = entry_levels(making.indices, making.extents, keys=table.array)
    else:
        levels = key_levels(making.indices, making.extents, keys.array, I64, count.variable)
    stored = Storage(making.name, levels, values.array, making.type)
    once = (count, capacity, keys_capacity, table, values, keys)
    return HashedWorkspace(
        stored, making.zero, making.depth, once, table.array, keys.array, count.variable, capacity.variable, keys_capacity.variable
    )
