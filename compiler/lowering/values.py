"""Expressions of index notation as loop-IR values of the kernel's value type."""

from __future__ import annotations

import math

from ..ir.arithmetic import FALSE, every, some
from ..ir.nodes import BOOL, Binary, Cast, Const, Load, Select, Type, Unary, Value
from ..notation.constants import makes_nan
from ..notation.nodes import Access, Add, Div, Expr, Literal, Mul, Neg
from .context import Context
from .levels import EntryLevel, KeyLevel, Stored
from .recovery import known
from .scope import Scope
from .semiring import Semiring
from .workspaces import HeldWorkspace, ScalarWorkspace


def value_of(context: Context, scope: Scope, expr: Expr) -> Value:
    """Return the value of an expression at the present coordinates; absent operands have been removed before."""
    kind = context.value_type
    match expr:
        case Literal(number):
            return Const(_literal(number, kind), kind)
        case Access():
            return _component(context, scope, expr)
        case Neg(operand):
            return Unary("-", value_of(context, scope, operand), kind)
        case Add(operands):
            return _sum(context, scope, operands)
        case Mul(operands):
            whole = value_of(context, scope, operands[0])
            for operand in operands[1:]:
                whole = _product(context.semiring, whole, value_of(context, scope, operand), kind)
            return whole
        case Div(numerator, denominator):
            return Binary("/", value_of(context, scope, numerator), value_of(context, scope, denominator), kind)
        case _:
            raise TypeError(f"no value of {type(expr).__name__}")


def _product(semiring: Semiring, left: Value, right: Value, kind: Type) -> Value:
    """Multiply; where the fill value of integers is no infinity by itself, it is made to annihilate."""
    whole = Binary(semiring.multiply_on(kind), left, right, kind)
    if not semiring.overflows(kind):
        return whole
    zero = semiring.zero(kind)
    empty = [Binary("==", value, zero, BOOL) for value in (left, right) if not isinstance(value, Const)]
    return Select(some(empty), zero, whole, kind) if empty else whole


def _literal(number: int | float, kind: Type) -> int | float | bool:
    if kind == BOOL:
        return bool(number)
    return float(number) if kind.is_float or math.isinf(number) else int(number)


def _sum(context: Context, scope: Scope, operands: tuple[Expr, ...]) -> Value:
    kind = context.value_type
    whole = value_of(context, scope, operands[0])
    for operand in operands[1:]:
        if isinstance(operand, Neg) and context.semiring.add == "+" and kind != BOOL:
            whole = Binary("-", whole, value_of(context, scope, operand.operand), kind)
        else:
            whole = Binary(context.semiring.add_on(kind), whole, value_of(context, scope, operand), kind)
    return whole


def _component(context: Context, scope: Scope, access: Access) -> Value:
    held = context.held.get(access.tensor)
    if isinstance(held, ScalarWorkspace):
        return held.value
    storage = context.storage(access)
    if held is not None:
        return Load(storage.values, _held_position(context, scope, access, storage, held), storage.type)
    position = storage.dense_position(scope.place(access), known(context, scope))
    loaded = Load(storage.values, position, storage.type)
    return loaded if storage.type == context.value_type else Cast(loaded, context.value_type)


def _held_position(context: Context, scope: Scope, access: Access, storage: Stored, held: HeldWorkspace) -> Value:
    place = scope.place(access)
    if storage.levels and isinstance(storage.levels[-1], KeyLevel):
        return held.slot_of_key_at(place.positions[-1])
    if storage.levels and isinstance(storage.levels[-1], EntryLevel):
        return place.positions[-1]
    return storage.dense_position(place, known(context, scope))


def nonempty(context: Context, expr: Expr) -> Value | None:
    """Return the condition that a value has an entry, from the flags of scalar workspaces; None where it always has."""
    match expr:
        case Access():
            held = context.held.get(expr.tensor)
            return held.flag if isinstance(held, ScalarWorkspace) else None
        case Literal(number):
            return FALSE if number == 0 and context.semiring.add == "+" else None
        case Neg(operand):
            return nonempty(context, operand)
        case Add(operands):
            conditions = [nonempty(context, operand) for operand in operands]
            return None if None in conditions else some([condition for condition in conditions if condition is not None])
        case Mul(operands):
            stored = (nonempty(context, operand) for operand in operands if not isinstance(operand, Literal))
            conditions = [condition for condition in stored if condition is not None]
            return every(conditions) if conditions else None
        case Div():
            whole, denominators = expr, list[Expr]()
            while isinstance(whole, Div):  # a / b / c ... is one quotient, whatever its length
                whole, denominators = whole.numerator, [whole.denominator, *denominators]
            above = nonempty(context, whole)
            if above is None or any(makes_nan(denominator) for denominator in denominators):
                return None
            below = (nonempty(context, denominator) for denominator in denominators)
            return some([above, *(Unary("not", flag, BOOL) for flag in below if flag is not None)])
        case _:
            raise TypeError(f"no pattern of {type(expr).__name__}")
