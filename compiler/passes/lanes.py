"""The vector form of a loop's body: the statements for several consecutive iterations at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..ir.nodes import (
    I32,
    I64,
    U16,
    Binary,
    Call,
    Cast,
    Comment,
    Const,
    Declare,
    For,
    If,
    Load,
    Parallel,
    Prefetch,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Unary,
    Value,
    Var,
)
from ..ir.rewrite import block, mentions, nodes_of, walk
from .folding import simplify_expression
from .linear_forms import ZERO, LinearForms, plus
from .plan import REDUCTIONS, Plan

_ARITHMETIC = frozenset(("+", "-", "*", "/", "min", "max"))


class NoVectors(Exception):
    """A loop has no vector form."""


class Vectorizer:
    """Makes the statements of one chunk.

    Args:
        place: the loop variable's value in the first lane.
        lanes: how many iterations the chunk holds.
        number: the number of the chunk; chunk 0 also makes what all chunks share.
        accumulator: the number of the partial result of a reduction to which the chunk adds.
        first: the number of the chunk's first iteration, which determines its registers.
        row: how many elements the first chunk prefetches at once for all chunks; 0: each chunk prefetches its own.
        present: how many lanes the chunk has, if it is the remainder of a loop; None: all.
    """

    def __init__(
        self, plan: Plan, place: Value, lanes: int, number: int, accumulator: int, first: int = 0, row: int = 0, present: Var | None = None
    ) -> None:
        self.plan, self.place, self.lanes = plan, place, lanes
        self.number, self.accumulator, self.first, self.row = number, accumulator, first, row
        self.present = present
        self.forms = LinearForms(plan)
        self.nested = 0
        self.displaced: set[str] = set()
        """Arrays with an access at a place other than the loop variable."""
        self.gathered = 0
        """The bytes of the widest index by which elements are gathered; 0: none are."""

    # Statements

    def statement(self, statement: Step) -> Step:
        """Return what a statement of the loop becomes in this chunk.

        Raises:
            NoVectors: it has no vector form.
        """
        match statement:
            case Steps(statements):
                return block([self.statement(inner) for inner in statements])
            case Comment():
                return statement if self.number == 0 else Steps(())
            case Declare(variable, value):
                return self._declare(variable, value)
            case SetVar(variable, value, op):
                return self._set(variable, value, op)
            case Store(array, index, value, op, False):
                return self._store(array, index, value, op)
            case Prefetch():
                return self._prefetch(statement)
            case If(condition, then, otherwise) if self.forms.uniform(condition):
                return self._deeper(lambda: If(self.forms.same(condition), self.statement(then), otherwise and self.statement(otherwise)))
            case For(_, low, high) if not isinstance(statement.tag, Parallel) and self.forms.uniform(low) and self.forms.uniform(high):
                low, high = self.forms.same(low), self.forms.same(high)
                return self._deeper(lambda: replace(statement, low=low, high=high, body=self.statement(statement.body), tag=None))
        raise NoVectors

    def _deeper(self, make: Callable[[], Step]) -> Step:
        self.nested += 1
        made = make()
        self.nested -= 1
        return made

    def _declare(self, variable: Var, value: Value) -> Step:
        if variable.name in self.plan.varying and not variable.type.is_float:
            if self._is_scattered(value):
                return self._declare_places(variable, value)
            self.forms.inline(variable, self._linear(value))
            return Steps(())
        if variable.name in self.plan.fixed and not self.nested:
            return Declare(variable, self.forms.same(value)) if self.number == 0 else Steps(())
        kind = variable.type.vector(self.lanes) if variable.name in self.plan.varying else variable.type
        made = self.value(value)
        if kind.lanes == 1 and made.type.lanes > 1:
            raise NoVectors
        local = Var(self.plan.fresh(variable.name) if self.number else variable.name, kind)
        self.forms.renamed[variable.name] = local
        return Declare(local, self._spread(made, kind))

    def _declare_places(self, variable: Var, value: Value) -> Step:
        """Declare integers that are loaded from memory, such as coordinates, with the number of bits with which they are stored.

        An offset that is the same for all lanes is kept separately, and is added to the base of gathers.
        """
        origin = value.left if isinstance(value, Binary) and value.op == "+" and self.forms.uniform(value.left) else None
        stored = value.right if isinstance(value, Binary) and origin is not None else value
        widened = isinstance(stored, Cast) and variable.type == I64 and isinstance(stored.operand, Load)
        made = self.value(stored.operand if widened and isinstance(stored, Cast) else stored)
        local = Var(self.plan.fresh(variable.name) if self.number else variable.name, made.type)
        kind = variable.type.vector(self.lanes)
        place = local if origin is None else Binary("+", self.forms.same(origin), self._element(local, kind), kind)
        self.forms.renamed[variable.name] = place
        return Declare(local, made)

    def _set(self, variable: Var, value: Value, op: str) -> Step:
        if variable.name in self.forms.inlined:
            raise NoVectors
        if variable.name in self.plan.inside:
            local = self.forms.renamed.get(variable.name)
            if not isinstance(local, Var):
                raise NoVectors
            made = self.value(value)
            if made.type.lanes > local.type.lanes or (op and op not in _ARITHMETIC):
                raise NoVectors
            return SetVar(local, made if op else self._spread(made, local.type), op)
        if op not in REDUCTIONS or not variable.type.is_float or mentions(value, {variable.name}):
            raise NoVectors
        made = self._kept(self._element(self.value(value), variable.type), variable.type, op)
        return SetVar(self._accumulator(variable, op), made, op)

    def _kept(self, made: Value, kind: Type, op: str) -> Value:
        """Return a value that is neutral for sums in the lanes that the chunk does not have."""
        if self.present is None:
            return made
        if REDUCTIONS[op][1] != 0:
            raise NoVectors
        whole = kind.vector(self.lanes)
        return made if _vanishes(made) else Call("keep_lanes", (self._spread(made, whole), self.present), whole)

    def _accumulator(self, variable: Var, op: str) -> Var:
        key = (variable.name, REDUCTIONS[op][0], self.lanes, self.accumulator)
        if key not in self.plan.accumulators:
            self.plan.accumulators[key] = Var(self.plan.fresh(variable.name), variable.type.vector(self.lanes))
        return self.plan.accumulators[key]

    def _store(self, array: str, index: Value, value: Value, op: str) -> Step:
        if (op and op not in _ARITHMETIC) or self.present is not None:
            raise NoVectors
        made = self.value(value)
        register = self._register(array, index, made.type)
        if register is not None:
            return SetVar(register, made if op else self._spread(made, register.type), op)
        kind = value.type.vector(self.lanes)
        return Store(array, self._place_of(index), self._spread(made, kind), op)

    def _prefetch(self, asked: Prefetch) -> Step:
        if self.present is not None:
            return Steps(())  # for the remainder, the vectors before have prefetched
        uniform, scale = self._linear(asked.index)
        if scale == 0:
            return replace(asked, index=self.forms.same(asked.index)) if self.number == 0 else Steps(())
        if scale != 1 or asked.count != 1:
            raise NoVectors
        if self.row and self.number:
            return Steps(())
        return replace(asked, index=plus(uniform, self.place), count=self.row or self.lanes)

    # Expressions

    def value(self, expr: Value) -> Value:
        """Return the value in all lanes: a vector, or a scalar if all lanes have the same value."""
        if self.forms.uniform(expr):
            shared = self.forms.same(expr)
            return self._hoist(shared, "value") if expr.type.is_float and not isinstance(expr, Var | Const) else shared
        match expr:
            case Var(name):
                if name not in self.forms.renamed:
                    raise NoVectors
                return self.forms.renamed[name]
            case Load(array, index, kind) if self._is_scattered(index):
                return self._gather(array, index, kind)
            case Load(array, index, kind):
                register = self._register(array, index, kind)
                return register or Load(array, self._place_of(index), kind.vector(self.lanes), self.present)
            case Binary(op, left, right, kind) if op in _ARITHMETIC and (kind.is_float or op in "+-*"):
                operands = [self._element(self.value(operand), kind) for operand in (left, right)]
                return Binary(op, operands[0], operands[1], kind.vector(self.lanes))
            case Unary("-", operand, kind):
                return Unary("-", self.value(operand), kind.vector(self.lanes))
            case Cast(operand, kind) if kind.name != "bool" and operand.type.name != "bool":
                return Cast(self.value(operand), kind.vector(self.lanes))
            case Select(Binary("<", low, high), then, Const(0.0), kind) if kind.is_float and not (low.type.is_float or high.type.is_float):
                left = self.value(Binary("-", high, low, I64))
                if left.type.lanes > 1:
                    return Call("keep_lanes", (self._spread(self.value(then), kind.vector(self.lanes)), left), kind.vector(self.lanes))
        raise NoVectors

    def _gather(self, array: str, index: Value, kind: Type) -> Load:
        """Return a gather of the elements at an index without a linear form."""
        self.displaced.add(array)
        places = self.value(index)
        if places.type.element != I32:
            places = self._element(places, I64)
        near = isinstance(places, Binary) and isinstance(places.right, Cast) and places.right.operand.type.element in (U16, I32)
        self.gathered = max(self.gathered, I32.bytes if near else places.type.element.bytes)
        return Load(array, places, kind.vector(self.lanes), self.present)

    def _is_scattered(self, index: Value) -> bool:
        """Return whether an index has no linear form, and the loop may gather."""
        return self.plan.gathers and self.forms.linear(index) is None

    def _register(self, array: str, index: Value, kind: Type) -> Var | None:
        """Return the variable for this chunk of a registers array, and note how the array is used."""
        uniform, scale = self._linear(index)
        at_variable = scale == 1 and uniform == ZERO
        if not at_variable:
            self.displaced.add(array)
        name = self.plan.registers.get((array, self.first)) if at_variable else None
        return None if name is None else Var(name, kind.element.vector(self.lanes))

    def _place_of(self, index: Value) -> Value:
        uniform, scale = self._linear(index)
        if scale != 1:
            raise NoVectors
        return simplify_expression(plus(self._hoist(uniform, "row"), self.place))

    def _hoist(self, expr: Value, part: str) -> Value:
        """Return a value that all chunks share; if it is loaded from memory, it is loaded once, before the first chunk."""
        hoisted = self.plan.hoisted
        if hoisted is None or self.nested or not nodes_of(expr, Load):
            return expr
        if any(node.name in self.plan.inside for node in nodes_of(expr, Var)):
            return expr
        if expr not in hoisted:
            array = next(node.array for node in walk(expr) if isinstance(node, Load))
            hoisted[expr] = Declare(Var(self.plan.fresh(f"{array}_{part}"), expr.type), expr)
        return hoisted[expr].variable

    def _element(self, made: Value, kind: Type) -> Value:
        """Convert a vector or scalar to the element type of the vector that it is combined with."""
        wanted = kind.element.vector(made.type.lanes)
        if made.type == wanted:
            return made
        return simplify_expression(Cast(made, wanted))

    def _spread(self, made: Value, kind: Type) -> Value:
        if kind.element.name == "bool":
            raise NoVectors  # C has no vectors of truth values
        made = self._element(made, kind)
        return made if made.type == kind else Cast(made, kind)

    def _linear(self, index: Value) -> tuple[Value, int]:
        found = self.forms.linear(index)
        if found is None:
            raise NoVectors
        return found


def _vanishes(value: Value) -> bool:
    """Return whether a value is certainly 0 in the lanes that a chunk does not have."""
    match value:
        case Load():
            return value.first is not None
        case Unary("-", operand) | Cast(operand):
            return _vanishes(operand)
        case Binary("*", left, right):
            return _vanishes(left) and _vanishes(right)
    return False


def element_accesses(body: Step) -> Iterator[tuple[str, Value, bool]]:
    """Yield (array, index, whether it is written) for every element that a body reads or writes, without prefetches."""
    for node in nodes_of(body, Load, Store):
        yield node.array, node.index, isinstance(node, Store)
