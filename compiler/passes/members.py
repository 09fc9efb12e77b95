"""Kernels of a GPU, from what a block or warp does once to what each of its threads does: what others see is done by one thread.

Around and inside loops over blocks and warps, all threads of the block or warp compute the same scalars, each for itself. Elements
that they all see are stored by one of them (``Once``), and so that the others see them, all wait before and after (``Barrier``).
A scalar to which a dealt loop adds is a sum of every thread (or warp) until the loop ends; then all get the sum of these (``Combine``).
Arrays in registers that a dealt loop touches become the block's or the warp's.

Senanayake et al., section 5.5, have races resolved by atomics and parallel reductions; Kjolstad's and their GPU back ends unroll the
latter into warp shuffles, as the runtime does here (csrc/st_cuda.h).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ..errors import ScheduleError
from ..ir.intrinsics import INTRINSICS
from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    ArrayRef,
    Barrier,
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
    Load,
    Node,
    Once,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Var,
    While,
)
from ..ir.rewrite import as_steps, block, mentions, nodes_of, substitute, transform, walk, written_arrays
from .manager import Setting
from .shared_out import shared_out

TOGETHER = frozenset(("sort", "sort_range", "table_keys"))
"""Functions that all threads of a block or warp call together, with barriers of their own and equal arguments."""

BLOCK_BYTES = 48 * 1024 - 1024
"""Bytes of a block's shared memory, without those that sums over a block take."""


def deal_to_members(function: Function, setting: Setting) -> Function:
    """Return a function whose kernels say what every thread does.

    Raises:
        ScheduleError: threads that work together would have to change one thing at a time, such as a list.
    """
    fresh = setting.names(function)

    def change(node: Node) -> Node:
        if not isinstance(node, Kernel) or node.threads == 1:
            return node
        made = replace(node, body=_Member("grid", fresh).of(as_steps(node.body)))
        _check_room(made)
        return made

    return replace(function, body=transform(function.body, change))


def _check_room(kernel: Kernel) -> None:
    """Refuse more memory of blocks than every GPU has."""
    needed = {"block": 0, "warp": 0}
    for node in walk(kernel.body):
        if isinstance(node, Allocate) and node.storage in needed and isinstance(node.length, Const):
            needed[node.storage] += int(node.length.value) * node.type.bytes
    whole = needed["block"] + needed["warp"] * kernel.threads // 32
    if whole > BLOCK_BYTES:
        raise ScheduleError(f"on a GPU a block has {BLOCK_BYTES} bytes that its threads share, and the workspaces take {whole}; split them")


def done_by_all(function: Function) -> str | None:
    """Return a fault: an array that all threads of a block or warp see and all store to; None if there is none."""

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
    """Statements that the members of a group do: of the grid (around everything), a block or a warp."""

    group: Group
    fresh: Callable[[str], str]
    own: frozenset[str] = field(default=frozenset())
    """Register arrays of which every thread has its own."""

    def of(self, steps: Steps) -> Steps:
        """Return what one thread does of the statements of a member, with barriers."""
        made = self.steps(steps)
        return made if self.group == "grid" else _with_barriers(made, self.group, self.own)

    def steps(self, steps: Steps) -> Steps:
        seen = _dealt_arrays(steps)
        made: list[Step] = []
        for step in steps.statements:
            if isinstance(step, Allocate) and step.storage == "registers":
                if step.array in seen and self.group != "grid":
                    step = replace(step, storage=self.group, zero=False)
                    made.append(step)
                    made += [self.filled(Fill(step.array, ZERO, step.length, _zero(step.type)))] if _zeroed(steps, step.array) else []
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
        """Return a dealt loop, with the sums of each member combined behind it."""
        tag = loop.tag
        assert isinstance(tag, Dealt)
        body = as_steps(loop.body)
        if tag.unit != "thread":
            body = _Member(tag.unit, self.fresh, self.own).of(body)
        sums = _assigned(body, loop.variable)
        if sums and tag.within == "grid":
            raise ScheduleError(
                f"the loop over {loop.variable.name} goes to all {tag.unit}s of the GPU, and adds to {next(iter(sums))}, which"
                " stands outside of it; put the workspace inside, or use atomics"
            )
        before: list[Step] = []
        after: list[Step] = []
        for name, (variable, op) in sums.items():
            own = Var(self.fresh(f"{name}_own"), variable.type)
            before.append(Declare(own, _identity(op, variable.type)))
            body = _renamed(body, variable, own, op)
            after.append(SetVar(variable, Combine(op, own, tag.unit, tag.within, variable.type), op))
        return Steps((*before, replace(loop, body=body), *after)) if sums else replace(loop, body=body)


