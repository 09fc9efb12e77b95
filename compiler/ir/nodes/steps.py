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
    """Where a thread of a GPU keeps what it adds to the first place that it comes to, which threads before it may add to as well.

    Attributes:
        slot: a number of the thread's own, larger for those that come later.
        width: how many elements lie side by side in a slot, and in a place.
    """

    slot: Value
    width: Value


@frozen
class Store(Step):
    """``array[index] = value``, or ``array[index] op= value``; atomic where threads may meet.

    ``streams`` writes a whole vector past the caches, at a multiple of its size; only the pass ``passes.streams`` sets it.
    ``carry``: threads of a GPU go through the places in order, each through a stretch of them, so that no addition needs to be atomic: only
    the first place of a stretch is shared.
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
    """Runs ``then`` where the condition holds, else ``otherwise`` if there is one."""

    condition: Value
    then: Step
    otherwise: Step | None = None


@frozen
class While(Step):
    """Repeats the body while the condition holds.

    ``origin`` says in the words of the expression what the loop visits; it is printed beside the loop, and has no effect.
    """

    condition: Value
    body: Step
    origin: str = field(default="", compare=False)


@frozen
class For(Step):
    """``for variable in low .. high``, half open; the step is 1 but in loops whose passes do several
    iterations at once (``passes.vectorize``, ``passes.batches``).

    ``private`` runs once in every thread that takes part in a parallel loop before its first iteration (declarations and allocations
    of what is private to the thread), ``finish`` after its last (merging, freeing); likewise in a block, warp or thread of a GPU to which
    iterations are dealt. Both are empty for other tags. ``origin`` is as in ``While``.
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
    """Ask for the cache lines of ``array[index .. index + count]``, which may lie past the end.

    Loads inside ``index`` are made, so they must be in range.

    Attributes:
        cache: the innermost level of cache that they are brought to, 1 or 2.
    """

    array: str
    index: Value
    count: int = 1
    cache: int = 1
