"""Directives that change statements: the order of factors, and workspaces between a producer and a consumer.

``precompute`` and ``loopfuse`` differ in how the user names the part that is computed first; both use ``separation.separate``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.apart import covers
from ..concrete.identities import is_unit, without_identities
from ..concrete.nodes import Assign, Forall, Program, Stmt, Where, Workspace
from ..fresh import numbered
from ..notation.nodes import Expr, Mul
from ..notation.printer import show
from . import directives as d
from .addresses import Address, at, follow, frames, leaves, put, show_paths
from .context import Context, check_new, names_of
from .dependence import uses
from .factors import Occurrence, around, flatten, joined, matches, occurrences, product_factors
from .ranges import unknown_in_range
from .rules import Rule, refuse
from .separation import Leaf, leaf_at, reads_from, separate


def factors(program: Program, directive: d.Factors, context: Context) -> Program:
    """Write the factors of a product in another order."""
    start = follow(program.statement, directive.path or ())
    scope = at(program.statement, start)
    shorter = tuple(factor for factor in directive.order if not is_unit(factor, program.multiply))
    found = _products(scope, directive.order) or _products(scope, shorter)
    if not found:
        names = ", ".join(map(show, directive.order))
        refuse(Rule.FACTORS_COMPLETE, f"no product has exactly the factors {names}, each once")
    if len(found) > 1:
        where = show_paths(program.statement, ((*start, *address) for address, _, _ in found))
        refuse(Rule.NAMES_UNIQUE, f"{len(found)} products have these factors; say which by a path: {where}")
    address, leaf, value = found[0]
    return replace(program, statement=put(program.statement, (*start, *address), replace(leaf, value=value)))


def _products(scope: Stmt, order: tuple[Expr, ...]) -> list[tuple[Address, Assign, Expr]]:
    """Return the assignments of products with some factors, and their values with the factors in that order."""
    permuted = ((address, leaf, _permuted(leaf.value, order)) for address, leaf in leaves(scope))
    return [(address, leaf, value) for address, leaf, value in permuted if value is not None]


def _permuted(value: Expr, order: tuple[Expr, ...]) -> Expr | None:
    flat = flatten(value)
    pending = list(product_factors(flat))
    arranged = []
    for wanted in order:
        number = next((number for number, factor in enumerate(pending) if matches(factor, wanted)), None)
        if number is None:
            return None
        arranged.append(pending.pop(number))
    return joined(flat, arranged) if not pending else None


def precompute(program: Program, directive: d.Precompute, context: Context) -> Program:
    """Compute a part of an expression into a workspace, in a producer inside the loops that both sides need."""
    check_new((directive.workspace,), program)
    if len(directive.indices) != len(directive.producer_indices):
        refuse(Rule.PRECOMPUTE_INDICES, "the two lists of indices must be equally long")
    if len(set(directive.indices)) < len(directive.indices):
        refuse(Rule.PRECOMPUTE_INDICES, "an index of the workspace is listed twice")
    renamed = {old: new for old, new in zip(directive.indices, directive.producer_indices, strict=True) if old != new}
    check_new(tuple(renamed.values()), program)
    leaf = _find_part(program, directive)
    depth = _shared_depth(program, leaf, directive.indices)
    _check_listed(program, leaf, depth, directive.indices, renamed)
    _check_sizes(program, leaf, depth, directive.indices, context)
    return separate(program, leaf, depth, Workspace(directive.workspace, directive.indices), renamed)


def _find_part(program: Program, directive: d.Precompute) -> Leaf:
    start = follow(program.statement, directive.path or ())
    found: list[tuple[Address, Occurrence]] = []
    for wanted in (directive.expression, without_identities(directive.expression, program.add, program.multiply)):
        found = found or [
            ((*start, *address), occurrence)
            for address, leaf in leaves(at(program.statement, start))
            for occurrence in occurrences(flatten(leaf.value), wanted)
        ]
    if not found:
        what = show(directive.expression)
        refuse(Rule.PRECOMPUTE_FOUND, f"{what} is no part of an assignment here (factors of one product, or addends of one sum)")
    if len({address for address, _ in found}) > 1:
        where = show_paths(program.statement, (address for address, _ in found))
        refuse(Rule.NAMES_UNIQUE, f"{show(directive.expression)} occurs in several assignments; say which by a path: {where}")
    if len(found) > 1:
        refuse(Rule.NAMES_UNIQUE, f"{show(directive.expression)} occurs {len(found)} times in one assignment")
    return leaf_at(program, *found[0])


def _shared_depth(program: Program, leaf: Leaf, listed: tuple[str, ...]) -> int:
    """Return the length of the address at which the where goes: inside the deepest loop or where that both sides need.

    Both need a loop if it is not listed, the part depends on it, and so does the rest or the target. Both need a
    where around the assignment if both read its workspaces.
    """
    depth = leaf.top
    rest = around(leaf.assign.value, leaf.part)
    for place, frame in enumerate(frames(program.statement, leaf.address)):
        if place < leaf.top:
            continue
        if isinstance(frame, Forall):
            index = frame.index
            both = uses(leaf.part_needs, index, leaf.graph) and uses(leaf.rest_needs, index, leaf.graph)
            if both and not covers(listed, index, leaf.graph):
                depth = place + 1
        elif isinstance(frame, Where) and reads_from(leaf.part.part, frame) and reads_from(rest, frame):
            depth = place + 1
    return depth


def _check_listed(program: Program, leaf: Leaf, depth: int, listed: tuple[str, ...], renamed: Mapping[str, str]) -> None:
    around_where = [frame.index for frame in frames(program.statement, leaf.address)[:depth] if isinstance(frame, Forall)]
    inside = [frame.index for frame in frames(program.statement, leaf.address)[depth:] if isinstance(frame, Forall)]
    for index in listed:
        outer = [loop for loop in around_where if index in leaf.graph.ancestors(loop)]
        if outer:
            refuse(
                Rule.PRECOMPUTE_INDICES,
                f"loop {outer[0]} stands outside the where, which goes inside {around_where[-1]}; reorder it inwards, or leave {index} out",
            )
        if not any(index in leaf.graph.ancestors(loop) for loop in inside):
            loops = ", ".join(around_where + inside)
            refuse(Rule.PRECOMPUTE_INDICES, f"there is no loop {index} around the expression; the loops are {loops}")
        if not uses(leaf.part_needs, index, leaf.graph):
            refuse(Rule.PRECOMPUTE_INDICES, f"{show(leaf.part.part)} does not depend on {index}")
        if index in renamed and index not in inside:
            refuse(Rule.PRECOMPUTE_INDICES, f"{index} was replaced by other loops and cannot be renamed; list it twice under its own name")


def _check_sizes(program: Program, leaf: Leaf, depth: int, listed: tuple[str, ...], context: Context) -> None:
    outside = [frame.index for frame in frames(program.statement, leaf.address)[:depth] if isinstance(frame, Forall)]
    for index in listed:
        missing = unknown_in_range(index, outside, leaf.graph, context)
        if missing:
            refuse(Rule.PRECOMPUTE_INDICES, f"the range of {index} depends on {missing}, which is known only inside the where")


def loopfuse(program: Program, directive: d.Loopfuse, context: Context) -> Program:
    """Split a product after ``count`` factors; the outermost loops that both sides use stay shared (Dias et al., Algorithm 1)."""
    start = follow(program.statement, directive.path or ())
    address = start
    while isinstance(at(program.statement, address), Forall):
        address = (*address, 0)
    assign = at(program.statement, address)
    if not isinstance(assign, Assign):
        refuse(Rule.LOOPFUSE_PRODUCT, f"the loops at path {list(directive.path or ())} are split already; name a side by a longer path")
    value = flatten(assign.value)
    count = len(product_factors(value))
    if not isinstance(value, Mul) or not 0 < directive.count < count:
        refuse(Rule.LOOPFUSE_PRODUCT, f"{show(value)} has {count} factors and cannot be split after {directive.count}")
    left = tuple(range(directive.count))
    members = left if directive.producer_is_left else tuple(range(directive.count, count))
    part = Occurrence(joined(value, [value.operands[number] for number in members]), (), members)
    leaf = leaf_at(program, address, part, len(start))
    depth = _common_depth(program, leaf)
    inside = [frame.index for frame in frames(program.statement, address)[depth:] if isinstance(frame, Forall)]
    both = [loop for loop in inside if uses(leaf.part_needs, loop, leaf.graph) and uses(leaf.rest_needs, loop, leaf.graph)]
    _check_sizes(program, leaf, depth, tuple(both), context)
    return separate(program, leaf, depth, Workspace(numbered("t", names_of(program)), tuple(both)), {})


def _common_depth(program: Program, leaf: Leaf) -> int:
    """Return the depth below the outermost loops that both sides use, up to the first loop that one side does not use."""
    depth = leaf.top
    for frame in frames(program.statement, leaf.address)[leaf.top :]:
        if not isinstance(frame, Forall):
            break
        if not (uses(leaf.part_needs, frame.index, leaf.graph) and uses(leaf.rest_needs, frame.index, leaf.graph)):
            break
        depth += 1
    return depth
