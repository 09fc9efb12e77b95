"""Workspaces with an array over the whole range, and a bit for each key that says whether it was written (csrc/st_bits.h)."""

from __future__ import annotations

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, integer, quotient
from ..ir.names import Names
from ..ir.nodes import (
    BOOL,
    I32,
    I64,
    ArrayRef,
    Call,
    Declare,
    If,
    Load,
    Node,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
)
from ..ir.rewrite import mentions, nodes_of, own_declarations, transform, walk
from .held import HeldWorkspace
from .listed import keyed
from .making import Making

U64 = Type("u64")
FEW_KEYS = 64
"""The most keys of a row that are sorted by comparing each with all others: ST_FEW of csrc/st_few.h."""


@frozen
class BitmapWorkspace(HeldWorkspace):
    """Values over the whole range, and the set of keys as bits in several levels, which gives the keys sorted (csrc/st_bits.h)."""

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
        """Return the further steps for a new key."""
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
    """A bitmap that every row fills anew. As long as rows have few keys, the keys are listed and sorted by comparing each with all others
    (csrc/st_few.h), and the upper levels of the set are not used. The number of keys of one row decides the form for the next row."""

    def _first(self, key: Value) -> list[Step]:
        return [Store(self.keys, self.count, key), SetVar(self.count, ONE, "+")]

    def produced(self, steps: list[Step]) -> list[Step]:
        """Return the producer in two forms, after the steps that come before its first use of this workspace.

        A producer that already contains two forms of another workspace gets only the listing form, which is right for any number of keys:
        otherwise the code would double with every workspace inside another.
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
        """Split steps before the first that uses this workspace. They are not split if later steps need earlier declarations."""
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
    """Return how many words the bits of a set of keys below ``length`` take."""
    words = integer(6)
    for words_of in (2**6, 2**12, 2**18):
        words = add(words, quotient(length, integer(words_of)))
    return words


def make_bitmap(making: Making) -> BitmapWorkspace:
    """Return a bitmap; one that is filled in every iteration gets the two forms of ``FewKeysWorkspace``."""
    stored, (values, keys, count) = keyed(making)
    bits = making.array("_bits", U64, bit_words(making.length), zero=True)
    form = FewKeysWorkspace if making.again and making.key_type == I32 else BitmapWorkspace
    once = (values, keys, count, bits)
    return form(
        stored, making.zero, making.depth, once, bits.array, keys.array, making.key_type, count.variable, making.length
    )
