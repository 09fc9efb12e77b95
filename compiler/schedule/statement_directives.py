"""Directives that change statements: the order of factors, and workspaces between a producer and a consumer.

``precompute`` and ``loopfuse`` differ in how the user says what is computed first; both end in ``_separate``, which takes the
loops below a shared prefix apart into those that the producer needs and those that the consumer needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from ..concrete.apart import covers
from ..concrete.identities import is_unit, without_identities
from ..concrete.nodes import Assign, Forall, Program, Stmt, Where, Workspace, assignments, targets
from ..concrete.provenance import Provenance, Rename
from ..frozen import frozen
from ..notation.nodes import Access, Expr, Mul, index_subscript
from ..notation.printer import show
from . import directives as d
from .addresses import Address, at, follow, frames, leaves, put, show_paths
from .context import Context, check_new, names_of
from .dependence import graph_of, needs_of_expression, partly_used, uses
from .factors import Occurrence, around, distributes, flatten, joined, matches, occurrences, product_factors, replace_part
from .ranges import unknown_in_range
from .rules import Rule, refuse


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


@frozen
class _Leaf:
    """An assignment, a part of its value, and what stands around it.

    Attributes:
        address: of the assignment in the program.
        top: length of the address of the outermost statement that may be taken apart: what stands above fills another
            workspace or runs other statements too.
        producers: the statements that fill the workspaces in scope, of wheres in whose consumer the assignment stands.
    """

    address: Address
    assign: Assign
    part: Occurrence
    top: int
    producers: Mapping[str, Stmt]
    graph: Provenance

    @cached_property
    def part_needs(self) -> frozenset[str]:
        return needs_of_expression(self.part.part, self.producers, self.graph)

    @cached_property
    def rest_needs(self) -> frozenset[str]:
        rest = needs_of_expression(around(self.assign.value, self.part), self.producers, self.graph)
        return rest | frozenset(self.assign.target.indices)


def _leaf(program: Program, address: Address, part: Occurrence, lowest: int = 0) -> _Leaf:
    graph = graph_of(program.relations)
    assign = at(program.statement, address)
    assert isinstance(assign, Assign)
    assign = replace(assign, value=flatten(assign.value))
    top, producers = lowest, dict[str, Stmt]()
    for depth, frame in enumerate(frames(program.statement, address)):
        if isinstance(frame, Where) and address[depth] == 0:
            producers.update(dict.fromkeys(targets(frame.producer), frame.producer))
        elif not isinstance(frame, Forall):
            top = max(top, depth + 1)
    return _Leaf(address, assign, part, top, producers, graph)


def precompute(program: Program, directive: d.Precompute, context: Context) -> Program:
    """Compute a part of an expression into a workspace, in a producer placed inside the loops that both sides need."""
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
    return _separate(program, leaf, depth, Workspace(directive.workspace, directive.indices), renamed)


def _find_part(program: Program, directive: d.Precompute) -> _Leaf:
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
    return _leaf(program, *found[0])


def _shared_depth(program: Program, leaf: _Leaf, listed: tuple[str, ...]) -> int:
    """Return the length of the address at which the where goes: inside the deepest loop or where that both sides need.

    A loop is needed by both if the part depends on it, it is not listed, and the rest or the target depends on it too; a
    where around the assignment, if both read its workspaces.
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
        elif isinstance(frame, Where) and _reads(leaf.part.part, frame) and _reads(rest, frame):
            depth = place + 1
    return depth


def _reads(expr: Expr, where: Where) -> bool:
    """Return whether an expression reads a workspace that a where fills."""
    made = targets(where.producer)
    return any(isinstance(node, Access) and node.tensor in made for node in _nodes(expr))


def _nodes(expr: Expr) -> list[Expr]:
    return [expr, *(below for child in expr.children for below in _nodes(child))]


def _check_listed(program: Program, leaf: _Leaf, depth: int, listed: tuple[str, ...], renamed: Mapping[str, str]) -> None:
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


def _check_sizes(program: Program, leaf: _Leaf, depth: int, listed: tuple[str, ...], context: Context) -> None:
    outside = [frame.index for frame in frames(program.statement, leaf.address)[:depth] if isinstance(frame, Forall)]
    for index in listed:
        missing = unknown_in_range(index, outside, leaf.graph, context)
        if missing:
            refuse(Rule.PRECOMPUTE_INDICES, f"the range of {index} depends on {missing}, which is known only inside the where")


