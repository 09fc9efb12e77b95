"""A pass that makes a kernel count its operations on values, loads, stores, iterations, and elements of workspaces.

It comes after the passes that do not depend on the processor, so that a schedule has the same counts everywhere. The kernel gets one
more array, ``COUNTS``, and must run in one thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import reduce

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, integer, maximum, multiply
from ..ir.intrinsics import INTRINSICS
from ..ir.nodes import (
    I64,
    Allocate,
    ArrayParameter,
    ArrayRef,
    Binary,
    Call,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Load,
    Parallel,
    Run,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Unary,
    Value,
    Var,
    While,
)
from ..ir.rewrite import is_pure, walk
from .manager import Setting

COUNTED = ("flops", "loads", "stores", "iterations", "alive", "workspace")
"""The counts in the order of the array; ``alive`` is the current number of elements of workspaces, ``workspace`` the largest."""

COUNTS = ("#counts", "values")
"""The source of the parameter for the counts; no tensor can have this name."""

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_LOGICAL = frozenset(("and", "or"))
Charge = Counter[str]


def count_operations(function: Function, setting: Setting, workspaces: Collection[str]) -> Function:
    """Return a kernel that computes the same and counts its operations.

    Args:
        workspaces: the arrays that are workspaces.
    """
    fresh = setting.fresh
    counts = ArrayParameter(fresh("counts"), I64, COUNTS, writable=True)
    rooms = {name: Var(fresh(f"{name}_room"), I64) for name in workspaces}
    counting = _Counting(counts.name, rooms, _computed(function))
    return replace(function, arrays=(*function.arrays, counts), body=Steps(tuple(counting.steps(function.body.statements, False))))


def _computed(function: Function) -> frozenset[str]:
    """Return the variables and arrays that hold values or results computed from values; all others hold positions and coordinates."""
    known = {array.name for array in function.arrays if array.source[1] == "values"}
    pairs = [pair for pair in map(_written, walk(function.body)) if pair is not None]
    while True:
        found = {name for name, value in pairs if name not in known and _mentions(value, known)}
        if not found:
            return frozenset(known)
        known |= found


def _written(node: object) -> tuple[str, Value] | None:
    match node:
        case Declare(variable, value) | SetVar(variable, value):
            return variable.name, value
        case Store(array, _, value):
            return array, value
        case Run(function, (ArrayRef(array), *_) as arguments) if INTRINSICS[function].extents:
            return array, Call(function, arguments, I64)
    return None


def _mentions(value: Value, known: Collection[str]) -> bool:
    """Return whether an expression contains one of the values, without the indices of loads and the operands of comparisons."""
    match value:
        case Var(name) | Load(array=name) | ArrayRef(array=name):
            return name in known
        case Binary(op) if op in _COMPARISONS:
            return False
        case Select(_, then, otherwise):
            return _mentions(then, known) or _mentions(otherwise, known)
    return any(_mentions(child, known) for child in value.children if isinstance(child, Value))


@frozen
class _Counting:
    """Inserts counting between the steps of one kernel.

    Attributes:
        counts: the array of counts.
        rooms: the arrays of workspaces, each with the variable of its number of elements.
        computed: the names of variables and arrays that hold values.
    """

    counts: str
    rooms: Mapping[str, Var]
    computed: frozenset[str]

    def steps(self, steps: tuple[Step, ...], shared: bool) -> Iterator[Step]:
        """Yield steps with their counting; ``shared``: whether threads run them."""
        local = [step.array for step in steps if isinstance(step, Allocate) and step.storage == "registers" and step.array in self.rooms]
        for step in steps:
            yield from self.step(step, shared)
        for array in local:
            yield from self._room(ZERO, array, shared)

    def step(self, step: Step, shared: bool) -> Iterator[Step]:
        """Yield a step, after the counting of what it evaluates at first, and before that of what it evaluates at the end."""
        match step:
            case Steps(steps):
                yield Steps(tuple(self.steps(steps, shared)))
            case For():
                yield from self._charged((step.low, step.high), Counter(), shared)
                inner = shared or isinstance(step.tag, Parallel)
                body = Steps((self._bump("iterations", ONE, inner), *self.step(step.body, inner)))
                private, finish = (tuple(self.steps(part, inner)) for part in (step.private, step.finish))
                yield replace(step, body=body, private=private, finish=finish)
            case While(condition, body):
                test = tuple(self._charged((condition,), Counter(), shared))
                yield replace(step, body=Steps((self._bump("iterations", ONE, shared), *test, *self.step(body, shared))))
                yield from test
            case If(condition, then, otherwise):
                yield from self._charged((condition,), Counter(), shared)
                yes = Steps(tuple(self.step(then, shared)))
                yield If(condition, yes, None if otherwise is None else Steps(tuple(self.step(otherwise, shared))))
            case _:
                values = [child for child in step.children if isinstance(child, Value)]
                yield from self._charged(values[isinstance(step, Declare | SetVar | Grow) :], self._own(step), shared)
                yield from self._memory(step, shared)

    def _memory(self, step: Step, shared: bool) -> Iterator[Step]:
        """Yield a simple step with the counting of what it does to workspaces and of the elements that it fills."""
        array = getattr(step, "array", "")
        if isinstance(step, Run):
            yield from self._routine(step.function, step.arguments, shared)
        if isinstance(step, Fill):
            length = maximum(Binary("-", step.high, step.low, I64), ZERO)
            yield self._bump("stores", length, shared)
        if array not in self.rooms or not isinstance(step, Allocate | Free | Grow):
            yield step
        elif isinstance(step, Allocate):
            yield from (step, Declare(self.rooms[array], ZERO))
            yield from self._room(step.length, array, shared)
        elif isinstance(step, Grow):
            yield step
            yield from self._room(step.capacity, array, shared)
        else:
            yield from self._room(ZERO, array, shared)
            yield step

    def _room(self, elements: Value, array: str, shared: bool) -> Iterator[Step]:
        """Yield the steps that note the number of elements of a workspace."""
        room = self.rooms[array]
        yield self._bump("alive", Binary("-", elements, room, I64), shared)
        yield SetVar(room, elements)
        alive, most = (Load(self.counts, integer(COUNTED.index(what)), I64) for what in ("alive", "workspace"))
        yield Store(self.counts, most.index, maximum(most, alive))

    def _bump(self, what: str, amount: Value, shared: bool) -> Step:
        return Store(self.counts, integer(COUNTED.index(what)), amount, "+", atomic=shared)

    def _charged(self, values: Collection[Value], charge: Charge, shared: bool) -> Iterator[Step]:
        """Yield the counting of expressions that are evaluated once, together with a fixed charge."""
        after: list[Step] = []
        for value in values:
            charge = charge + self._charge(value, after, shared)
        for what, amount in (+charge).items():
            yield self._bump(what, integer(amount), shared)
        yield from after

    def _charge(self, value: Value, after: list[Step], shared: bool) -> Charge:
        """Return the charge of evaluating an expression; the counting of parts that are evaluated conditionally is added to ``after``."""
        match value:
            case Binary(op, left, right) if op in _LOGICAL:
                asked = left if op == "and" else Unary("not", left, left.type)
                self._at_times(asked, right, None, after, shared)
                return self._charge(left, after, shared) + self._operation(value)
            case Select(condition, then, otherwise):
                self._at_times(condition, then, otherwise, after, shared)
                return self._charge(condition, after, shared)
        if isinstance(value, Call):
            after += self._routine(value.function, value.arguments, shared)
        parts = (self._charge(child, after, shared) for child in value.children if isinstance(child, Value))
        return sum(parts, self._operation(value))

    def _routine(self, function: str, arguments: tuple[Value, ...], shared: bool) -> Iterator[Step]:
        """Yield the counting of a BLAS routine."""
        places = INTRINSICS[function].extents if function in INTRINSICS else ()
        if places:
            often = (maximum(arguments[place], ZERO) for place in places)
            yield self._bump("flops", reduce(multiply, often, integer(2)), shared)

    def _own(self, step: Step) -> Charge:
        """Return the charge of a step without its expressions."""
        match step:
            case Store(array, op=op):
                return Counter(stores=1, loads=int(op != ""), flops=int(op != "" and array in self.computed))
            case SetVar(variable, op=op):
                return Counter(flops=int(op != "" and variable.name in self.computed))
        return Counter()

    def _operation(self, value: Value) -> Charge:
        if isinstance(value, Load):
            return Counter(loads=1)
        if isinstance(value, Binary) and value.op not in _COMPARISONS and _mentions(value, self.computed):
            return Counter(flops=1)
        return Counter()

    def _at_times(self, condition: Value, then: Value, otherwise: Value | None, after: list[Step], shared: bool) -> None:
        yes = Steps(tuple(self._charged((then,), Counter(), shared)))
        no = Steps(tuple(self._charged((otherwise,), Counter(), shared)) if otherwise is not None else ())
        if yes.statements or no.statements:
            assert is_pure(condition), "what changes something is asked once"
            after.append(If(condition, yes, no if no.statements else None))
