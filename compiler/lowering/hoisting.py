"""Arrays that are allocated once: at the start of the kernel, or of a thread in its parallel loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..ir.nodes import Allocate, Free, Step, Type, Value


@dataclass
class Allocations:
    """The steps that are hoisted to one place, and those that free their arrays at the end."""

    before: list[Step] = field(default_factory=list)
    after: list[Step] = field(default_factory=list)


class Hoisting:
    """Collects allocations while loops are lowered, separately for the innermost parallel loop."""

    def __init__(self) -> None:
        self._open = [Allocations()]

    @property
    def kernel(self) -> Allocations:
        """The allocations at the start of the kernel."""
        return self._open[0]

    @property
    def here(self) -> Allocations:
        """The allocations at the start of the current thread; at the start of the kernel outside of parallel loops."""
        return self._open[-1]

    def allocate(self, array: str, kind: Type, length: Value, *, zero: bool) -> None:
        """Allocate an array there."""
        self.here.before.append(Allocate(array, kind, length, "heap", zero))
        self.here.after.append(Free(array))

    @contextmanager
    def thread(self) -> Iterator[Allocations]:
        """Collect the steps hoisted inside a parallel loop, whose arrays are private to a thread."""
        own = Allocations()
        self._open.append(own)
        try:
            yield own
        finally:
            self._open.pop()
