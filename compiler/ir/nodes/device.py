"""Nodes of kernels of a GPU; only the passes for it make these."""

from __future__ import annotations

from ...frozen import frozen
from .memory import Allocate
from .node import Step, Value
from .tags import Group, Member
from .types import Type
from .values import Const, Var

ALIGNED = 16
"""Arrays that threads share begin at multiples of so many bytes, as the widest loads and stores need."""


@frozen
class Combine(Value):
    """What all members of a group get of the values that each has: their sum, product, minimum ... by ``op``, in one order always.

    ``unit`` says what the members are, ``within`` what group they belong to; all threads of a member have the same value. Only
    ``passes.members`` makes it.
    """

    op: str
    value: Value
    unit: Member
    within: Group
    type: Type


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
        lanes: of a warp.
        shared: bytes for the arrays of its blocks and warps that it is launched with; 0: these are its own, as every GPU has as many.
        registers: of a thread at most; 0: as many as the compiler gives it.
    """

    body: Step
    blocks: Value
    threads: int
    gives: tuple[Var, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    lanes: int = 32
    shared: int = 0
    registers: int = 0

    def shared_bytes_of(self, made: Allocate) -> int:
        """Return the bytes of shared memory that an array takes of a block, up to where the next one may begin."""
        if made.storage not in ("block", "warp") or not isinstance(made.length, Const):
            return 0
        times = self.threads // self.lanes if made.storage == "warp" else 1
        return -(-int(made.length.value) * made.type.bytes * times // ALIGNED) * ALIGNED


@frozen
class Once(Step):
    """Done by one thread of a block or warp for all of them."""

    unit: Group
    body: Step


@frozen
class Barrier(Step):
    """All threads of a block or warp wait for one another, and see what the others wrote before."""

    unit: Group
