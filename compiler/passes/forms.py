"""Decides which loops have a vector form, and how wide it may be.

A loop tagged ``Vector``, or an untagged one whose iterations are provably independent, has one if every part of it has one (``lanes``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..frozen import frozen
from ..ir.nodes import Declare, For, Parallel, SetVar, Step, Unroll, Value
from ..ir.rewrite import changes_by_call, mentions, nodes_of, remembered
from .lanes import NoVectors, Vectorizer, element_accesses
from .plan import chunks_of, make_plan

WRITTEN_OUT = 16
"""A loop of constant extent is written out completely up to this many vectors; a loop with inner loops, up to a quarter of it."""


@frozen
class VectorForm:
    """What the vector form of a loop needs.

    Attributes:
        displaced: arrays with an access at a place other than the loop variable.
        gathered: the bytes of the widest index by which elements are gathered; 0: none are.
    """

    displaced: frozenset[str]
    gathered: int


@remembered
def vector_form(loop: For, lanes: int) -> VectorForm | None:
    """Return what the vector form of a loop needs; None: it has no such form."""
    vectorizer = Vectorizer(make_plan(loop, lambda wish: wish), loop.variable, lanes, 0, 0)
    try:
        vectorizer.statement(loop.body)
    except NoVectors:
        return None
    return VectorForm(frozenset(vectorizer.displaced), vectorizer.gathered)


def gathered_bytes(loop: For, lanes: int) -> int | None:
    """Return the bytes of the widest index by which the vector form of a loop gathers, 0 for none; None: it has no such form."""
    form = vector_form(loop, lanes)
    return None if form is None else form.gathered


@remembered
def is_vectorizable(loop: For, lanes: int) -> bool:
    """Return whether a loop is to be cut into vectors."""
    if isinstance(loop.tag, Parallel | Unroll) or loop.step != 1:
        return False
    if loop.tag is None and not are_apart(loop):
        return False
    return vector_form(loop, lanes) is not None


def is_short(extent: int, most: int, lanes: int) -> bool:
    """Return whether iterations make at most ``most`` vectors."""
    return extent <= most * lanes and len(chunks_of(extent, lanes)) <= most


def are_apart(loop: For) -> bool:
    """Return whether an untagged loop may run its iterations at once: it has no reductions, and no two iterations use the same element.

    Every array that is written must be used at only one place, which does not depend on inner loops. The vector form also
    requires that this place follows the loop's variable.
    """
    if changes_by_call(loop.body) or not loop.body.assigned <= loop.body.declared:
        return False
    moving = {node.variable.name for inner in _outermost_loops(loop.body) for node in nodes_of(inner, Declare, SetVar, For)}
    accesses = list(element_accesses(loop.body))
    written = {array for array, _, stored in accesses if stored}
    places: dict[str, set[Value]] = {array: set() for array in written}
    for array, index, _ in accesses:
        if array in written:
            places[array].add(index)
    still = all(not mentions(index, moving) for array in written for index in places[array])
    return still and all(len(places[array]) == 1 for array in written)


def _outermost_loops(statement: Step) -> Iterator[For]:
    """Yield the loops of a statement that are not inside other loops."""
    if isinstance(statement, For):
        yield statement
        return
    for child in statement.children:
        if isinstance(child, Step):
            yield from _outermost_loops(child)