ZERO = Const(0, I64)


def _zero(kind: Type) -> Const:
    return Const(False, BOOL) if kind == BOOL else Const(0.0 if kind.is_float else 0, kind)


def _zeroed(steps: Steps, array: str) -> bool:
    return any(isinstance(step, Allocate) and step.array == array and step.zero for step in steps.statements)


def _dealt_arrays(node: Node) -> set[str]:
    """Return the arrays that dealt loops touch."""
    loops = (inner for inner in nodes_of(node, For) if isinstance(inner.tag, Dealt))
    return {array for loop in loops for inner in walk(loop) for array in _arrays(inner)}


def _arrays(node: Node) -> Iterator[str]:
    match node:
        case Load(array) | Store(array) | Fill(array) | ArrayRef(array):
            yield array


def _refuse_updates(step: Step, group: str) -> None:
    for node in walk(step):
        if isinstance(node, Call) and INTRINSICS[node.function].updates:
            raise ScheduleError(
                f"on a GPU a workspace that keeps its entries is filled by one thread, and here a {group} fills it; deal the loop"
                " around it out to gpu_thread"
            )


def _assigned(body: Steps, counter: Var) -> dict[str, tuple[Var, str]]:
    """Return the scalars of outside that a loop's body updates, with the operator of all their updates."""
    own = {node.variable.name for node in nodes_of(body, Declare, For)} | {counter.name}
    found: dict[str, tuple[Var, str]] = {}
    for node in walk(body):
        if isinstance(node, SetVar) and node.variable.name not in own:
            op = _operator(node)
            if op is None or found.setdefault(node.variable.name, (node.variable, op))[1] != op:
                raise ScheduleError(
                    f"iterations that a GPU runs at once assign {node.variable.name}, which stands outside of them; put its loop inside"
                )
    return found


def _operator(update: SetVar) -> str | None:
    match update:
        case SetVar(_, Const(True, kind), "") if kind == BOOL:
            return "or"
        case SetVar(_, _, "-"):
            return "+"
        case SetVar(_, _, op) if op in ("+", "*", "min", "max", "and", "or"):
            return op
    return None


def _identity(op: str, kind: Type) -> Const:
    """Return the value that changes nothing."""
    if kind == BOOL:
        return Const(op == "and" or op == "*" or op == "min", BOOL)
    if op in ("+", "or"):
        return _zero(kind)
    if op in ("*", "and"):
        return Const(1.0 if kind.is_float else 1, kind)
    if kind.is_float:
        return Const(float("inf") if op == "min" else float("-inf"), kind)
    bits, signed = 8 * kind.bytes, kind.name.startswith("i")
    most, least = 2 ** (bits - signed) - 1, -(2 ** (bits - 1)) if signed else 0
    return Const(most if op == "min" else least, kind)


def _renamed(body: Steps, variable: Var, own: Var, op: str) -> Steps:
    """Return the body with another variable in place of one, which is only updated."""

    def change(node: Node) -> Node:
        if isinstance(node, SetVar) and node.variable.name == variable.name:
            return SetVar(own, node.value, node.op or op)
        return node

    changed = transform(body, change)
    if substitute(changed, {variable.name: own}) != changed:
        raise ScheduleError(f"iterations that a GPU runs at once read {variable.name}, to which they add")
    return changed


# Barriers


