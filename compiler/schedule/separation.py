"""Replaces one assignment by a producer and a consumer: below a shared prefix of loops, each gets the loops that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from ..concrete.apart import covers
from ..concrete.nodes import Assign, Forall, Program, Stmt, Where, Workspace, assignments, targets
from ..concrete.provenance import Provenance
from ..concrete.relations import RenameRelation
from ..frozen import frozen
from ..notation.nodes import Access, Expr, index_subscript
from ..notation.printer import show
from .addresses import Address, at, frames, leaves, put
from .dependence import graph_of, needs_of_expression, partly_used, uses
from .factors import Occurrence, around, distributes, flatten, replace_part
from .rules import Rule, refuse


@frozen
class Leaf:
    """An assignment, a part of its value, and its surroundings.

    Attributes:
        address: the address of the assignment in the program.
        top: the length of the address of the outermost statement that may be split; statements above it fill another
            workspace or contain other statements too.
        producers: the statements that fill the workspaces in scope: those of wheres whose consumers contain the assignment.
    """

    address: Address
    assign: Assign
    part: Occurrence
    top: int
    producers: Mapping[str, Stmt]
    graph: Provenance

    @cached_property
    def part_needs(self) -> frozenset[str]:
        """The indices that the part depends on."""
        return needs_of_expression(self.part.part, self.producers, self.graph)

    @cached_property
    def rest_needs(self) -> frozenset[str]:
        """The indices that the assignment needs without the part: those of its target, and of the rest of its value."""
        rest = needs_of_expression(around(self.assign.value, self.part), self.producers, self.graph)
        return rest | frozenset(self.assign.target.indices)


def leaf_at(program: Program, address: Address, part: Occurrence, lowest: int = 0) -> Leaf:
    """Return the assignment at an address, with a part of its value; ``top`` is at least ``lowest``."""
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
    return Leaf(address, assign, part, top, producers, graph)


def separate(program: Program, leaf: Leaf, depth: int, workspace: Workspace, renamed: Mapping[str, str]) -> Program:
    """Put a where at a depth of the leaf's address; its producer computes the part, its consumer the rest."""
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
    relations = (*program.relations, *(RenameRelation(old, new) for old, new in renamed.items()))
    statement = put(program.statement, base, Where(consumer, producer))
    changed = replace(program, statement=statement, workspaces=(*program.workspaces, workspace), relations=relations)
    return _settled(changed, leaf.assign.target.tensor, rest)


def _check_whole(leaf: Leaf, produced: list[str], consumed: list[str], loops: list[str]) -> None:
    for loop in loops:
        alone = loop not in produced or loop not in consumed
        needs = leaf.part_needs if loop in produced else leaf.rest_needs
        if (alone or loop in produced) and partly_used(needs, loop, leaf.graph):
            originals = ", ".join(leaf.graph.originals(loop))
            refuse(Rule.LOOPS_WHOLE, f"loop {loop} runs through {originals} together, and one side needs a part of them only")


def _check_kept(program: Program, leaf: Leaf, depth: int, consumed: list[str], listed: tuple[str, ...]) -> None:
    """Refuse modes of the workspace for which the consumer has no loop, or has a loop through only a part of them."""
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
    """Return the statement around a new leaf, without wheres that it does not read, and with only the given loops.

    ``loops`` gives the name of every loop that stays.
    """
    if not address:
        return leaf
    inner = _thinned(statement.children[address[0]], address[1:], leaf, loops)
    if isinstance(statement, Forall):
        return Forall(loops[statement.index], inner, statement.tag) if statement.index in loops else inner
    assert isinstance(statement, Where)
    needed = any(reads_from(assign.value, statement) for assign in assignments(inner))
    return Where(inner, statement.producer) if needed else inner


def _settled(program: Program, target: str, value: Expr) -> Program:
    """Change the consumer's ``+=`` to ``=`` if it now writes every component only once."""
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


def reads_from(expr: Expr, where: Where) -> bool:
    """Return whether an expression reads a workspace that a where fills."""
    made = targets(where.producer)
    return any(isinstance(node, Access) and node.tensor in made for node in _nodes(expr))


def _nodes(expr: Expr) -> list[Expr]:
    return [expr, *(below for child in expr.children for below in _nodes(child))]
