"""Expressions of index notation as loop-IR values of the kernel's value type."""

from __future__ import annotations

import math
from dataclasses import replace

from ..concrete.lattice import Complement, Domain, Intersection, Nowhere, Stored, Union, is_undecided
from ..concrete.nodes import Assign
from ..ir.arithmetic import FALSE, every, some
from ..ir.nodes import BOOL, Binary, Cast, Const, Load, Select, Type, Unary, Value
from ..notation.nodes import Access, Add, Apply, Div, Expr, Literal, Mul, Neg
from ..workspaces.held import HeldWorkspace
from ..workspaces.levels import EntryLevel, KeyLevel, Storage
from ..workspaces.scalar import ScalarWorkspace
from .applied import applied
from .context import Context
from .recovery import known
from .resolve import patterns
from .scope import Scope
from .semiring import Semiring


def value_of(context: Context, scope: Scope, expr: Expr) -> Value:
    """Return the value of an expression at the current coordinates; absent operands were removed before."""
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
        case Apply(_, arguments):
            return applied(expr, [value_of(context, scope, argument) for argument in arguments], kind)
        case Div(numerator, denominator):
            return Binary("/", value_of(context, scope, numerator), value_of(context, scope, denominator), kind)
        case _:
            raise TypeError(f"no value of {type(expr).__name__}")


def _product(semiring: Semiring, left: Value, right: Value, kind: Type) -> Value:
    """Return a product. If the fill value is an integer that represents infinity, a product with it is made to be the fill value."""
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
    held = scope.held(access.tensor)
    if isinstance(held, ScalarWorkspace):
        return held.value
    storage = context.tensors.storage(scope, access)
    if held is not None:
        return Load(storage.values, _held_position(context, scope, access, storage, held), storage.type)
    position = storage.dense_position(scope.place(access), known(context, scope))
    loaded = Load(storage.values, position, storage.type)
    return loaded if storage.type == context.value_type else Cast(loaded, context.value_type)


def _held_position(context: Context, scope: Scope, access: Access, storage: Storage, held: HeldWorkspace) -> Value:
    place = scope.place(access)
    if storage.levels and isinstance(storage.levels[-1], KeyLevel):
        return held.slot_of_key_at(place.positions[-1])
    if storage.levels and isinstance(storage.levels[-1], EntryLevel):
        return place.positions[-1]
    return storage.dense_position(place, known(context, scope))


def nonempty(context: Context, scope: Scope, assign: Assign) -> Value | None:
    """Return the condition, by the flags of scalar workspaces, that the value of an assignment has an entry; None: it always has."""

    here = patterns(context, scope)

    def of(access: Access) -> Domain:
        return here.of(access) if _flag(scope, access) is None else Stored(access)

    return _condition(scope, replace(here, of=of).remaining(assign, scope.loops).domain)


def _flag(scope: Scope, access: Access) -> Value | None:
    held = scope.held(access.tensor)
    return held.flag if isinstance(held, ScalarWorkspace) else None


def _condition(scope: Scope, domain: Domain) -> Value | None:
    """Return the condition that a domain holds, given the flags of scalar workspaces; None: it always does."""
    match domain:
        case Nowhere():
            return FALSE
        case Stored(access):
            return _flag(scope, access)
        case Complement(part):
            condition = None if is_undecided(part) else _condition(scope, part)
            return None if condition is None else Unary("not", condition, BOOL)
        case Intersection(parts):
            conditions = [condition for part in parts if (condition := _condition(scope, part)) is not None]
            return every(conditions) if conditions else None
        case Union(parts):
            conditions = [_condition(scope, part) for part in parts]
            return None if None in conditions else some([condition for condition in conditions if condition is not None])
        case _:
            return None
