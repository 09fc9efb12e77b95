"""Stores 16 bytes at once if a GPU thread writes neighbouring elements of a result.

``for k in 0 .. 2: Y[i * 128 + 2 * t + k] = w[k]`` writes two neighbouring elements, the first at a multiple of two. They are
collected in registers and stored by one instruction after the loop; ``wide_loads`` checks their index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..ir.arithmetic import integer, subtract
from ..ir.nodes import Allocate, ArrayRef, Declare, For, Function, Kernel, Load, Node, Run, SetVar, Step, Steps, Store, Type, Value
from ..ir.rewrite import as_steps, nodes_of, transform
from .declared import NOTHING, changing, declared_inside
from .manager import Setting
from .wide_loads import place_of_first, whole_iterations


def store_widely(function: Function, setting: Setting) -> Function:
    """Return a function whose threads store neighbouring elements together if possible."""
    written = {parameter.name: parameter.type for parameter in function.arrays if parameter.writable}
    changed = changing(function)
    fresh = setting.fresh

    def visit(step: Step, declared: Mapping[str, Value], within: bool) -> Step:
        declared, within = declared_inside(step, declared, changed), within or isinstance(step, Kernel)
        if isinstance(step, For) and within and (found := _widened(step, written, declared, fresh)) is not None:
            return found
        children = tuple(visit(child, declared, within) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, NOTHING, False)))


def _widened(loop: For, written: Mapping[str, Type], declared: Mapping[str, Value], fresh: Callable[[str], str]) -> Step | None:
    """Return a loop that collects what it stores, and the wide stores after it; None if it stores nothing like this."""
    count = whole_iterations(loop, declared)
    if count is None:
        return None
    own = {node.variable.name for node in nodes_of(loop.body, Declare, SetVar)}
    used = Counter(node.array for node in nodes_of(loop.body, Load, Store))
    behind: list[Step] = []
    rows: dict[Store, Store] = {}
    for store in nodes_of(loop.body, Store):
        kind = written.get(store.array)
        if kind is None or used[store.array] > 1 or store.op or store.atomic or store.carry is not None:
            continue
        begin = place_of_first(store.index, loop, kind, count, own, declared)
        if begin is None:
            continue
        row = fresh(f"{store.array}_row")
        rows[store] = replace(store, array=row, index=subtract(loop.variable, loop.low))
        behind.append(Run("store_wide", (ArrayRef(store.array, kind), begin, ArrayRef(row, kind), integer(count))))
    if not rows:
        return None

    def change(node: Node) -> Node:
        return rows.get(node, node) if isinstance(node, Store) else node

    before = (Allocate(row.array, written[store.array], integer(count), "registers") for store, row in rows.items())
    return Steps((*before, replace(loop, body=transform(loop.body, change)), *behind))
