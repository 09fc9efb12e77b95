"""Inserts barriers around writes of threads of a block or warp to arrays that other threads of it use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir.arithmetic import ZERO
from ..ir.nodes import (
    Allocate,
    ArrayRef,
    Barrier,
    Binary,
    Dealt,
    Declare,
    Fill,
    For,
    Group,
    If,
    Load,
    Node,
    Once,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, mentions, nodes_of, walk, written_arrays


def named_arrays(node: Node) -> Iterator[str]:
    """Yield the array that a node reads, writes or passes on, if there is one."""
    match node:
        case Load(array) | Store(array) | Fill(array) | ArrayRef(array):
            yield array


def with_barriers(steps: Steps, group: Group, own: frozenset[str]) -> Steps:
    """Put barriers around steps that write an array which other steps of the block or warp use."""
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
                return replace(step, body=_without_repeats(as_steps(visit(step.body))))
            case If(condition, then, otherwise):
                return If(condition, visit(then), None if otherwise is None else visit(otherwise))
        return step

    return _without_repeats(as_steps(visit(steps)))


def _moving(step: Step, moved: frozenset[str] | None) -> set[str]:
    """Return the arrays that a dealt loop writes repeatedly, and whose elements different threads write.

    Args:
        moved: the variables that loops around change; None if there is no loop around.
    """
    match step:
        case For(tag=Dealt()):
            return set() if moved is None else {array for array in written_arrays(step) if not _stays(step, array, moved)}
        case For() | While():
            own = {node.variable.name for node in nodes_of(step, Declare, SetVar, For)}
            return _moving(step.body, (moved or frozenset()) | own)
    return {array for child in step.children if isinstance(child, Step) for array in _moving(child, moved)}


def _stays(loop: For, array: str, moved: frozenset[str]) -> bool:
    """Return whether each thread uses the same elements of an array, those of its own iterations, whenever a dealt loop runs."""
    dealt = [node for node in nodes_of(loop, For) if isinstance(node.tag, Dealt)]
    counters = {node.variable.name for node in dealt}
    changing = (moved | {node.variable.name for node in nodes_of(loop, Declare, SetVar, For)}) - counters
    uses = [node for node in nodes_of(loop, Load, Store) if node.array == array]
    if any(node.array == array for node in nodes_of(loop, Fill, ArrayRef)) or len({node.index for node in uses}) != 1:
        return False
    if len(dealt) == 1 and _has_column(uses[0].index, loop, changing):
        return True
    begins = [node.low for node in dealt] + [uses[0].index]
    return not any(mentions(value, changing) or nodes_of(value, Load) for value in begins)


def _has_column(index: Value, loop: For, changing: frozenset[str]) -> bool:
    """Return whether an index is in rows as long as a loop, at the loop's counter: a column is one thread's then, whatever the row."""
    match index:
        case Binary("+", Binary("*", _, length), Var(name)):
            return name == loop.variable.name and loop.low == ZERO and loop.high == length and not mentions(length, changing)
    return False


def _atoms(step: Step) -> Iterator[Node]:
    """Yield the units between barriers: dealt loops, steps that are done once, and the expressions of other steps."""
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
    return {array for inner in walk(node) for array in named_arrays(inner)}


def _by_one_alone(steps: Steps) -> set[str]:
    """Return the arrays that only one thread uses."""
    others = {array for atom in _atoms(steps) if not isinstance(atom, Once) for array in _touches(atom)}
    return {array for atom in _atoms(steps) for array in _touches(atom)} - others


def _atomically(steps: Steps) -> set[str]:
    """Return the arrays that are only updated atomically."""
    stores = nodes_of(steps, Store)
    plain = {store.array for store in stores if not store.atomic}
    read = {array for node in walk(steps) if isinstance(node, Load | Fill | ArrayRef) for array in named_arrays(node)}
    return {store.array for store in stores} - plain - read


def _without_repeats(steps: Steps) -> Steps:
    """Leave out a barrier directly after another one."""
    made: list[Step] = []
    for step in steps.statements:
        inner = _without_repeats(step) if isinstance(step, Steps) else step
        for part in inner.statements if isinstance(inner, Steps) and _bare(inner) else (inner,):
            if not (isinstance(part, Barrier) and made and made[-1] == part):
                made.append(part)
    return Steps(tuple(made))


def _bare(steps: Steps) -> bool:
    return any(isinstance(step, Barrier) for step in steps.statements)
