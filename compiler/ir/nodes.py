"""The loop IR: what a kernel does, statement by statement, before a target prints it.

Typed scalars and flat arrays, loops with a tag, searches and sorts as calls of named intrinsics. Names are the final names
of the generated code. Everything is immutable; ``children`` and ``rebuild`` let passes treat nodes generically.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field, fields
from functools import cache
from operator import is_
from typing import ClassVar
from typing import Literal as OneOf

from ..frozen import frozen
from ..kept import Kept


@frozen
class Type:
    """A scalar type, by the letter of its kind and its width in bits: i8 ... i64, u8 ... u64, f32, f64, bool.

    Two types are opaque (see ``ir.intrinsics``): ``map``, a hash map from 64-bit keys to ordinals, and ``parts``, numbered places for
    arrays that threads leave behind. A vector of scalars has its lanes behind an x, ``f64x8``; only the pass ``passes.vectorize`` makes
    them.
    """

    name: str

    @Kept
    def is_float(self) -> bool:
        return self.name.startswith("f")

    @Kept
    def lanes(self) -> int:
        """How many scalars a value holds: 1, or the lanes of a vector."""
        return int(self.name.partition("x")[2] or 1)

    @Kept
    def element(self) -> Type:
        """The scalar type of one lane."""
        return Type(self.name.partition("x")[0])

    def vector(self, lanes: int) -> Type:
        """The vector of ``lanes`` scalars of this type; the scalar type itself for one lane."""
        return Type(f"{self.element.name}x{lanes}") if lanes > 1 else self.element

    @Kept
    def bytes(self) -> int:
        """The size of a value in memory."""
        return self.lanes * (1 if self.element.name == "bool" else int(self.element.name[1:]) // 8)


U16, I32, I64, F32, F64, BOOL, MAP, PARTS = (Type(name) for name in ("u16", "i32", "i64", "f32", "f64", "bool", "map", "parts"))
OPAQUE = (MAP, PARTS)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(kind))


@cache
def _fields_of_nodes(kind: type) -> tuple[str, ...]:
    """Return the fields of a class that may hold nodes: those in whose annotations one is named."""
    return tuple(entry.name for entry in fields(kind) if any(map(_is_node, re.findall(r"\w+", str(entry.type)))))


@cache
def _is_node(name: str) -> bool:
    found = globals().get(name)
    return isinstance(found, type) and issubclass(found, Node)


class Node:
    """Base of expressions and statements; children are the fields that are nodes or tuples of nodes."""

    @Kept
    def children(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for name in _fields_of_nodes(type(self)):
            value = getattr(self, name)
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(item for item in value if isinstance(item, Node))
        return tuple(found)

    @Kept
    def below(self) -> tuple[Node, ...]:
        """Everything below the node, parents first, in written order."""
        found: list[Node] = []
        for child in self.children:
            found.append(child)
            found.extend(child.below)
        return tuple(found)

    @Kept
    def kinds(self) -> frozenset[type[Node]]:
        """The classes of the node and of everything below it."""
        return frozenset((type(self),)).union(*(child.kinds for child in self.children))

    @Kept
    def variables(self) -> frozenset[str]:
        """The names of all variables in the node, those that it declares included."""
        return frozenset(node.name for node in (self, *self.below) if isinstance(node, Var))

    @Kept
    def declared(self) -> frozenset[str]:
        """The names of the variables that statements in the node declare or count with."""
        own = (self.variable.name,) if isinstance(self, Declare | For) else ()
        return frozenset(own).union(*(child.declared for child in self.children))

    @Kept
    def assigned(self) -> frozenset[str]:
        """The names of the variables that statements in the node assign."""
        own = (self.variable.name,) if isinstance(self, SetVar) else ()
        return frozenset(own).union(*(child.assigned for child in self.children))

    settled: ClassVar[Callable[[Node], Node] | None] = None
    """The change that is known to leave the node as it is (``rewrite.settle``)."""

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in _field_names(type(self))}

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """Return the same node over other children, given in the order of ``children``; itself over its own."""
        if len(children) == len(self.children) and all(map(is_, children, self.children)):
            return self
        rest = iter(children)
        values: list[object] = []
        for name in _field_names(type(self)):
            value = getattr(self, name)
            if isinstance(value, Node):
                value = next(rest)
            elif isinstance(value, tuple) and value:
                value = tuple(next(rest) if isinstance(item, Node) else item for item in value)
            values.append(value)
        assert next(rest, None) is None
        return type(self)(*values)


# Expressions


class Value(Node):
    type: Type


@frozen
class Var(Value):
    name: str
    type: Type


@frozen
class Const(Value):
    """A constant of the node's type; floats may be inf, -inf or nan."""

    value: int | float | bool
    type: Type