def _separate(program: Program, leaf: _Leaf, depth: int, workspace: Workspace, renamed: Mapping[str, str]) -> Program:
    """Put a where at a depth of the leaf's address: the producer computes the part, the consumer the rest."""
    graph, listed = leaf.graph, workspace.indices
    base = leaf.address[:depth]
    loops = [frame.index for frame in frames(program.statement, leaf.address)[depth:] if isinstance(frame, Forall)]
    produced = [loop for loop in loops if uses(leaf.part_needs, loop, graph)]
    consumed = [loop for loop in loops if loop not in produced or uses(leaf.rest_needs, loop, graph) or covers(listed, loop, graph)]
    _check_whole(leaf, produced, consumed, loops)
    _check_kept(program, leaf, depth, consumed, listed)
    reduced = [loop for loop in produced if not covers(listed, loop, graph)]
    if reduced and not distributes(leaf.assign.value, leaf.part):
        refuse(
            Rule.PRECOMPUTE_DISTRIBUTES,
            f"the sum over {reduced[0]} cannot move into the workspace: what surrounds {show(leaf.part.part)} does not distribute over it",
        )
    below = at(program.statement, base)
    inner = leaf.address[depth:]
    written = Access(workspace.name, tuple(index_subscript(renamed.get(name, name)) for name in listed))
    filling = Assign(written, "+=" if reduced else "=", leaf.part.part)
    rest = replace_part(leaf.assign.value, leaf.part, Access(workspace.name, tuple(map(index_subscript, listed))))
    reading = replace(leaf.assign, value=rest)
    producer = _thinned(below, inner, filling, {loop: renamed.get(loop, loop) for loop in produced})
    consumer = _thinned(below, inner, reading, {loop: loop for loop in consumed})
    relations = (*program.relations, *(Rename(old, new) for old, new in renamed.items()))
    statement = put(program.statement, base, Where(consumer, producer))
    changed = replace(program, statement=statement, workspaces=(*program.workspaces, workspace), relations=relations)
    return _settled(changed, leaf.assign.target.tensor, rest)


def _check_whole(leaf: _Leaf, produced: list[str], consumed: list[str], loops: list[str]) -> None:
    for loop in loops:
        alone = loop not in produced or loop not in consumed
        needs = leaf.part_needs if loop in produced else leaf.rest_needs
        if (alone or loop in produced) and partly_used(needs, loop, leaf.graph):
            originals = ", ".join(leaf.graph.originals(loop))
            refuse(Rule.LOOPS_WHOLE, f"loop {loop} runs through {originals} together, and one side needs a part of them only")


def _check_kept(program: Program, leaf: _Leaf, depth: int, consumed: list[str], listed: tuple[str, ...]) -> None:
    """Refuse modes of which the consumer, whose loops must find them again, would have no loop or parts only."""
    frames_around = frames(program.statement, leaf.address)
    outside = [frame.index for frame in frames_around[:depth] if isinstance(frame, Forall)]
    known = leaf.graph.known_after((*outside, *consumed))
    for index in listed:
        if index not in known:
            lost = next(
                frame.index
                for frame in frames_around[depth:]
                if isinstance(frame, Forall) and frame.index not in consumed and index in leaf.graph.ancestors(frame.index)
            )
            originals = ", ".join(leaf.graph.originals(lost))
            refuse(Rule.LOOPS_WHOLE, f"loop {lost} runs through {originals} together, and the workspace keeps {index} only")


def _thinned(statement: Stmt, address: Address, leaf: Assign, loops: Mapping[str, str]) -> Stmt:
    """Return the statement around a new leaf, without the wheres that it does not read and with the given loops alone.

    ``loops`` gives the name of every loop that stays.
    """
    if not address:
        return leaf
    inner = _thinned(statement.children[address[0]], address[1:], leaf, loops)
    if isinstance(statement, Forall):
        return Forall(loops[statement.index], inner, statement.tag) if statement.index in loops else inner
    assert isinstance(statement, Where)
    needed = any(_reads(assign.value, statement) for assign in assignments(inner))
    return Where(inner, statement.producer) if needed else inner


def _settled(program: Program, target: str, value: Expr) -> Program:
    """Turn the consumer's ``+=`` into ``=`` where it now writes every component once."""
    graph = graph_of(program.relations)
    writes = [address for address, leaf in leaves(program.statement) if leaf.target.tensor == target]
    ((address, leaf),) = [
        (address, leaf) for address, leaf in leaves(program.statement) if leaf.target.tensor == target and leaf.value == value
    ]
    if leaf.operator == "=" or len(writes) > 1:
        return program
    scope = max(
        (depth for depth, frame in enumerate(frames(program.statement, address)) if isinstance(frame, Where) and address[depth] == 1),
        default=0,
    )
    around_leaf = [frame.index for frame in frames(program.statement, address)[scope:] if isinstance(frame, Forall)]
    if all(covers(leaf.target.indices, loop, graph) for loop in around_leaf):
        return replace(program, statement=put(program.statement, address, replace(leaf, operator="=")))
    return program


def loopfuse(program: Program, directive: d.Loopfuse, context: Context) -> Program:
    """Split a product after some factors; the outermost loops that both sides use stay shared (Dias et al., Algorithm 1)."""
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
    leaf = _leaf(program, address, part, len(start))
    depth = _common_depth(program, leaf)
    inside = [frame.index for frame in frames(program.statement, address)[depth:] if isinstance(frame, Forall)]
    both = [loop for loop in inside if uses(leaf.part_needs, loop, leaf.graph) and uses(leaf.rest_needs, loop, leaf.graph)]
    _check_sizes(program, leaf, depth, tuple(both), context)
    return _separate(program, leaf, depth, Workspace(_fresh("t", program), tuple(both)), {})


def _common_depth(program: Program, leaf: _Leaf) -> int:
    """Return the depth below the outermost loops that both sides use; the first that one side does not use ends them."""
    depth = leaf.top
    for frame in frames(program.statement, leaf.address)[leaf.top :]:
        if not isinstance(frame, Forall):
            break
        if not (uses(leaf.part_needs, frame.index, leaf.graph) and uses(leaf.rest_needs, frame.index, leaf.graph)):
            break
        depth += 1
    return depth


def _fresh(wish: str, program: Program) -> str:
    taken, count = names_of(program), 1
    while f"{wish}{count}" in taken:
        count += 1
    return f"{wish}{count}"
