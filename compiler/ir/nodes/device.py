"""Nodes for kernels of a GPU. Only passes for GPUs make them."""

from __future__ import annotations

from ...frozen import frozen
from .memory import Allocate
from .node import Step, Value
from .tags import Group, Member
from .types import Type
from .values import Const, Var

ALIGNED = 16
"""Shared arrays begin at multiples of this many bytes, as the widest loads and stores need."""


@frozen
class Combine(Value):
    """The sum, product, minimum ... (``op``) of the values of all members of a group. Every member gets it; the order is always the same.

    ``unit`` says what the members are, ``within`` what the group is. All threads of a member have the same value. Only
    ``passes.members`` makes this node.
    """

    op: str
    value: Value
    unit: Member
    within: Group
    type: Type


@frozen
class Scratch:
    """An array in global memory with ``length`` elements for every block, warp or thread of a kernel."""

    array: str
    type: Type
    length: Value
    unit: Member
    zero: bool


@frozen
class Kernel(Step):
    """A kernel of the GPU. The statements around it are host code, which waits for it and goes on with the scalars that it ``gives``.

    Attributes:
        blocks: the most blocks that run; iterations are dealt out to those that do.
        threads: threads of a block: a multiple of 32, or 1 if nothing is dealt out to them.
        lanes: lanes of a warp.
        shared: bytes of dynamic shared memory for the arrays of blocks and warps; 0: the arrays are static, and fit on every GPU.
        registers: the most registers of a thread; 0: the compiler decides.
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
        """Return the bytes of a block's shared memory that an array takes, rounded up to where the next one may begin."""
        if made.storage not in ("block", "warp") or not isinstance(made.length, Const):
            return 0
        times = self.threads // self.lanes if made.storage == "warp" else 1
        return -(-int(made.length.value) * made.type.bytes * times // ALIGNED) * ALIGNED


@frozen
class Once(Step):
    """Statements that one thread of a block or warp runs for all of them."""

    unit: Group
    body: Step


@frozen
class Barrier(Step):
    """All threads of a block or warp wait for one another, and then see what the others wrote."""

    unit: Group
