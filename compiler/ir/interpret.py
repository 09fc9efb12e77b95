"""Runs a kernel's loop IR in Python: the oracle for generated code, and the counter of its operations.

Parallel loops run serially in one thread, with what is private to it. Every access is checked; memory that is read
before it was written, used after it was freed, or neither freed nor published, is an error, and so is memory that two iterations of
a parallel loop use of which one writes it, unless both update it atomically: such a race need not show when threads run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..frozen import frozen
from .evaluate import Counts, Evaluate, Evaluator, Frame, Held, scalar
from .intrinsics import KeyMap, Parts
from .memory import InterpreterError, Memory, numpy_type
from .nodes import (
    MAP,
    PARTS,
    SHARE_BEGIN,
    Allocate,
    Call,
    Comment,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Leave,
    Parallel,
    Prefetch,
    Publish,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Take,
    Var,
    While,
)
from .races import Turn, kept_by_shares
from .rewrite import nodes_of

Execute = Callable[[Frame], None]


@frozen
class Outcome:
    """What a run left: the arrays that it published, by parameter, and what it did."""

    published: dict[str, NDArray[Any]]
    counts: Counts


def interpret(
    function: Function,
    arrays: Sequence[NDArray[Any] | None],
    sizes: Sequence[int],
    fresh: Sequence[str] = (),
    *,
    races: bool = False,
    counts: Counts | None = None,
) -> Outcome:
    """Run a kernel.

    Args:
        arrays: flat arrays in the order of the function's parameters, None for assembled ones; writable ones are changed.
        sizes: in the order of the function's parameters.
        fresh: writable parameters whose content the kernel must not rely on.
        races: whether the schedule says to ignore them.
        counts: takes what the run does; it may raise to end the run.

    Raises:
        InterpreterError: an access out of range, a read of uninitialised memory, an overflow, a leak, a race.
    """
    held: dict[str, Held] = {}
    turn = None if races else Turn()
    for parameter, array in zip(function.arrays, arrays, strict=True):
        if not parameter.assembled:
            assert array is not None, f"no array for parameter {parameter.name}"
            held[parameter.name] = Memory(parameter.name, array, parameter.name not in fresh, turn)
    interpreter = _Interpreter(held, turn, kept_by_shares(function.body), counts or Counts())
    slots = {parameter.name: place for place, parameter in enumerate(function.sizes)}
    interpreter.threads = next((place for place, parameter in enumerate(function.sizes) if parameter.source[0] == "threads"), None)
    interpreter.depth = len(slots)
    run = interpreter.statement(function.body, dict(slots))
    frame: Frame = [*map(int, sizes), *([None] * (interpreter.depth - len(slots)))]
    run(frame)
    interpreter.check_leaks()
    return Outcome(interpreter.published, interpreter.counts)


class _Interpreter:
    def __init__(self, arrays: dict[str, Held], turn: Turn | None, by_thread: frozenset[str], counts: Counts) -> None:
        self.arrays = arrays
        self.turn = turn
        self.by_thread = by_thread
        self.counts = counts
        self.evaluator = Evaluator(arrays, self.counts)
        self.published: dict[str, NDArray[Any]] = {}
        self.heap: dict[str, Held] = {}
        self.depth = 0
        self.threads: int | None = None  # the place in a frame of the number of shares
        self.shared = 0  # how many places of a frame iterations of a parallel loop share

    def check_leaks(self) -> None:
        if self.heap:
            raise InterpreterError(f"array {next(iter(self.heap))} is neither freed nor published")

    # Scopes: ``slots`` is the scope that a statement stands in; declarations are added to it

    def statement(self, statement: Step, slots: dict[str, int]) -> Execute:
        match statement:
            case Steps(statements):
                return self._block(statements, slots)
            case Comment():
                return lambda _: None
            case Declare(variable, value):
                given = self.evaluator.expression(value, slots)
                return self._assign(self._new(variable, slots), variable, given)
            case SetVar(variable, value, op):
                return self._set(variable, value, op, slots)
            case Store():
                return self._store(statement, slots)
            case If(condition, then, otherwise):
                test = self.evaluator.expression(condition, slots)
                yes = self.statement(then, dict(slots))
                no = self.statement(otherwise or Steps(()), dict(slots))
                return lambda frame: yes(frame) if test(frame) else no(frame)
            case While(condition, body):
                return self._while(condition, body, slots)
            case For():
                return self._for(statement, slots)
            case Prefetch(_, index, _):
                return self._prefetch(index, slots)
            case Run(function, arguments):
                call = self.evaluator.call(function, arguments, slots)
                return lambda frame: call(frame)
        return self._memory(statement, slots)

    def _block(self, statements: tuple[Step, ...], slots: dict[str, int]) -> Execute:
        """Run statements in order. What a block inside declares stays visible, unless it hides a name of this block."""
        steps = []
        for inner in statements:
            if isinstance(inner, Steps):
                scope = dict(slots)
                steps.append(self.statement(inner, scope))
                slots.update({name: place for name, place in scope.items() if name not in slots})
            else:
                steps.append(self.statement(inner, slots))

        def run(frame: Frame) -> None:
            for step in steps:
                step(frame)

        return run

    def _new(self, variable: Var, slots: dict[str, int]) -> int:
        slots[variable.name] = self.depth
        self.depth += 1
        return slots[variable.name]

    def _assign(self, place: int, variable: Var, value: Evaluate) -> Execute:
        kind = variable.type

        def assign(frame: Frame) -> None:
            frame[place] = scalar(value(frame), kind)

        return assign

    def _set(self, variable: Var, value: Any, op: str, slots: dict[str, int]) -> Execute:
        if variable.name not in slots:
            raise InterpreterError(f"variable {variable.name} is assigned where it is not declared")
        place, given = slots[variable.name], self.evaluator.expression(value, slots)
        if place < self.shared and self.turn is not None:
            raise InterpreterError(f"variable {variable.name} is assigned in a parallel loop and declared outside of it")
        if not op:
            return self._assign(place, variable, given)
        combine, kind = self.evaluator.operation(op, variable.type), variable.type

        def update(frame: Frame) -> None:
            frame[place] = scalar(combine(frame[place], given(frame)), kind)

        return update

    def _store(self, store: Store, slots: dict[str, int]) -> Execute:
        index = self.evaluator.expression(store.index, slots, True)
        given = self.evaluator.expression(store.value, slots)
        combine = self.evaluator.operation(store.op, store.value.type) if store.op else None
        arrays, counts, lanes = self.arrays, self.counts, store.value.type.lanes

        def run(frame: Frame) -> None:
            memory = arrays[store.array]
            assert isinstance(memory, Memory)
            place, value = index(frame), given(frame)
            counts.stores += lanes
            if combine is not None:
                counts.loads += lanes
                value = combine(memory.held(place, lanes), value)
            memory.store(place, value, lanes, store.atomic)

        return run

    def _while(self, condition: Any, body: Step, slots: dict[str, int]) -> Execute:
        test, step, counts = self.evaluator.expression(condition, slots), self.statement(body, dict(slots)), self.counts

        def run(frame: Frame) -> None:
            while test(frame):
                counts.iterations += 1
                step(frame)

        return run

    def _for(self, loop: For, slots: dict[str, int]) -> Execute:
        low, high = self.evaluator.expression(loop.low, slots), self.evaluator.expression(loop.high, slots)
        parallel, shared = isinstance(loop.tag, Parallel), self.shared
        if parallel:
            self.shared = self.depth
        scope = dict(slots)
        private = self._block(loop.private, scope)
        inner = dict(scope)
        place = self._new(loop.variable, inner)
        body = self.statement(loop.body, inner)
        finish = self._block(loop.finish, scope)
        self.shared = shared
        counts, step, turn = self.counts, loop.step, self.turn if parallel else None
        runs = parallel and any(call.function == SHARE_BEGIN for call in nodes_of(loop.body, Call))

        def run(frame: Frame) -> None:
            first, last = low(frame), high(frame)
            if turn is not None:
                turn.begin()
            private(frame)
            for value in range(first, last, step):
                counts.iterations += 1
                frame[place] = value
                if runs:
                    self._belongs(value, first, last, frame)
                if turn is not None and not (runs and value > self.evaluator.share_begin):
                    turn.next()
                body(frame)
            if turn is not None:
                turn.end()
            finish(frame)

        return run

    def _belongs(self, value: int, first: int, last: int, frame: Frame) -> None:
        """Note to which share an iteration belongs; shares are runs of equal length, whose iterations come one after another."""
        length = -(-(last - first) // (1 if self.threads is None else frame[self.threads]))
        self.evaluator.share = (value - first) // length
        self.evaluator.share_begin = first + self.evaluator.share * length

    def _prefetch(self, index: Any, slots: dict[str, int]) -> Execute:
        place, counts = self.evaluator.expression(index, slots, True), self.counts

        def run(frame: Frame) -> None:
            counts.prefetches += 1
            place(frame)

        return run

    # Memory

    def _memory(self, statement: Step, slots: dict[str, int]) -> Execute:
        match statement:
            case Allocate():
                return self._allocate(statement, slots)
            case Free(array):
                return lambda _: self._free(array)
            case Grow():
                return self._grow(statement, slots)
            case Fill():
                return self._fill(statement, slots)
            case Leave() | Take():
                return self._moved(statement, slots)
            case Publish():
                return self._publish(statement, slots)
        raise InterpreterError(f"not a statement: {statement!r}")

    def _allocate(self, allocation: Allocate, slots: dict[str, int]) -> Execute:
        length, name = self.evaluator.expression(allocation.length, slots), allocation.array

        def run(frame: Frame) -> None:
            count = length(frame)
            if count < 0:
                raise InterpreterError(f"array {name} is allocated with {count} elements")
            if name in self.heap:
                raise InterpreterError(f"array {name} is allocated while it is held")
            if allocation.type == MAP:
                made: Held = KeyMap()
            elif allocation.type == PARTS:
                made = Parts()
            else:
                turn = None if self.turn is None or self.turn.number or name in self.by_thread else self.turn
                made = Memory(name, np.zeros(count, numpy_type(allocation.type)), allocation.zero, turn)
            self.arrays[name] = made
            if allocation.storage == "heap":
                self.heap[name] = made

        return run

    def _free(self, array: str) -> None:
        freed = self.heap.pop(array, None)
        if freed is None:
            raise InterpreterError(f"array {array} is freed, but it is not held")
        if isinstance(freed, Memory):
            freed.freed = True

    def _grow(self, grow: Grow, slots: dict[str, int]) -> Execute:
        needed, capacity = self.evaluator.expression(grow.needed, slots), slots[grow.capacity.name]

        def run(frame: Frame) -> None:
            memory = self.arrays[grow.array]
            assert isinstance(memory, Memory)
            if frame[capacity] != len(memory.data):
                said = f"its capacity is said to be {frame[capacity]}"
                raise InterpreterError(f"array {grow.array} has {len(memory.data)} elements, but {said}")
            wanted = needed(frame)
            if wanted > frame[capacity]:
                frame[capacity] = max(wanted, 2 * frame[capacity], 16)
                memory.grow(frame[capacity])

        return run

    def _moved(self, step: Leave | Take, slots: dict[str, int]) -> Execute:
        place = self.evaluator.expression(step.place, slots)

        def run(frame: Frame) -> None:
            parts, at = self.arrays[step.parts.array], place(frame)
            assert isinstance(parts, Parts)
            if isinstance(step, Leave):
                if step.array not in self.heap or at in parts.arrays:
                    raise InterpreterError(f"array {step.array} is left at place {at}, but it is not held or the place is taken")
                parts.arrays[at] = self.heap.pop(step.array)
            elif step.array in self.heap or at not in parts.arrays:
                raise InterpreterError(f"array {step.array} is taken from place {at}, but it is held already or nothing is there")
            else:
                self.arrays[step.array] = self.heap[step.array] = parts.arrays.pop(at)

        return run

    def _fill(self, fill: Fill, slots: dict[str, int]) -> Execute:
        low, high = (self.evaluator.expression(part, slots, True) for part in (fill.low, fill.high))
        given = self.evaluator.expression(fill.value, slots)

        def run(frame: Frame) -> None:
            memory = self.arrays[fill.array]
            assert isinstance(memory, Memory)
            first, count = low(frame), high(frame) - low(frame)
            if count > 0:
                self.counts.stores += count
                memory.store(first, np.full(count, given(frame)), count) if count > 1 else memory.store(first, given(frame))

        return run

    def _publish(self, publish: Publish, slots: dict[str, int]) -> Execute:
        length = self.evaluator.expression(publish.length, slots)

        def run(frame: Frame) -> None:
            memory, count = self.heap.pop(publish.array, None), length(frame)
            if not isinstance(memory, Memory):
                raise InterpreterError(f"array {publish.array} is published, but it is not held")
            memory.check(0, count, True)
            self.published[publish.parameter] = memory.data[:count].copy()
            memory.freed = True

        return run