@frozen
class Binary(Value):
    """``left op right``: + - * / % min max and or == != < <= > >=; integer / truncates; comparisons are bool."""

    op: str
    left: Value
    right: Value
    type: Type


@frozen
class Unary(Value):
    """``-operand`` or ``not operand``."""

    op: str
    operand: Value
    type: Type


@frozen
class Load(Value):
    """``array[index]``; an index that is a vector gathers elements from wherever its lanes say.

    ``first`` says how many lanes of a vector are read; the others are 0 then, and what would stand there is not touched.
    """

    array: str
    index: Value
    type: Type
    first: Value | None = None


@frozen
class Select(Value):
    condition: Value
    then: Value
    otherwise: Value
    type: Type


@frozen
class Cast(Value):
    operand: Value
    type: Type


@frozen
class ArrayRef(Value):
    """A whole array (or map, or parts) as an argument of an intrinsic."""

    array: str
    type: Type


@frozen
class Call(Value):
    """A pure or updating intrinsic that returns a value: searches, map look-ups, the number of a share."""

    function: str
    arguments: tuple[Value, ...]
    type: Type


Member = OneOf["block", "warp", "thread"]
Group = OneOf["grid", "block", "warp"]


@frozen
class Combine(Value):
    """What all members of a group get of the values that each has: their sum, product, minimum ... by ``op``, in one order always.

    ``unit`` is what the members are, ``within`` whose; threads of one member have the same value. Only ``passes.members`` makes it.
    """

    op: str
    value: Value
    unit: Member
    within: Group
    type: Type


# Statements


class Step(Node):
    pass


@frozen
class Steps(Step):
    statements: tuple[Step, ...]


@frozen
class Comment(Step):
    text: str


@frozen
class Declare(Step):
    """A local scalar with its first value."""

    variable: Var
    value: Value


@frozen
class SetVar(Step):
    """``variable = value``, or ``variable op= value`` where ``op`` is + * min max or and ..."""

    variable: Var
    value: Value
    op: str = ""


@frozen
class Carry(Node):
    """Where a thread keeps apart what it adds to the first place that it comes to, others having come there before it.

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
    ``carry``: on a GPU threads come to the places in order, each to places next to one another, and nothing needs to be atomic.
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
    condition: Value
    then: Step
    otherwise: Step | None = None


@frozen
class While(Step):
    """``origin`` says in the words of the expression what the loop visits; it is printed beside it and means nothing."""

    condition: Value
    body: Step
    origin: str = field(default="", compare=False)


@frozen
class Parallel:
    """Iterations are cut into chunks that threads claim, as many at most as the kernel's ``threads`` argument says.

    A chunk belongs to the share of the work that is its number modulo that argument, whichever thread runs it. With static chunks
    of no given size they are equal.
    """

    chunking: str | None = None  # static, dynamic, guided; ordered: threads always claim the next one
    chunk: int | None = None


SHARE_NUMBER = "share_number"
"""The intrinsic that gives the number of the share to which an iteration of the parallel loop around belongs."""


@frozen
class Vector:
    """Iterations go to vector lanes. Scalars declared outside and updated by an associative op inside are reductions.

    ``vectors`` is how many vectors a step takes, each with accumulators of its own; None: as many as suit. Where there are less
    than ``least`` iterations, they run one by one.
    """

    vectors: int | None = None
    least: int = 0


@frozen
class Simd:
    """The C compiler is told that it may run iterations in lanes; ``reductions`` are the scalars updated in all of them, by operator.

    Only the pass ``passes.offered`` makes it, of loops tagged ``Vector`` that have no vector form.
    """

    reductions: tuple[tuple[str, tuple[str, ...]], ...] = ()


@frozen
class Unroll:
    factor: int


@frozen
class Dealt:
    """Iterations are dealt out in turn to the blocks, warps or threads of a GPU: to all of them, or to those of one block or warp.

    What stands around the loop and inside a loop over blocks or warps is done once by each of them.
    """

    unit: Member
    within: Group = "grid"


@frozen
class For(Step):
    """``for variable in low .. high``, half open; the step is 1 except in what ``passes.vectorize`` makes.

    ``private`` runs once in every thread that takes part in a parallel loop before its first iteration (declarations and allocations
    of what is private to the thread), ``finish`` after its last (merging, freeing); likewise in a block, warp or thread of a GPU to which
    iterations are dealt. Both are empty for other tags. ``origin`` is as
    in While.
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


