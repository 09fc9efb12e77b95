"""The steps of the interpreter that allocate, move, fill, free and publish arrays, and the arrays that a program holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluate import Counts, Evaluator, Frame, Held
from .meanings import KeyMap, Parts
from .memory import InterpreterError, Memory, numpy_type
from .nodes import MAP, PARTS, Allocate, Fill, Free, Grow, Leave, Publish, Step, Take
from .races import Turn

Execute = Callable[[Frame], None]


class MemorySteps:
    """The arrays by name, those of the heap that are not released yet, and those that were published.

    Args:
        turn: tells which iteration of a parallel loop uses memory; None: races are ignored.
        by_thread: arrays of which every share of the work has a part of its own.
    """

    def __init__(self, arrays: dict[str, Held], turn: Turn | None, by_thread: frozenset[str], counts: Counts) -> None:
        self.arrays, self.turn, self.by_thread, self.counts = arrays, turn, by_thread, counts
        self.evaluator = Evaluator(arrays, counts)
        self.published: dict[str, NDArray[Any]] = {}
        self.heap: dict[str, Held] = {}

    def check_leaks(self) -> None:
        """Raise ``InterpreterError`` where an array is still held."""
        if self.heap:
            raise InterpreterError(f"array {next(iter(self.heap))} is neither freed nor published")

    def memory(self, statement: Step, slots: dict[str, int]) -> Execute:
        """Return a closure for a statement that allocates, moves, fills, frees or publishes an array."""
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
