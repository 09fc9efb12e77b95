"""Reads values from the text of the loop IR. An operator has the type of its operands, a name the type of its declaration."""

from __future__ import annotations

import re

from .intrinsics import type_of_call
from .nodes import BOOL, F64, I64, ArrayRef, Binary, Call, Cast, Combine, Const, Load, Select, Type, Unary, Value, Var
from .printer import PRECEDENCE
from .tokens import TYPE, TokenReader, UnreadableProgram, bare


class ValueReader(TokenReader):
    """Reads values; ``arrays`` and ``scalars`` have the types of the names met so far."""

    def __init__(self, arrays: dict[str, Type], scalars: dict[str, Type]) -> None:
        super().__init__()
        self.arrays, self.scalars = arrays, scalars

    def _value(self, above: int = 0) -> Value:
        left = self._operand()
        while self.tokens and self.tokens[-1][0] != "infinite" and PRECEDENCE.get(self.tokens[-1][1], -1) > above:
            op = self._next()[1]
            right = self._value(PRECEDENCE[op])
            left = Binary(op, left, right, _combined(op, left.type, right.type))
        return left

    def _combined(self) -> Combine:
        self._expect("(")
        op = self._next()[1]
        self._expect(",")
        unit = self._next()[1]
        self._expect("of")
        within = self._next()[1]
        self._expect(",")
        value = self._value()
        self._expect(")")
        return Combine(op, value, unit, within, value.type)  # type: ignore[arg-type]  # the verifier knows the units

    def _operand(self) -> Value:
        if self._take("combine"):
            return self._combined()
        kind, text = self._next()
        if kind == "number":
            return _constant(text)
        if kind == "infinite":
            return Const(float(text.removesuffix("f32")), Type("f32") if text.endswith("f32") else F64)
        if kind == "type":
            self._expect("(")
            inner = self._value()
            self._expect(")")
            return Cast(inner, Type(text))
        match text:
            case "True" | "False":
                return Const(text == "True", BOOL)
            case "-" if self.tokens and self.tokens[-1][0] == "number":
                constant = _constant(self._next()[1])
                return Const(-constant.value, constant.type)
            case "-" | "not":
                inner = self._operand()
                return Unary(text, inner, inner.type)
            case "(":
                return self._in_brackets()
        if kind == "name":
            return self._named(text)
        raise self._wrong("a value", text)

    def _in_brackets(self) -> Value:
        inner = self._value()
        if self._take("if"):
            condition = self._value()
            self._expect("else")
            otherwise = self._value()
            inner = Select(condition, inner, otherwise, inner.type)
        self._expect(")")
        return inner

    def _named(self, text: str) -> Value:
        name = bare(text)
        if self._sees("("):
            arguments = self._arguments()
            if text in ("min", "max"):
                left, right = arguments
                return Binary(text, left, right, _combined(text, left.type, right.type))
            return Call(name, arguments, type_of_call(name, [argument.type for argument in arguments]))
        if self._take("["):
            return self._load(name)
        if name in self.scalars:
            return Var(name, self.scalars[name])
        return ArrayRef(name, self._array(name))

    def _load(self, array: str) -> Load:
        index, lanes, first = self._value(), 1, None
        if self.tokens and re.fullmatch(r"x\d+", self.tokens[-1][1]):
            lanes = int(self._next()[1][1:])
        if self._take("first"):
            first = self._value()
        self._expect("]")
        return Load(array, index, self._array(array).vector(lanes), first)

    def _arguments(self) -> tuple[Value, ...]:
        self._expect("(")
        found: list[Value] = []
        while not self._take(")"):
            found.append(self._value())
            if not self._sees(")"):
                self._expect(",")
        return tuple(found)

    def _bracketed(self) -> Value:
        self._expect("[")
        inner = self._value()
        self._expect("]")
        return inner

    def _variable(self, name: str) -> Var:
        if name not in self.scalars:
            raise UnreadableProgram(f"line {self.line.number}: variable {name} is not declared")
        return Var(name, self.scalars[name])

    def _array(self, name: str) -> Type:
        if name not in self.arrays:
            raise UnreadableProgram(f"line {self.line.number}: there is no array and no variable {name}")
        return self.arrays[name]


def _constant(text: str) -> Const:
    found = re.fullmatch(rf"(.*?)({TYPE})?", text)
    assert found is not None
    whole = found[1].isdecimal()
    kind = Type(found[2]) if found[2] else I64 if whole else F64
    return Const(int(found[1]) if whole and not kind.is_float else float(found[1]), kind)


def _combined(op: str, left: Type, right: Type) -> Type:
    """Return the type of an operator's value: bool for comparisons, else the type of the operands, with the lanes of the wider one."""
    if op in ("==", "!=", "<", "<=", ">", ">="):
        return BOOL
    return left if left.lanes >= right.lanes else right
