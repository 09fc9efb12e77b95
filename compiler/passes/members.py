"""Turns GPU kernels, written as what a block or warp does, into what each of its threads does.

Around and inside loops over blocks and warps, all threads of the block or warp compute the same scalars, each for itself. One thread stores
the elements that all of them use (``Once``); all wait before and after (``Barrier``), so that they see them. A scalar to which a dealt
loop adds is a separate sum in every thread (or warp) until the loop ends; then all threads get the total (``Combine``). Register arrays
that a dealt loop uses become shared arrays of the block or warp.

Senanayake et al., section 5.5, resolve races by atomics and parallel reductions. As in their GPU back end, the reductions are warp
shuffles, here in the runtime (csrc/st_cuda.h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..errors import ScheduleError
from ..ir.intrinsics import INTRINSICS
from ..ir.nodes import (
    I64,
    Allocate,
    Call,
    Combine,
    Const,
    Dealt,
    Declare,
    Fill,
    For,
    Function,
    Group,
    If,
    Kernel,
    Node,
    Once,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Var,
    While,
)
from ..ir.rewrite import as_steps, block, nodes_of, transform, walk
from .barriers import named_arrays, with_barriers
from .block_sizes import MOST_THREADS, WARP
from .combined import identity, renamed, updated_scalars, zero
from .manager import Setting
from .shared_out import shared_out

OF_WHOLE_WARPS = frozenset(("sort", "sort_range", "table_keys", "table_count"))
TOGETHER = OF_WHOLE_WARPS | {"scan"}
"""Functions that all threads of a block or warp call together, with the same arguments; they contain the barriers that they need. Some need
all lanes of a hardware warp."""

ALIKE = ("table_insert",)
"""Functions that all threads of a block or warp may call with the same arguments, and of which all get the same: a key has one slot."""

OWN_BYTES = 48 * 1024
"""The most bytes of static shared memory of a kernel; kernels that need more are launched with dynamic shared memory."""


def deal_to_members(function: Function, setting: Setting) -> Function:
    """Return a function whose kernels say what every thread does.

    Raises:
        ScheduleError: several threads would have to update something that only one thread can, such as a list.
    """
    fresh = setting.fresh

    def change(node: Node) -> Node:
        if not isinstance(node, Kernel) or node.threads == 1:
            return node
        made = replace(node, body=_Member("grid", fresh).of(as_steps(node.body)))
        _check_lanes(made)
        return replace(made, shared=_launched_with(made, setting.unit.shared_bytes))

    return replace(function, body=transform(function.body, change))


def _launched_with(kernel: Kernel, most: int) -> int:
    """Return the bytes of dynamic shared memory for the arrays of a kernel's blocks and warps; 0 if they can be static.

    Args:
        most: the most shared memory of a block, in bytes.

    Raises:
        ScheduleError: these arrays need more.
    """
    arrays, sums = sum(map(kernel.shared_bytes_of, nodes_of(kernel.body, Allocate))), _bytes_of_sums(kernel)
    if arrays + sums > most:
        raise ScheduleError(
            f"on a GPU of this architecture the threads of a block share {most - sums} bytes, and the workspaces take {arrays}; split them"
        )
    return arrays if arrays + sums > OWN_BYTES else 0


def _bytes_of_sums(kernel: Kernel) -> int:
    """Return the bytes of shared memory that functions of a whole block need themselves (csrc/st_cuda_members.h, st_cuda_tables.h)."""
    sums = {(node.op, node.type, node.unit) for node in nodes_of(kernel.body, Combine) if node.within == "block"}
    counts = {node.function for node in nodes_of(kernel.body, Call, Run) if node.function in _COUNTS_OF_WARPS}
    members = {"warp": MOST_THREADS // kernel.lanes, "thread": MOST_THREADS // WARP}
    return sum(members[unit] * kind.bytes for _, kind, unit in sums) + len(counts) * members["thread"] * I64.bytes


_COUNTS_OF_WARPS = ("table_keys_of_block", "table_count_of_block", "scan_of_block")


def _check_lanes(kernel: Kernel) -> None:
    """Refuse functions that need all lanes of a hardware warp, if warps have fewer."""
    for node in nodes_of(kernel.body, Call, Run):
        if kernel.lanes != WARP and node.function.removesuffix("_of_warp") in OF_WHOLE_WARPS:
            raise ScheduleError(f"on a GPU a workspace of keys is of warps of {WARP} lanes, not of {kernel.lanes}")


def done_by_all(function: Function) -> str | None:
    """Return a fault: an array that all threads of a block or warp share and that all of them store to; None if there is none."""

    def visit(node: Node, group: str, own: frozenset[str]) -> str | None:
        match node:
            case For(tag=Dealt(unit=unit)):
                group = unit
            case Once():
                return None
            case Steps(statements):
                own |= {step.array for step in statements if isinstance(step, Allocate) and step.storage == "registers"}
            case Store(array) if group in ("block", "warp") and array not in own:
                return f"all threads of a {group} store to {array}"
        return next((found for child in node.children if (found := visit(child, group, own)) is not None), None)

    found = (visit(node.body, "grid", frozenset()) for node in nodes_of(function.body, Kernel) if node.threads > 1)
    return next((each for each in found if each is not None), None)


@dataclass
class _Member:
    """Turns the statements of a group (the grid, a block or a warp) into those of its members."""

    group: Group
    fresh: Callable[[str], str]
    own: frozenset[str] = field(default=frozenset())
    """Register arrays that every thread has for itself."""

    def of(self, steps: Steps) -> Steps:
        """Return the statements of one thread of a member, with barriers."""
        made = self.steps(steps)
        return made if self.group == "grid" else with_barriers(made, self.group, self.own)

    def steps(self, steps: Steps) -> Steps:
        seen = _dealt_arrays(steps)
        made: list[Step] = []
        for step in steps.statements:
            if isinstance(step, Allocate) and step.storage == "registers":
                if step.array in seen and self.group != "grid":
                    step = replace(step, storage=self.group, zero=False)
                    made.append(step)
                    made += [self.filled(Fill(step.array, ZERO, step.length, zero(step.type)))] if _zeroed(steps, step.array) else []
                    continue
                self.own |= {step.array}
            made.append(self.step(step))
        return block(made)

    def step(self, step: Step) -> Step:
        match step:
            case Steps():
                return self.steps(step)
            case For(tag=Dealt()):
                return self.dealt(step)
            case For():
                shared = None if self.group == "grid" else shared_out(step, self.group, self.own)
                return shared or replace(step, body=self.step(step.body))
            case While(condition, body):
                return replace(step, body=self.step(body))
            case If(condition, then, otherwise):
                return If(condition, self.step(then), None if otherwise is None else self.step(otherwise))
            case _ if self.group == "grid":
                return step
            case Store(array) if array not in self.own:
                return Once(self.group, step)
            case Fill(array) if array not in self.own:
                return self.filled(step)
            case Run(function, arguments) if function in TOGETHER:
                return Run(f"{function}_of_{self.group}", arguments)
            case SetVar(_, Call(function) as call) if function in TOGETHER:
                return replace(step, value=replace(call, function=f"{function}_of_{self.group}"))
            case Run():
                return Once(self.group, step)
            case _:
                _refuse_updates(step, self.group)
                return step

    def filled(self, fill: Fill) -> Step:
        place = Var(self.fresh("place"), I64)
        return For(place, fill.low, fill.high, Store(fill.array, place, fill.value), Dealt("thread", self.group))

    def dealt(self, loop: For) -> Step:
        """Return a dealt loop, and after it the combination of the members' sums."""
        tag = loop.tag
        assert isinstance(tag, Dealt)
        body = as_steps(loop.body)
        if tag.unit != "thread":
            body = _Member(tag.unit, self.fresh, self.own).of(body)
        sums = updated_scalars(body, loop.variable)
        if sums and tag.within == "grid":
            raise ScheduleError(
                f"the loop over {loop.variable.name} goes to all {tag.unit}s of the GPU, and adds to {next(iter(sums))}, which"
                " stands outside of it; put the workspace inside, or use atomics"
            )
        before: list[Step] = []
        after: list[Step] = []
        for name, (variable, op) in sums.items():
            own = Var(self.fresh(f"{name}_own"), variable.type)
            before.append(Declare(own, identity(op, variable.type)))
            body = renamed(body, variable, own, op)
            after.append(SetVar(variable, Combine(op, own, tag.unit, tag.within, variable.type), op))
        return Steps((*before, replace(loop, body=body), *after)) if sums else replace(loop, body=body)


ZERO = Const(0, I64)


def _zeroed(steps: Steps, array: str) -> bool:
    return any(isinstance(step, Allocate) and step.array == array and step.zero for step in steps.statements)


def _dealt_arrays(node: Node) -> set[str]:
    """Return the arrays that dealt loops use."""
    loops = (inner for inner in nodes_of(node, For) if isinstance(inner.tag, Dealt))
    return {array for loop in loops for inner in walk(loop) for array in named_arrays(inner)}


def _refuse_updates(step: Step, group: str) -> None:
    for node in walk(step):
        if isinstance(node, Call) and INTRINSICS[node.function].updates and node.function not in ALIKE:
            raise ScheduleError(
                f"on a GPU a workspace that keeps its entries is filled by one thread, and here a {group} fills it; deal the loop"
                " around it out to gpu_thread"
            )
