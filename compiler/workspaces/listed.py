"""Workspaces with an array over the whole range, marks, and the list of the keys that were written, sorted before it is read (Kjolstad et
al., "Tensor algebra compilation with workspaces", section 6; Gustavson)."""

from __future__ import annotations

from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import FALSE, ONE, TRUE, ZERO
from ..ir.names import Names
from ..ir.nodes import BOOL, I64, Allocate, ArrayRef, Declare, For, If, Load, Run, SetVar, Step, Steps, Store, Type, Unary, Value, Var
from .held import HeldWorkspace
from .levels import Storage, entry_levels, key_levels
from .making import Making


@frozen
class ListWorkspace(HeldWorkspace):
    """An array, marks and a list of keys, which is sorted unless entries are only located."""

    kind = "list"
    marks: str
    keys: str
    key_type: Type
    count: Var

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        key = Var(names.local("key"), I64)
        first = Steps((
            Store(self.marks, key, TRUE),
            Store(self.keys, self.count, key),
            SetVar(self.count, ONE, "+"),
            Store(self.stored.values, key, value),
        ))  # fmt: skip
        again = Steps((Store(self.stored.values, key, value, op),))
        return [Declare(key, position), If(Load(self.marks, key, BOOL), again, first)]

    def mark(self, position: Value, names: Names) -> list[Step]:
        key = Var(names.local("key"), I64)
        first = Steps((Store(self.marks, key, TRUE), Store(self.keys, self.count, key), SetVar(self.count, ONE, "+")))
        return [Declare(key, position), If(Unary("not", Load(self.marks, key, BOOL), BOOL), first)]

    def finish(self) -> list[Step]:
        return [] if self.looked_up else [Run("sort", (ArrayRef(self.keys, self.key_type), self.count))]

    def clean(self, names: Names) -> list[Step]:
        place = Var(names.local("n"), I64)
        unmark = Store(self.marks, Load(self.keys, place, self.key_type), FALSE)
        return [For(place, ZERO, self.count, Steps((unmark,))), SetVar(self.count, ZERO)]

    def slot_of_key_at(self, position: Value) -> Value:
        return Load(self.keys, position, self.key_type)


def make_list(making: Making) -> ListWorkspace:
    """Return an array over the whole range, marks, and a list of the keys that were written."""
    stored, (values, keys, count) = keyed(making)
    marks = making.array("_set", BOOL, making.length, zero=True)
    if making.looked_up:
        stored = replace(stored, levels=entry_levels(making.indices, making.extents, marks=marks.array))
    once = (values, keys, count, marks)
    return ListWorkspace(stored, making.zero, making.depth, once, marks.array, keys.array, making.key_type, count.variable)


def keyed(making: Making) -> tuple[Storage, tuple[Allocate, Allocate, Declare]]:
    """Return values over the whole range with the sorted keys, and what makes the values, the keys, and the variable of their number."""
    values, keys = making.array("_vals", making.type, making.length), making.array("_list", making.key_type, making.length)
    count = making.counter("_count", ZERO)
    levels = key_levels(making.indices, making.extents, keys.array, making.key_type, count.variable)
    return Storage(making.name, levels, values.array, making.type), (values, keys, count)
