"""Runs the loop IR of a kernel in Python. It is the oracle for generated code, and counts its operations.

Parallel loops run serially, in one thread with its private data. Every access is checked. It is an error to read memory before it is
written, to use it after it is freed, or to leave it neither freed nor published. It is also an error if two iterations of a parallel
loop use the same element and one of them writes it, unless both update it atomically, even if no run with threads would show that race.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ..frozen import frozen
from .evaluate import Counts, Evaluate, Frame, Held
from .memory import InterpreterError, Memory
from .memory_steps import Execute, MemorySteps
from .nodes import (
    SHARE_BEGIN,
    Call,
    Comment,
    Declare,
    For,
    Function,
    If,
    Parallel,
    Prefetch,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Var,
    While,
)
from .numbers import scalar
from .races import Turn, kept_by_shares
from .rewrite import nodes_of


@frozen
class Outcome:
    """The result of a run: the arrays that it published, by parameter, and the counts of its operations."""

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
        fresh: writable parameters that the kernel must write before it reads them.
        races: whether races are ignored, as the schedule says.
        counts: receives the counts while the program runs; it may raise an exception to end the run.

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


class _Interpreter(MemorySteps):
    """Turns a program into closures, statement by statement."""

    def __init__(self, arrays: dict[str, Held], turn: Turn | None, by_thread: frozenset[str], counts: Counts) -> None:
        super().__init__(arrays, turn, by_thread, counts)
        self.depth = 0
        self.threads: int | None = None  # the place in a frame of the number of shares
        self.shared = 0  # how many places of a frame iterations of a parallel loop share

    # ``slots`` is the scope of a statement; declarations are added to it

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
        return self.memory(statement, slots)

    def _block(self, statements: tuple[Step, ...], slots: dict[str, int]) -> Execute:
        """Run statements in order. Declarations of a block inside stay visible, unless they hide a name of this block."""
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
        """Note to which share an iteration belongs. Shares are runs of consecutive iterations, of equal length."""
        length = -(-(last - first) // (1 if self.threads is None else frame[self.threads]))
        self.evaluator.share = (value - first) // length
        self.evaluator.share_begin = first + self.evaluator.share * length

    def _prefetch(self, index: Any, slots: dict[str, int]) -> Execute:
        place, counts = self.evaluator.expression(index, slots, True), self.counts

        def run(frame: Frame) -> None:
            counts.prefetches += 1
            place(frame)

        return run
