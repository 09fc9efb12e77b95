"""Statements of the loop IR."""

from __future__ import annotations

from dataclasses import field

from ...frozen import frozen
from .node import Node, Step, Value
from .tags import Dealt, Parallel, Simd, Unroll, Vector
from .values import Var


@frozen
class Steps(Step):
    """Statements one after another."""

    statements: tuple[Step, ...]


@frozen
class Comment(Step):
    """A comment in the generated code."""

    text: str


@frozen
class Declare(Step):
    """A local scalar with its first value."""

    variable: Var
    value: Value

    def _declares(self) -> tuple[str, ...]:
        return (self.variable.name,)


@frozen
class SetVar(Step):
    """``variable = value``, or ``variable op= value`` where ``op`` is + * min max or and ..."""

    variable: Var
    value: Value
    op: str = ""

    def _assigns(self) -> tuple[str, ...]:
        return (self.variable.name,)


@frozen
class Carry(Node):
    """The slot where a thread of a GPU keeps its values for the first place that it adds to, since earlier threads may add to it too.

    Attributes:
        slot: the number of the thread's slot; it is larger for threads with later places.
        width: how many neighbouring elements a slot, and a place, has.
    """

    slot: Value
    width: Value


@frozen
class Store(Step):
    """``array[index] = value``, or ``array[index] op= value``, if ``atomic`` as one indivisible step.

    ``streams``: the store of a whole vector, at a multiple of its size, bypasses the caches; only the pass ``passes.streams`` sets it.
    ``carry``: each thread of a GPU goes through its own stretch of places in order, so that no addition needs to be atomic: threads share
    only the first place of a stretch.
    """

    array: str
    index: Value
    value: Value
    op: str = ""
    atomic: bool = False
    streams: bool = False
    carry: Carry | None = None


@frozen
class If(Step):
    """Runs ``then`` if the condition holds, else ``otherwise`` if there is one."""

    condition: Value
    then: Step
    otherwise: Step | None = None


@frozen
class While(Step):
    """Repeats the body while the condition holds.

    ``origin`` says, with names of the expression, what the loop visits. It is printed beside the loop and has no effect.
    """

    condition: Value
    body: Step
    origin: str = field(default="", compare=False)


@frozen
class For(Step):
    """``for variable in low .. high``, half open. The step is 1, except in loops that do several iterations at once
    (``passes.vectorize``, ``passes.batches``).

    In a parallel loop, every thread that takes part runs ``private`` once before its first iteration (declarations and allocations of
    private data) and ``finish`` after its last (merging, freeing); so does every block, warp or thread of a GPU to which iterations are
    dealt. Both are empty for other tags. ``origin`` is as in ``While``.
    """

    variable: Var
    low: Value
    high: Value
    body: Step
    tag: Parallel | Vector | Simd | Unroll | Dealt | None = None
    private: tuple[Step, ...] = ()
    finish: tuple[Step, ...] = ()
    step: int = 1
    origin: str = field(default="", compare=False)

    def _declares(self) -> tuple[str, ...]:
        return (self.variable.name,)


@frozen
class Run(Step):
    """An intrinsic called for its effect: sort, scan, map reset."""

    function: str
    arguments: tuple[Value, ...]


@frozen
class Prefetch(Step):
    """Prefetch the cache lines of ``array[index .. index + count]``, which may lie past the end.

    Loads inside ``index`` are carried out, so they must be in range.

    Attributes:
        cache: the innermost level of cache to which they are brought, 1 or 2.
    """

    array: str
    index: Value
    count: int = 1
    cache: int = 1
