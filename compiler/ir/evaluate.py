"""Expressions of the loop IR as Python closures over a frame of variables, with every operation counted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np

from .intrinsics import INTRINSICS, OF_LANES
from .lane_meanings import of_lanes
from .meanings import KeyMap, Parts
from .memory import InterpreterError, Memory, numpy_type
from .nodes import F32, OPAQUE, SHARE_BEGIN, SHARE_NUMBER, ArrayRef, Binary, Call, Cast, Const, Load, Select, Type, Unary, Value, Var
from .numbers import INTEGER, caster, float_operation, in_range, scalar

Frame = list[Any]
Evaluate = Callable[[Frame], Any]
Slots = Mapping[str, int]
Held = Memory | KeyMap | Parts
"""What the interpreter keeps under the name of an array."""


@dataclass
class Counts:
    """The operations of a run. An operation on a vector counts once for each lane.

    Attributes:
        loads, stores: elements of arrays read and written (an updated element counts as both).
        flops: floating-point additions, subtractions, multiplications, divisions, minima and maxima.
        iterations: how often the bodies of loops are run; in a loop over vectors once for each vector.
        comparisons: comparisons in the program, and those inside searches and maps.
        probes: the comparisons inside searches and maps alone.
        prefetches: prefetched places.
    """

    loads: int = 0
    stores: int = 0
    flops: int = 0
    iterations: int = 0
    comparisons: int = 0
    probes: int = 0
    prefetches: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


_COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Evaluator:
    """Turns expressions into closures, which look arrays up by name when they run."""

    def __init__(self, arrays: dict[str, Held], counts: Counts) -> None:
        self.arrays = arrays
        self.counts = counts
        self.share, self.share_begin = 0, 0  # of the iteration of a parallel loop that runs

    def expression(self, expr: Value, slots: Slots, wide: bool = False) -> Evaluate:
        """Return a closure for an expression.

        Args:
            slots: the place of each visible variable in the frame.
            wide: whether it is part of an index, which is computed in 64 bits whatever the types of its parts.
        """
        match expr:
            case Var(name):
                place = _slot(slots, name)
                return lambda frame: frame[place]
            case Const(value, kind):
                constant = scalar(value, kind)
                return lambda _: constant
            case Load(array, index, kind, None):
                return self._load(array, self.expression(index, slots, True), kind)
            case Load(array, index, kind, Value() as first):
                return self._load_first(array, self.expression(index, slots, True), self.expression(first, slots), kind)
            case Binary():
                return self._binary(expr, slots, wide)
            case Unary(op, operand, kind):
                inner = self.expression(operand, slots, wide)
                if op == "not":
                    return lambda frame: not inner(frame)
                if kind.is_float or wide:
                    return lambda frame: -inner(frame)
                return lambda frame: in_range(-inner(frame), kind)
            case Select(condition, then, otherwise):
                test, yes, no = (self.expression(part, slots, wide) for part in (condition, then, otherwise))
                return lambda frame: yes(frame) if test(frame) else no(frame)
            case Cast(operand, kind):
                inner = self.expression(operand, slots)
                convert = caster(operand.type, kind)
                return lambda frame: convert(inner(frame))
            case Call(function, arguments, _):
                return self.call(function, arguments, slots)
        raise InterpreterError(f"not an expression: {expr!r}")

    def _load(self, array: str, index: Evaluate, kind: Type) -> Evaluate:
        arrays, counts, lanes = self.arrays, self.counts, kind.lanes

        def load(frame: Frame) -> Any:
            counts.loads += lanes
            memory = arrays[array]
            assert isinstance(memory, Memory)
            place = index(frame)
            if lanes > 1:
                return memory.load_lanes(place, lanes) if np.ndim(place) == 0 else memory.gather(place)
            value = memory.load(place)
            return value if kind == F32 else value.item()

        return load

    def _load_first(self, array: str, index: Evaluate, first: Evaluate, kind: Type) -> Evaluate:
        """Return a closure that loads the first lanes of a vector; the others are 0."""
        arrays, counts = self.arrays, self.counts

        def load(frame: Frame) -> Any:
            memory, count, place = arrays[array], first(frame), index(frame)
            assert isinstance(memory, Memory)
            counts.loads += count
            made = np.zeros(kind.lanes, numpy_type(kind))
            made[:count] = memory.load_lanes(place, count) if np.ndim(place) == 0 else memory.gather(place[:count])
            return made

        return load

    def _binary(self, expr: Binary, slots: Slots, wide: bool) -> Evaluate:
        op, kind, counts = expr.op, expr.type, self.counts
        left, right = self.expression(expr.left, slots, wide), self.expression(expr.right, slots, wide)
        if op == "and":
            return lambda frame: left(frame) and right(frame)
        if op == "or":
            return lambda frame: left(frame) or right(frame)
        if op in _COMPARISONS:
            compare = _COMPARISONS[op]

            def compared(frame: Frame) -> bool:
                counts.comparisons += 1
                return bool(compare(left(frame), right(frame)))

            return compared
        combine = self.operation(op, kind, checked=not wide)
        return lambda frame: combine(left(frame), right(frame))

    def operation(self, op: str, kind: Type, checked: bool = True) -> Callable[[Any, Any], Any]:
        """Return a function that applies an operator to two values of a type, and counts it."""
        if op in ("and", "or"):
            return (lambda a, b: bool(a and b)) if op == "and" else (lambda a, b: bool(a or b))
        if not kind.is_float:
            return self._integer_operation(op, kind, checked)
        counts, lanes = self.counts, kind.lanes
        compute = float_operation(op, kind)

        def counted(a: Any, b: Any) -> Any:
            counts.flops += lanes
            return compute(a, b)

        return counted

    def _integer_operation(self, op: str, kind: Type, checked: bool) -> Callable[[Any, Any], Any]:
        compute = INTEGER[op]
        if kind.name == "bool":
            return lambda a, b: bool(compute(a, b))
        if not checked or kind.lanes > 1:
            return compute
        return lambda a, b: in_range(compute(a, b), kind)

    def call(self, function: str, arguments: tuple[Value, ...], slots: Slots) -> Evaluate:
        """Return a closure for an intrinsic."""
        if function == SHARE_NUMBER:
            return lambda _: self.share
        if function == SHARE_BEGIN:
            return lambda _: self.share_begin
        if function in OF_LANES:
            return self._of_lanes(function, [self.expression(argument, slots) for argument in arguments])
        intrinsic, arrays, counts = INTRINSICS[function], self.arrays, self.counts
        values = [self._argument(argument, slots) for argument in arguments]
        first = arguments[0].array if arguments and isinstance(arguments[0], ArrayRef) else None

        def called(frame: Frame) -> Any:
            given = [value(frame) for value in values]
            try:
                result = intrinsic.meaning(*given)
            except IndexError as error:
                raise InterpreterError(f"{function} on {first}: {error}") from None
            probes = intrinsic.comparisons(given, result)
            counts.comparisons += probes
            counts.probes += probes
            if intrinsic.extents:
                counts.flops += 2 * prod(max(given[place], 0) for place in intrinsic.extents)
            memory = arrays.get(first) if first else None
            if intrinsic.updates and isinstance(memory, Memory):
                memory.touch_all()
            return result

        return called

    def _of_lanes(self, function: str, values: list[Evaluate]) -> Evaluate:
        counts = self.counts

        def called(frame: Frame) -> Any:
            made, flops = of_lanes(function, [value(frame) for value in values])
            counts.flops += flops
            return made

        return called

    def _argument(self, argument: Value, slots: Slots) -> Evaluate:
        if not isinstance(argument, ArrayRef):
            return self.expression(argument, slots)
        arrays, name = self.arrays, argument.array
        if argument.type in OPAQUE:
            return lambda _: arrays[name]

        def data(_: Frame) -> Any:
            memory = arrays[name]
            assert isinstance(memory, Memory)
            memory.check(0, 0, False)
            return memory.data

        return data


def _slot(slots: Slots, name: str) -> int:
    if name not in slots:
        raise InterpreterError(f"variable {name} is used where it is not declared")
    return slots[name]
