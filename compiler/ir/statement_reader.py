"""Reads the statements of one line of a program's text: those that contain no other statements."""

from __future__ import annotations

from .nodes import (
    PARTS,
    Allocate,
    ArrayRef,
    Barrier,
    Carry,
    Declare,
    Fill,
    Free,
    Grow,
    Leave,
    Prefetch,
    Publish,
    Run,
    SetVar,
    Step,
    Store,
    Take,
    Value,
    Var,
)
from .tag_reader import TagReader

STORAGE = ("heap", "registers", "block", "warp")


class StatementReader(TagReader):
    """Reads what a line says if no block follows it."""

    def _simple(self) -> Step:
        if self._take("free"):
            return Free(self._name())
        if self._take("grow"):
            return self._grow()
        if self._take("prefetch"):
            array, index = self._name(), self._bracketed()
            count = 1
            if self._take("and"):
                count += self._number()
                self._expect("more")
            cache = 1
            if self._take("into"):
                self._expect("cache")
                cache = self._number()
            return Prefetch(array, index, count, cache)
        if self._take("publish"):
            return self._publish()
        if self._take("leave"):
            array = self._name()
            self._expect("at")
            return Leave(array, *self._place())
        if self._take("take"):
            array = self._name()
            self._expect(":")
            kind = self.arrays[array] = self._type()
            self._expect("from")
            return Take(array, kind, *self._place())
        if self._take("barrier"):
            self._expect("of")
            return Barrier(self._next()[1])  # type: ignore[arg-type]  # the verifier knows the units
        atomic, streams = self._take("atomic"), self._take("stream")
        carry = self._carry() if atomic and self._take("(") else None
        name = self._name()
        if self._sees("("):
            return Run(name, self._arguments())
        if self._take("["):
            return self._element(name, atomic, streams, carry)
        if self._take(":"):
            kind = self._type()
            self._expect("=")
            value = self._value()
            self.scalars[name] = kind
            return Declare(Var(name, kind), value)
        op = self._operator()
        if op == "" and any(map(self._sees, STORAGE)):
            return self._allocate(name)
        return SetVar(self._variable(name), self._value(), op)

    def _carry(self) -> Carry:
        slot = self._value()
        self._expect(",")
        width = self._value()
        self._expect(")")
        return Carry(slot, width)

    def _element(self, array: str, atomic: bool, streams: bool, carry: Carry | None) -> Step:
        index = self._value()
        if self._take(".."):
            high = self._value()
            self._expect("]")
            self._expect("=")
            return Fill(array, index, high, self._value())
        self._expect("]")
        op = self._operator()
        return Store(array, index, self._value(), op, atomic, streams, carry)

    def _grow(self) -> Grow:
        array = self._name()
        self._expect("(")
        capacity = self._variable(self._name())
        self._expect(")")
        self._expect("to")
        return Grow(array, self._array(array), capacity, self._value())

    def _place(self) -> tuple[ArrayRef, Value]:
        """Read a place of parts."""
        return ArrayRef(self._name(), PARTS), self._bracketed()

    def _publish(self) -> Publish:
        array = self._name()
        self._expect("[")
        self._number()
        self._expect("..")
        length = self._value()
        self._expect("]")
        self._expect("as")
        return Publish(self._name(), array, length)

    def _allocate(self, array: str) -> Allocate:
        storage = self._next()[1]
        kind = self._type()
        length = self._bracketed()
        self.arrays[array] = kind
        zero = self._take("of")
        if zero:
            self._expect("zeros")
        return Allocate(array, kind, length, storage, zero)  # type: ignore[arg-type]  # one of STORAGE

    def _operator(self) -> str:
        """Read ``=`` or an update, ``+=``, ``min=``."""
        op = "" if self._sees("=") else self._next()[1]
        self._expect("=")
        return op
