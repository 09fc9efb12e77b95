"""The rules for values of the loop IR: names are visible and have their declared types, and operands and results have fitting types."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature

from .intrinsics import INTRINSICS, OF_LANES, type_of_call
from .nodes import (
    BOOL,
    OPAQUE,
    SHARE_BEGIN,
    SHARE_NUMBER,
    ArrayRef,
    Binary,
    Call,
    Cast,
    Combine,
    Const,
    Function,
    Load,
    Select,
    Step,
    Type,
    Unary,
    Value,
    Var,
)
from .printer import show_expression, show_statement

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_LOGICAL = frozenset(("and", "or"))
_EXTREME = frozenset(("min", "max"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "%")) | _EXTREME
GROUPS, MEMBERS = ("block", "warp"), ("block", "warp", "thread")
UPDATES = _ARITHMETIC | _LOGICAL | {""}

def _takes(function: str, count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    if function in OF_LANES:
        return count == 2 if function == "keep_lanes" else count > 0 if function == "sums_of_lanes" else count == 1
    return _binds(INTRINSICS[function].meaning, count)


@cache
def _binds(meaning: Callable[..., object], count: int) -> bool:
    try:
        signature(meaning).bind(*range(count))
    except ValueError:  # a function of C that does not say what it takes
        return True
    except TypeError:
        return False
    return True


class Fault(Exception):
    """A rule is broken; the message says which and where."""


Scope = dict[str, Type]

class ValueRules:
    """Checks the values of a program. ``scope`` has the visible scalars, ``local`` the visible register arrays."""

    def __init__(self, function: Function) -> None:
        self.arrays = {parameter.name: parameter.type for parameter in function.arrays if not parameter.assembled}
        self.constant = {parameter.name for parameter in function.arrays if not parameter.writable}
        self.assembled = {parameter.name: parameter.type for parameter in function.arrays if parameter.assembled}
        self.shared: frozenset[str] | None = None  # the scalars of outside, in a parallel loop
        self.counters: frozenset[str] = frozenset()  # the variables in sight with which loops count
        self.here: Step = function.body

    def fail(self, what: str) -> None:
        """Raise ``Fault`` with what is wrong and the first line of the statement that is being checked."""
        shown = show_statement(self.here).splitlines()
        raise Fault(f"{what}, in: {shown[0].strip() if shown else '(nothing)'}")

    def condition(self, value: Value, scope: Scope, local: Scope) -> None:
        """Check a value that decides a branch or a loop: it must be a single truth value."""
        self.value(value, scope, local)
        if value.type != BOOL:
            self.fail(f"condition {show_expression(value)} is no truth value")

    def place(self, value: Value, scope: Scope, local: Scope) -> None:
        """Check a value that is a place in an array: it must be a single whole number."""
        self.value(value, scope, local)
        if value.type.is_float or value.type == BOOL or value.type.lanes > 1:
            self.fail(f"{show_expression(value)} is no whole number")

    def assigned(self, variable: Var, value: Value, op: str, scope: Scope, local: Scope) -> None:
        """Check the value that a variable is given or updated with. Insertions into maps are allowed here."""
        if isinstance(value, Call) and value.function == "map_insert":
            self.call(value.function, value.arguments, scope, local)
        else:
            self.value(value, scope, local)
        self.converts(value.type.vector(variable.type.lanes) if op and value.type.lanes == 1 else value.type, variable.type)

    def converts(self, given: Type, wanted: Type) -> None:
        """Check that a value may be kept as another type: lanes and opaque types must agree, and no float may become an integer."""
        cut = given.is_float and not wanted.is_float
        if given.lanes != wanted.lanes or (given.lanes > 1 and given != wanted) or given in OPAQUE or wanted in OPAQUE or cut:
            self.fail(f"a value of type {given.name} is kept as {wanted.name}")

    def variable(self, variable: Var, scope: Scope) -> None:
        """Check that a variable is declared here, with the type with which it is used."""
        kind = scope.get(variable.name)
        if kind is None:
            self.fail(f"variable {variable.name} is used where it is not declared")
        elif kind != variable.type:
            self.fail(f"variable {variable.name} is declared as {kind.name} and used as {variable.type.name}")

    def array(self, array: str, local: Scope) -> Type:
        """Return the type of the elements of an array.

        Raises:
            Fault: no array of that name can be seen here.
        """
        kind = local.get(array) or self.arrays.get(array)
        if kind is None:
            self.fail(f"array {array} is used where there is none")
        assert kind is not None
        return kind

    def value(self, value: Value, scope: Scope, local: Scope) -> None:
        """Check a value and everything in it: what it reads exists, and the types of its parts fit together.

        Raises:
            Fault: a rule is broken; the message says which.
        """
        match value:
            case Var():
                self.variable(value, scope)
            case Const():
                if value.type.lanes > 1:
                    self.fail("a constant is a scalar")
                if not value.type.is_float and value.value != int(value.value):
                    self.fail(f"{value.value} is said to be {value.type.name}")
            case Load(array, index, kind, first):
                self.value(index, scope, local)
                if index.type.is_float or index.type == BOOL or index.type.lanes not in (1, kind.lanes):
                    self.fail(f"{show_expression(index)} is no place of {array}")
                if self.array(array, local).vector(kind.lanes) != kind:
                    self.fail(f"array {array} of {self.array(array, local).name} is read as {kind.name}")
                if first is not None:
                    self.place(first, scope, local)
            case Binary():
                self.value(value.left, scope, local)
                self.value(value.right, scope, local)
                self.binary(value)
            case Unary(op, operand, kind):
                self.value(operand, scope, local)
                if operand.type != kind or (op == "not") != (kind == BOOL):
                    self.fail(f"{op} makes {kind.name} of {operand.type.name}")
            case Select(condition, then, otherwise, kind):
                self.condition(condition, scope, local)
                for branch in (then, otherwise):
                    self.value(branch, scope, local)
                    if branch.type != kind:
                        self.fail(f"a choice of {branch.type.name} is said to be {kind.name}")
            case Combine(op, operand, unit, within, kind):
                self.value(operand, scope, local)
                if op not in UPDATES or unit not in MEMBERS or within not in GROUPS:
                    self.fail(f"nothing is combined by {op} over {unit} of {within}")
                if operand.type != kind:
                    self.fail(f"{operand.type.name} is combined to {kind.name}")
            case Cast(operand, kind):
                self.value(operand, scope, local)
                if operand.type.lanes not in (1, kind.lanes):
                    self.fail(f"{operand.type.name} is converted to {kind.name}")
            case Call(function, arguments, kind):
                if function == "map_insert":
                    self.fail("map_insert may find no memory, so that it stands only as the whole value of a variable")
                self.call(function, arguments, scope, local)
                if type_of_call(function, [argument.type for argument in arguments]) != kind:
                    self.fail(f"{function} is said to give {kind.name}")
            case _:
                self.fail(f"{type(value).__name__} stands where a value is needed")

    def binary(self, value: Binary) -> None:
        """Check that the types of both sides fit the operator and the type that the result is said to have."""
        op, kind, sides = value.op, value.type, (value.left.type, value.right.type)
        if op in _COMPARISONS:
            right = kind == BOOL and sides[0] == sides[1] and sides[0].lanes == 1
        elif op in _LOGICAL:
            right = sides == (kind, kind)
        else:
            right = op in (_EXTREME if kind == BOOL else _ARITHMETIC) and kind not in OPAQUE
            right = right and all(side in (kind, kind.element) for side in sides)
            right = right and max(side.lanes for side in sides) == kind.lanes
        if not right:
            self.fail(f"{sides[0].name} {op} {sides[1].name} is said to be {kind.name}")

    def call(self, function: str, arguments: tuple[Value, ...], scope: Scope, local: Scope) -> None:
        """Check that a function exists, and that it takes these arguments."""
        if function not in INTRINSICS and function not in OF_LANES:
            self.fail(f"there is no function {function}")
        if not _takes(function, len(arguments)):
            self.fail(f"{function} does not take {len(arguments)} arguments")
        if function in INTRINSICS and INTRINSICS[function].updates and not isinstance(arguments[0], ArrayRef):
            self.fail(f"{function} changes no array")
        if function in (SHARE_NUMBER, SHARE_BEGIN) and self.shared is None:
            self.fail("only iterations of parallel loops belong to shares")
        for argument in arguments:
            if isinstance(argument, ArrayRef):
                if self.array(argument.array, local) != argument.type:
                    self.fail(f"array {argument.array} of {self.array(argument.array, local).name} is handed over as {argument.type.name}")
            else:
                self.value(argument, scope, local)