def _with_barriers(steps: Steps, group: Group, own: frozenset[str]) -> Steps:
    """Put barriers around what writes an array that something else of the member touches."""
    touched: dict[str, int] = {}
    for atom in _atoms(steps):
        for array in _touches(atom) - own:
            touched[array] = touched.get(array, 0) + 1
    written = {array for atom in _atoms(steps) for array in written_arrays(atom)}
    inside = {node.array for node in nodes_of(steps, Allocate) if node.storage == "registers"}
    several = {array for array in written if touched.get(array, 0) > 1} | _moving(steps, None)
    meeting = several - inside - _by_one_alone(steps) - _atomically(steps)
    if not meeting:
        return steps

    def visit(step: Step) -> Step:
        match step:
            case Steps(statements):
                return Steps(tuple(visit(inner) for inner in statements))
            case For(tag=Dealt()) | Once():
                return Steps((Barrier(group), step, Barrier(group))) if written_arrays(step) & meeting else step
            case For() | While():
                return replace(step, body=visit(step.body))
            case If(condition, then, otherwise):
                return If(condition, visit(then), None if otherwise is None else visit(otherwise))
        return step

    return _without_repeats(as_steps(visit(steps)))


def _moving(step: Step, moved: frozenset[str] | None) -> set[str]:
    """Return the arrays that a dealt loop writes again and again, whose elements do not stay with one thread.

    Args:
        moved: the variables that loops around change, None where there is none around.
    """
    match step:
        case For(tag=Dealt()):
            return set() if moved is None else {array for array in written_arrays(step) if not _stays(step, array, moved)}
        case For() | While():
            own = {node.variable.name for node in nodes_of(step, Declare, SetVar, For)}
            return _moving(step.body, (moved or frozenset()) | own)
    return {array for child in step.children if isinstance(child, Step) for array in _moving(child, moved)}


def _stays(loop: For, array: str, moved: frozenset[str]) -> bool:
    """Return whether a thread has the same elements of an array whenever a dealt loop runs: those of its own iterations."""
    dealt = [node for node in nodes_of(loop, For) if isinstance(node.tag, Dealt)]
    counters = {node.variable.name for node in dealt}
    changing = (moved | {node.variable.name for node in nodes_of(loop, Declare, SetVar, For)}) - counters
    uses = [node for node in nodes_of(loop, Load, Store) if node.array == array]
    if any(node.array == array for node in nodes_of(loop, Fill, ArrayRef)) or len({node.index for node in uses}) != 1:
        return False
    begins = [node.low for node in dealt] + [uses[0].index]
    return not any(mentions(value, changing) or nodes_of(value, Load) for value in begins)


def _atoms(step: Step) -> Iterator[Node]:
    """Yield what stands between barriers: dealt loops, what is done once, and the rest by the expressions in it."""
    match step:
        case Steps(statements):
            for inner in statements:
                yield from _atoms(inner)
        case For(tag=Dealt()) | Once():
            yield step
        case For() | While() | If():
            for child in step.children:
                if isinstance(child, Step):
                    yield from _atoms(child)
                else:
                    yield child
        case _:
            yield step


def _touches(node: Node) -> set[str]:
    return {array for inner in walk(node) for array in _arrays(inner)}


def _by_one_alone(steps: Steps) -> set[str]:
    """Return the arrays that only one thread touches."""
    others = {array for atom in _atoms(steps) if not isinstance(atom, Once) for array in _touches(atom)}
    return {array for atom in _atoms(steps) for array in _touches(atom)} - others


def _atomically(steps: Steps) -> set[str]:
    """Return the arrays that are only updated atomically."""
    stores = nodes_of(steps, Store)
    plain = {store.array for store in stores if not store.atomic}
    read = {array for node in walk(steps) if isinstance(node, Load | Fill | ArrayRef) for array in _arrays(node)}
    return {store.array for store in stores} - plain - read


def _without_repeats(steps: Steps) -> Steps:
    """Leave out a barrier that stands right behind another."""
    made: list[Step] = []
    for step in steps.statements:
        inner = _without_repeats(step) if isinstance(step, Steps) else step
        for part in inner.statements if isinstance(inner, Steps) and _bare(inner) else (inner,):
            if not (isinstance(part, Barrier) and made and made[-1] == part):
                made.append(part)
    return Steps(tuple(made))


def _bare(steps: Steps) -> bool:
    return any(isinstance(step, Barrier) for step in steps.statements)
