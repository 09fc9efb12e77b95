"""Recognises results that are written row by row, so that stores to a large result can bypass the caches (``passes.streams``)."""

from __future__ import annotations

from ..ir.nodes import ArrayRef, Const, Fill, For, Load, Prefetch, Step, Store
from ..ir.rewrite import mentions, nodes_of, walk


def written_in_rows(body: Step, array: str) -> bool:
    """Return whether one statement, in a loop of constant extent, stores the elements of an array, and nothing else uses the array."""
    uses = [node for node in nodes_of(body, Load, Store, ArrayRef, Fill, Prefetch) if node.array == array]
    if len(uses) != 1 or not isinstance(uses[0], Store) or uses[0].op or uses[0].atomic:
        return False
    store = uses[0]
    loops = [node for node in nodes_of(body, For) if any(inner is store for inner in walk(node.body))]
    return any(isinstance(loop.high, Const) and mentions(store.index, {loop.variable.name}) for loop in loops)


def added_in_rows(body: Step, array: str) -> bool:
    """Return whether threads add rows to an array of zeros, each row in a loop of constant extent. ``passes.whole_rows`` may then turn
    most of these additions into stores."""
    stores = [node for node in nodes_of(body, Store) if node.array == array]
    updates = [store for store in stores if store.atomic and store.op == "+"]
    zeros = [store for store in stores if not store.op and isinstance(store.value, Const)]
    if len(updates) != 1 or len(stores) != len(zeros) + 1 or any(node.array == array for node in nodes_of(body, Load)):
        return False
    loops = [node for node in nodes_of(body, For) if any(inner is updates[0] for inner in walk(node.body))]
    return any(isinstance(loop.high, Const) and mentions(updates[0].index, {loop.variable.name}) for loop in loops)