Storage = OneOf["heap", "registers", "block", "warp"]


@frozen
class Allocate(Step):
    """An array of ``length`` elements.

    heap: 64-byte aligned memory, released by ``Free``; when there is none the kernel releases what it holds and returns
    status 1. registers: ``length`` is a constant; a small local array whose elements live in (vector) registers where
    all its uses allow. block, warp: likewise of constant length, one array for all threads of the block or warp of a GPU.
    """

    array: str
    type: Type
    length: Value
    storage: Storage = "heap"
    zero: bool = False


@frozen
class Free(Step):
    array: str


@frozen
class Grow(Step):
    """Make room for at least ``needed`` elements in a heap array, geometrically; ``capacity`` is its i64 variable."""

    array: str
    type: Type
    capacity: Var
    needed: Value


@frozen
class Leave(Step):
    """Leave a heap array at a free place of ``parts``, with which it is released; the name holds nothing from then on."""

    array: str
    parts: ArrayRef
    place: Value


@frozen
class Take(Step):
    """Take the array, of elements of ``type``, that was left at a place of ``parts``: it is a heap array of this name from then on."""

    array: str
    type: Type
    parts: ArrayRef
    place: Value


@frozen
class Fill(Step):
    """``array[low .. high] = value``."""

    array: str
    low: Value
    high: Value
    value: Value


@frozen
class Run(Step):
    """An intrinsic called for its effect: sort, scan, map reset."""

    function: str
    arguments: tuple[Value, ...]


@frozen
class Prefetch(Step):
    """Ask for the cache lines of ``array[index .. index + count]``, which may lie past the end.

    Loads inside ``index`` are made, so they must be in range.
    """

    array: str
    index: Value
    count: int = 1


@frozen
class Publish(Step):
    """Hand an assembled heap array of ``length`` elements to the caller through an output parameter."""

    parameter: str
    array: str
    length: Value


# Kernels of a GPU; only the passes for it make these


@frozen
class Scratch:
    """An array of ``length`` elements on the heap for every block, warp or thread of a kernel."""

    array: str
    type: Type
    length: Value
    unit: Member
    zero: bool


@frozen
class Kernel(Step):
    """Runs on the GPU; what stands around it is host code, which waits for it and goes on with the scalars that it ``gives``.

    Attributes:
        blocks: how many there are at most; iterations are dealt out to as many as run.
        threads: of a block; a multiple of 32, or 1 where nothing is dealt out.
    """

    body: Step
    blocks: Value
    threads: int
    gives: tuple[Var, ...] = ()
    scratch: tuple[Scratch, ...] = ()


@frozen
class Once(Step):
    """Done by one thread of a block or warp for all of them."""

    unit: Group
    body: Step


@frozen
class Barrier(Step):
    """All threads of a block or warp wait for one another, and see what the others wrote before."""

    unit: Group


# Functions


PAST_CACHES = "past_caches"
"""What the source of the parameter says of a result: (tensor, "past_caches", 0) is 1 where its rows are to be written past the caches."""


@frozen
class ArrayParameter:
    """An array that the caller hands in (or, ``assembled``, receives).

    ``source`` says which: (tensor, "values") or (tensor, "pos" | "crd" | "base", level). ``operand`` tells apart several
    converted copies of one tensor: it is the key under which the caller keeps the operand.
    """

    name: str
    type: Type
    source: tuple[str, str] | tuple[str, str, int]
    writable: bool = False
    assembled: bool = False


@frozen
class SizeParameter:
    """An i64 scalar: ("index", i) is the extent of an index; (tensor, "length", level) the positions of a level;
    ("threads", "count") into how many shares work is cut; (tensor, "past_caches", 0) whether a result is to be written past the
    caches.
    """

    name: str
    source: tuple[str, str] | tuple[str, str, int]


@frozen
class Function:
    """A kernel: ``int32_t name(void **arrays, int64_t *sizes, int64_t threads)`` in C, parameters in slot order."""

    name: str
    arrays: tuple[ArrayParameter, ...]
    sizes: tuple[SizeParameter, ...]
    body: Steps
