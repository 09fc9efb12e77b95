"""Separates the segments that are entirely in a tile of positions from the two that its ends may cut.

A tile [low, high) of the positions of a level runs through the segments ``first .. past`` that contain them, found by one binary
search, and clips each: ``for p in max(pos[i], low) .. min(pos[i + 1], high)``. Since segments are consecutive, only the first
and the last can be cut. The loop over all others is a copy that neither clips nor tests whether another tile has a part of the
segment: guards are hoisted out of loops (Senanayake et al., section 5.4). The same is true for several levels: the segments below
one that is not cut are not cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..ir.nodes import (
    BOOL,
    I64,
    Allocate,
    Binary,
    Call,
    Cast,
    Const,
    Declare,
    For,
    Function,
    Load,
    Node,
    Parallel,
    Step,
    Steps,
    Value,
    Var,
)
from ..ir.rewrite import as_steps, nodes_of, transform
from .manager import Setting
from .tiles import Level, segments_between

LONGEST_BODY = 600
"""The most nodes of a loop's body that is copied."""

SHORT_TILE = 256
"""The least positions of a tile for which separating its segments pays."""

Declared = Mapping[str, Value]


def separate_whole_segments(function: Function, setting: Setting) -> Function:
    """Return a kernel in which a loop over the segments of a tile is split in three: the first segment, those inside, the last one."""
    if not any(node.function == "upper_bound" for node in nodes_of(function.body, Call)):
        return function
    fresh = setting.fresh

    def visit(statement: Step, declared: dict[str, Value]) -> Step:
        if isinstance(statement, For) and (made := _separated(statement, declared, fresh)) is not None:
            return made
        inside = declared if isinstance(statement, Steps) else dict(declared)
        children = []
        for child in statement.children:
            children.append(visit(child, inside) if isinstance(child, Step) else child)
            if isinstance(child, Declare):
                inside[child.variable.name] = child.value
        return statement.rebuild(tuple(children)) if children else statement  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, {})))


def _separated(loop: For, declared: Declared, fresh: Callable[[str], str]) -> Step | None:
    """Return the three loops; None if a loop is not over the segments of a tile, or splitting it does not pay."""
    clips = _clips(loop, declared)
    if not clips or _is_short(clips[-1], declared) or not _may_be_copied(loop.body):
        return None
    whole = _whole(loop.body, loop.variable, clips)
    if whole == loop.body:
        return None
    first, past = Var(fresh(f"{loop.variable.name}_whole"), I64), Var(fresh(f"{loop.variable.name}_cut"), I64)
    one = Const(1, I64)
    return Steps((
        Declare(first, Binary("min", Binary("+", loop.low, one, I64), loop.high, I64)),
        Declare(past, Binary("max", Binary("-", loop.high, one, I64), first, I64)),
        replace(loop, high=first),
        replace(loop, low=first, high=past, body=whole),
        replace(loop, low=past),
    ))  # fmt: skip


def _clips(loop: For, declared: Declared) -> list[Level]:
    """Return how a loop over the segments of a tile clips them, level by level downwards; empty for other loops."""
    clips: list[Level] = []
    ends = loop.low, loop.high
    while loop.tag is None and loop.step == 1:
        match ends:
            case Var(first), Var(past):
                begin, end = declared.get(first), declared.get(past)
            case _:
                return clips
        level = segments_between(begin, end)
        if level is None:
            return clips
        clips.append(level)
        ends = level.low, level.high
    return clips


def _is_short(clip: Level, declared: Declared) -> bool:
    """Return whether a tile is known to be short: ``high`` is ``low`` plus a small constant, or at most that."""
    match declared.get(clip.high.name):
        case Binary("+", _, Const(size)) | Binary("min", Binary("+", _, Const(size)), _) | Binary("min", _, Binary("+", _, Const(size))):
            return size < SHORT_TILE
    return False


def _may_be_copied(body: Step) -> bool:
    return body.size <= LONGEST_BODY and not any(
        node.storage != "registers" if isinstance(node, Allocate) else isinstance(node.tag, Parallel)
        for node in nodes_of(body, Allocate, For)
    )


def _whole(body: Step, parent: Var, clips: list[Level]) -> Step:
    """Return the body for a segment that is not cut, without the clips of its own level and of those below."""
    clip, *below = clips
    begins: dict[str, Value] = {}
    lowest = clips[-1]

    def unclipped(node: Node) -> Node:
        match node:
            case Binary("max", begin, limit) if limit == clip.low and is_place(begin, clip.pos, parent, 0):
                return begin
            case Binary("min", end, limit) if limit == clip.high and is_place(end, clip.pos, parent, 1):
                return end
            case Declare(variable, value) if is_place(value, clip.pos, parent, 0) or is_place(value, clip.pos, parent, 1):
                begins[variable.name] = value
            case Binary("<=", limit, begin) if limit == lowest.low and _is_place_below(begin, clips, parent, 0):
                return Const(True, BOOL)  # the condition that the segment belongs to the tile alone
            case Binary("<=", end, limit) if limit == lowest.high and _is_place_below(end, clips, parent, 1):
                return Const(True, BOOL)
        return node

    made = transform(body, unclipped)
    if not below:
        return made

    def deeper(node: Node) -> Node:
        if isinstance(node, For) and node.step == 1 and is_place(_value(node.low, begins), clip.pos, parent, 0):
            return replace(node, body=_whole(node.body, node.variable, below))
        return node

    return transform(made, deeper)


def _value(expr: Value, declared: Declared) -> Value:
    return declared.get(expr.name, expr) if isinstance(expr, Var) else expr


def is_place(expr: Value, pos: str, parent: Var, offset: int) -> bool:
    """Return whether an expression is ``pos[parent + offset]``."""
    match expr.operand if isinstance(expr, Cast) else expr:
        case Load(array, Var() as index) if array == pos:
            return index == parent and offset == 0
        case Load(array, Binary("+", Var() as index, Const(1))) if array == pos:
            return index == parent and offset == 1
    return False


def _is_place_below(expr: Value, clips: list[Level], parent: Var, offset: int) -> bool:
    """Return whether an expression is the position in the lowest of some levels at which the segment of ``parent + offset`` begins."""
    for clip in reversed(clips[1:]):
        match expr.operand if isinstance(expr, Cast) else expr:
            case Load(array, index) if array == clip.pos:
                expr = index
            case _:
                return False
    return is_place(expr, clips[0].pos, parent, offset)


def is_in_row(index: Value, row: Var, along: Mapping[str, Value]) -> bool:
    """Return whether an element belongs to the row of an index and to no other: the index itself, or a place among all elements of its row.

    Args:
        index: of the element.
        row: the index of the row.
        along: the loops from zero inside, by their variables, with their ends.
    """
    while index != row:
        match index:
            case Binary("+", Binary("*", around, width, _), Var(name), _) if along.get(name) == width:
                index = around
            case _:
                return False
    return True
