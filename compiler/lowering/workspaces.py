"""Workspaces: how each kind is made, written, read in order, and cleaned.

scalar: a local variable, with a flag where a sparse result asks whether anything was added. registers, dense: an array over the
whole range of its indices. list: a dense array, marks, and the list of the keys that were written, sorted before it is read
(Kjolstad et al., "Tensor algebra compilation with workspaces", section 6; Gustavson). bitmap: a dense array and bits of the
keys. hashed: a map from keys to slots, where a dense array would be too large. A key is the row-major number of a component.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ..concrete.workspace_kinds import keeps_entries
from ..frozen import frozen
from ..ir.arithmetic import FALSE, ONE, TRUE, ZERO, add, compare, integer, multiply, quotient
from ..ir.nodes import (
    BOOL,
    I64,
    MAP,
    Allocate,
    ArrayRef,
    Call,
    Const,
    Declare,
    Fill,
    For,
    Grow,
    If,
    Load,
    Node,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Unary,
    Value,
    Var,
)  # fmt: skip
from ..ir.rewrite import mentions, nodes_of, own_declarations, transform, walk
from ..levels import COMPRESSED, DENSE, SINGLETON
from ..levels.level import Level, index_array
from .levels import EntryLevel, KeyLevel, Storage
from .names import Names

U64 = Type("u64")
FEW_KEYS = 64
"""Keys of a row that are put in order by comparing them all: ST_FEW of csrc/st_few.h."""


@frozen
class HeldWorkspace:
    """A workspace in scope: what its writes and reads become.

    Attributes:
        stored: its levels and values as reads see them.
        zero: the identity of the semiring's add.
        depth: how many guards stood around the ``where`` that owns it.
    """

    kind: ClassVar[str]
    stored: Storage
    zero: Const
    depth: int

    @property
    def keeps_entries(self) -> bool:
        """Whether it knows which components were written."""
        return keeps_entries(self.kind)

    @property
    def looked_up(self) -> bool:
        """Whether its entries are only looked up, so that nobody asks for them in order."""
        return bool(self.stored.levels) and isinstance(self.stored.levels[-1], EntryLevel)

    def prepare(self, needs_zero: bool) -> list[Step]:
        """Return what happens before the producer."""
        return []

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        """Return the steps that store (op "") or accumulate a value at a row-major position."""
        return [Store(self.stored.values, position, value, op)]

    def mark(self, position: Value, names: Names) -> list[Step]:
        """Return the steps that note an entry without its value, for the counting pass of an insertion."""
        return []

    def finish(self) -> list[Step]:
        """Return what happens between producer and consumer."""
        return []

    def produced(self, steps: list[Step]) -> list[Step]:
        """Return a producer that is through with the workspace, and what happens between it and the consumer."""
        return [*steps, *self.finish()]

    def clean(self, names: Names) -> list[Step]:
        """Return what happens after the consumer."""
        return []

    def slot_of_key_at(self, position: Value) -> Value:
        """Return where the value of the entry at a position of the sorted list stands."""
        return position


@frozen
class ScalarWorkspace(HeldWorkspace):
    kind = "scalar"
    value: Var
    flag: Var | None = None

    @property
    def keeps_entries(self) -> bool:
        return self.flag is not None

    def prepare(self, needs_zero: bool) -> list[Step]:
        steps: list[Step] = [Declare(self.value, self.zero)]
        return steps if self.flag is None else [*steps, Declare(self.flag, FALSE)]

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        return [SetVar(self.value, value, op), *self.mark(position, names)]

    def mark(self, position: Value, names: Names) -> list[Step]:
        return [] if self.flag is None else [SetVar(self.flag, TRUE)]


@frozen
class DenseWorkspace(HeldWorkspace):
    """``length`` values over the whole range; registers are made anew in every iteration around, memory only once."""

    kind = "dense"
    length: Value
    registers: bool

    def prepare(self, needs_zero: bool) -> list[Step]:
        if self.registers:
            plain = self.zero.value == 0
            made = Allocate(self.stored.values, self.stored.type, self.length, "registers", needs_zero and plain)
            return [made, Fill(self.stored.values, ZERO, self.length, self.zero)] if needs_zero and not plain else [made]
        return [Fill(self.stored.values, ZERO, self.length, self.zero)] if needs_zero else []


@frozen
class ListWorkspace(HeldWorkspace):
    """An array, marks and a list of keys, which is sorted unless entries are only looked up."""

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


@frozen
class BitmapWorkspace(HeldWorkspace):
    """Values over the whole range, and the set of keys as bits in levels, which come out sorted (csrc/st_bits.h)."""

    kind = "bitmap"
    bits: str
    keys: str
    key_type: Type
    count: Var
    length: Value

    def _insert(self, key: Value, names: Names) -> tuple[Var, Step]:
        new = Var(names.local("new"), BOOL)
        return new, Declare(new, Call("bits_insert", (ArrayRef(self.bits, U64), self.length, key), BOOL))

    def _first(self, key: Value) -> list[Step]:
        """Return what happens besides where a key is new."""
        return []

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        key = Var(names.local("key"), I64)
        new, insert = self._insert(key, names)
        first = Steps((*self._first(key), Store(self.stored.values, key, value)))
        return [Declare(key, position), insert, If(new, first, Steps((Store(self.stored.values, key, value, op),)))]

    def mark(self, position: Value, names: Names) -> list[Step]:
        key = Var(names.local("key"), I64)
        new, insert = self._insert(key, names)
        first = self._first(key)
        return [Declare(key, position), insert, *([If(new, Steps(tuple(first)))] if first else [])]

    def finish(self) -> list[Step]:
        drained = Call("bits_drain", (ArrayRef(self.keys, self.key_type), ArrayRef(self.bits, U64), self.length), I64)
        return [SetVar(self.count, drained)]

    def slot_of_key_at(self, position: Value) -> Value:
        return Load(self.keys, position, self.key_type)


@frozen
class FewKeysWorkspace(BitmapWorkspace):
    """A bitmap that every row fills anew. As long as rows have few keys, those are listed and put in order by comparing them all
    (csrc/st_few.h), without the upper levels of the set; the row before says what to expect of the next one."""

    def _first(self, key: Value) -> list[Step]:
        return [Store(self.keys, self.count, key), SetVar(self.count, ONE, "+")]

    def produced(self, steps: list[Step]) -> list[Step]:
        """Return the producer in two forms, behind what it does before it comes to this workspace, such as to fill another one.

        A producer that has two forms of another one inside has the listing form alone, which is right for any number of keys: code would
        double with every workspace that stands in another.
        """
        before, own = self._beginning(steps)
        listing = transform(Steps(tuple(own)), self._listing)
        arguments = (ArrayRef(self.keys, self.key_type), ArrayRef(self.bits, U64), self.length, self.count)
        few = Steps((SetVar(self.count, ZERO), listing, SetVar(self.count, Call("few_drain", arguments, I64))))
        if any(node.function == "few_insert" for step in own for node in nodes_of(step, Call)):
            return [*before, few]
        many = Steps((transform(Steps(tuple(own)), self._unlisted), *self.finish()))
        return [*before, If(compare("<=", self.count, integer(FEW_KEYS)), few, many)]

    def _beginning(self, steps: list[Step]) -> tuple[list[Step], list[Step]]:
        """Cut steps where the first uses this workspace; not at all where the others need what is declared before."""
        before, rest = list[Step](), list(steps)
        while rest and not self._is_used(rest[0]):
            before.append(rest.pop(0))
        if rest and isinstance(rest[0], Steps):
            first, others = self._beginning(list(rest[0].statements))
            if first:
                before.append(Steps(tuple(first)))
                rest[0] = Steps(tuple(others))
        return ([], steps) if own_declarations(Steps(tuple(before))) else (before, rest)

    def _is_used(self, step: Step) -> bool:
        own = {self.bits, self.keys, self.stored.values}
        return mentions(step, {self.count.name}) or any(getattr(node, "array", None) in own for node in walk(step))

    def _listing(self, node: Node) -> Node:
        match node:
            case Call("bits_insert", (ArrayRef(bits), *_) as arguments, kind) if bits == self.bits:
                return Call("few_insert", tuple(arguments), kind)
        return node

    def _unlisted(self, node: Node) -> Node:
        match node:
            case Store(array) if array == self.keys:
                return Steps(())
            case SetVar(variable) if variable == self.count:
                return Steps(())
        return node


def bit_words(length: Value) -> Value:
    """Return how many words of bits a set of keys below ``length`` takes."""
    words = integer(6)
    for words_of in (2**6, 2**12, 2**18):
        words = add(words, quotient(length, integer(words_of)))
    return words


@frozen
class HashedWorkspace(HeldWorkspace):
    """A map from keys to slots, and a sorted list of the keys unless entries are only looked up."""

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


def dense_levels(indices: tuple[str, ...], extents: tuple[Value, ...]) -> tuple[Level, ...]:
    return tuple(Level(DENSE, index, extent) for index, extent in zip(indices, extents, strict=True))


def key_levels(indices: tuple[str, ...], extents: tuple[Value, ...], keys: str, key_type: Type, count: Value) -> tuple[Level, ...]:
    """Return the modes of a sorted list of keys as levels that are stepped through."""
    levels = []
    for mode, (index, extent) in enumerate(zip(indices, extents, strict=True)):
        stride: Value = ONE
        for inner in extents[mode + 1 :]:
            stride = multiply(stride, inner)
        last = mode == len(indices) - 1
        kind = COMPRESSED if mode == 0 else SINGLETON
        levels.append(
            KeyLevel(
                kind, index, extent, last, index_array("crd", keys, key_type), count, stride=stride, first=mode == 0, leading=mode == 0
            )
        )
    return tuple(levels)


def entry_levels(indices: tuple[str, ...], extents: tuple[Value, ...], marks: str = "", keys: str = "") -> tuple[Level, ...]:
    """Return the modes of a workspace whose entries are only looked up: in an array of ``marks``, or in a map of ``keys``."""
    modes = enumerate(zip(indices, extents, strict=True), 1)
    return tuple(
        EntryLevel(COMPRESSED, index, extent, last=mode == len(indices), marks=marks, map=keys) for mode, (index, extent) in modes
    )


def row_major(levels: tuple[Level, ...], coordinate: Callable[[str], Value]) -> Value:
    """Return the key of a component; ``coordinate`` gives the values of indices."""
    key: Value = ZERO
    for level in levels:
        key = add(multiply(key, level.extent), coordinate(level.index))
    return key
