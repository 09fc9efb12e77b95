"""Lets a GPU thread compute the constant part of addresses in rows once, in loops that go from row to row.

``for p: j = crd[p]; sum += vals[p] * X[j * 32 + k]`` reads the column ``k`` of all its rows. The address of ``X[j * 32 + k]`` is that of
``X[k]`` plus a product, for which one instruction is enough; from the begin of ``X`` it takes four, since compilers add ``j * 32`` and
``k`` first. So the load names the part of the index that is the same in all iterations (``load_from``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir.arithmetic import add
from ..ir.nodes import ArrayRef, Binary, Call, Const, Dealt, Declare, For, Function, Kernel, Load, Node, Run, SetVar, Step, Value, While
from ..ir.rewrite import as_steps, mentions, nodes_of, transform
from .manager import Setting
from .wide_loads import LONGEST

LEAST = 4
"""The least size in bytes of elements that are loaded like this."""


def address_in_rows(function: Function, setting: Setting) -> Function:
    """Return a function whose kernels name the constant part of the index in loads from rows."""
    constant = frozenset(found.name for found in function.arrays if not found.writable and found.type.bytes >= LEAST)

    def change(node: Node) -> Node:
        return replace(node, body=_visited(node.body, constant)) if isinstance(node, Kernel) else node

    return replace(function, body=as_steps(transform(function.body, change)))


def _visited(step: Step, constant: frozenset[str]) -> Step:
    """Return a rewritten step; inner loops are rewritten first."""
    children = tuple(_visited(child, constant) if isinstance(child, Step) else child for child in step.children)
    step = step.rebuild(children) if children else step  # type: ignore[assignment]  # statements stay statements
    if isinstance(step, While) or (isinstance(step, For) and not isinstance(step.tag, Dealt) and not _is_short(step)):
        return _told(step, constant, _varying(step))
    return step


def _is_short(loop: For) -> bool:
    """Return whether the compiler unrolls a loop, so that its indices are constants."""
    match loop.low, loop.high:
        case Const(low), Const(high):
            return int(high) - int(low) <= LONGEST
    return False


def _varying(loop: For | While) -> frozenset[str]:
    """Return the variables that differ between iterations; the number of a thread does not."""
    assigned = {node.variable.name for node in nodes_of(loop, SetVar)}
    found = assigned | {inner.variable.name for inner in nodes_of(loop, For) if not isinstance(inner.tag, Dealt)}
    for declared in nodes_of(loop, Declare):  # outer and earlier ones first
        if mentions(declared.value, found) or nodes_of(declared.value, Load, Call):
            found.add(declared.variable.name)
    return frozenset(found)


def _told(loop: For | While, constant: frozenset[str], varying: frozenset[str]) -> Step:
    def change(node: Node) -> Node:
        match node:
            case Load(array, place) if array in constant and (parts := _parts(place, varying)):
                return Call("load_from", (ArrayRef(array, node.type), *parts), node.type)
            case Run("load_wide", (row, array, place, count)) if isinstance(array, ArrayRef) and array.array in constant:
                parts = _parts(place, varying)
                return Run("load_wide_from", (row, array, *parts, count)) if parts else node
        return node

    return transform(loop, change)  # type: ignore[return-value]  # a loop stays one


def _parts(place: Value, varying: frozenset[str]) -> tuple[Value, Value] | None:
    """Return the constant and the varying part of an index; None unless both exist and the varying part contains a product (a row)."""
    terms = [*_terms(place)]
    still = [term for term in terms if not isinstance(term, Const) and not mentions(term, varying)]
    rest = [term for term in terms if term not in still]
    if not still or not any(isinstance(term, Binary) and term.op == "*" and mentions(term, varying) for term in rest):
        return None
    return _sum(still), _sum(rest)


def _terms(place: Value) -> Iterable[Value]:
    if isinstance(place, Binary) and place.op == "+":
        yield from _terms(place.left)
        yield from _terms(place.right)
    else:
        yield place


def _sum(terms: list[Value]) -> Value:
    found = terms[0]
    for term in terms[1:]:
        found = add(found, term)
    return found
