"""Directives that share a loop between statements: ``join``, and ``recompute`` for a loop that only the consumer has.

Loop nest forests are made from statements that each have their own loops (``precompute`` over all indices), by joining
their outermost loops from the outside inwards (Dias et al., "SparseAuto"; Ahrens et al., section 6.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..concrete.apart import covers
from ..concrete.loop_tag import PLAIN
from ..concrete.nodes import Assign, Block, Forall, Program, Stmt, Where, assignments, reads, transform
from ..notation import nodes as notation
from ..notation.nodes import Access, accesses
from ..notation.printer import show
from . import directives as d
from .addresses import Address, at, chain, follow, frames, put
from .context import Context
from .dependence import graph_of
from .rules import Rule, refuse
from .sequences import arranged, depends, is_loop, read, sequence, written


def join(program: Program, directive: d.Join | d.Recompute, context: Context) -> Program:
    """Put one loop around two statements, in place of the loops of both or, for ``recompute``, of the second."""
    index, statement = directive.index, program.statement
    first, second = (follow(statement, path) for path in (directive.first, directive.second))
    common = _common(first, second)
    if common in (first, second) or not isinstance(at(statement, common), Where | Block):
        refuse(Rule.JOIN_SIBLINGS, f"the paths {list(directive.first)} and {list(directive.second)} do not lead to two statements")
    for address in (first, second):
        _check_no_loops_between(statement, common, address)
    one, other = (at(statement, address) for address in (first, second))
    _check_loop(other, index, directive.second)
    if isinstance(directive, d.Recompute):
        _check_independent(one, index, directive)
    else:
        _check_loop(one, index, directive.first)
    parts = sequence(at(statement, common))
    before, after = _around(parts, one, other, directive)
    joined = _joined(program, directive, one, other, (*before, *after), _beside(program, common))
    whole = arranged((*before, joined, *after), written(at(statement, common)))
    return _narrowed(replace(program, statement=put(statement, common, whole)), index, joined)


def _common(first: Address, second: Address) -> Address:
    """Return the longest address with which two others begin."""
    length = next((place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    return first[:length]


def _check_no_loops_between(statement: Stmt, common: Address, address: Address) -> None:
    around = [frame.index for frame in frames(statement, address)[len(common) :] if isinstance(frame, Forall)]
    if around:
        refuse(Rule.JOIN_SIBLINGS, f"loop {around[0]} stands around one of the statements and not around the other; join {around[0]} first")


def _check_loop(statement: Stmt, index: str, path: tuple[int, ...]) -> None:
    if not is_loop(statement, index):
        loops = chain(statement, ())
        what = f"its loops are {', '.join(loops)}; reorder them first" if loops else "it has no loops"
        refuse(Rule.JOIN_OUTERMOST, f"the outermost loop at path {list(path)} is not {index}: {what}")
    if isinstance(statement, Forall) and statement.tag != PLAIN:
        refuse(Rule.TAGGED_LOOPS_STAY, f"loop {index} is tagged already; join loops before unroll, prefetch and merge")


def _check_independent(statement: Stmt, index: str, directive: d.Recompute) -> None:
    named = {name for assign in assignments(statement) for access in (assign.target, *accesses(assign.value)) for name in access.indices}
    looped = {node.index for _, node in _loops(statement)}
    if index in named | looped:
        refuse(Rule.JOIN_OUTERMOST, f"the statement at path {list(directive.first)} depends on {index}: join({index}, ...) shares the loop")


def _loops(statement: Stmt) -> list[tuple[Stmt, Forall]]:
    inner = [found for child in statement.children for found in _loops(child)]
    return [(statement, statement), *inner] if isinstance(statement, Forall) else inner


def _around(parts: Sequence[Stmt], one: Stmt, other: Stmt, directive: d.Join | d.Recompute) -> tuple[list[Stmt], list[Stmt]]:
    """Return the statements of a sequence that run before, and those that run after, two statements that are joined."""
    inside = [number for number, part in enumerate(parts) if any(part is own for own in (*sequence(one), *sequence(other)))]
    start = next(number for number, part in enumerate(parts) if part is sequence(one)[0])
    end = next(number for number, part in enumerate(parts) if part is sequence(other)[-1])
    if start > end:
        refuse(Rule.JOIN_SIBLINGS, f"what is at path {list(directive.second)} runs first; write the paths in the order of execution")
    before, after = list(parts[:start]), list(parts[end + 1 :])
    late: list[Stmt] = []
    for number in range(start, end):
        part = parts[number]
        if number in inside:
            continue
        if any(depends(part, earlier) for earlier in (one, *late)):
            late.append(part)
        else:
            before.append(part)
    if any(depends(other, part) for part in late):
        made = ", ".join(sorted(written(late[-1])))
        refuse(Rule.JOIN_ORDER, f"what computes {made} stands between them: it needs what the first computes, and the second needs it")
    return before, [*late, *after]


def _beside(program: Program, common: Address) -> frozenset[str]:
    """Return what the program reads outside a statement."""
    inside = [access.tensor for access in reads(at(program.statement, common))]
    everything = [access.tensor for access in reads(program.statement)]
    return frozenset(name for name in everything if everything.count(name) > inside.count(name))


def _joined(
    program: Program, directive: d.Join | d.Recompute, one: Stmt, other: Stmt, rest: Sequence[Stmt], beside: frozenset[str]
) -> Forall:
    """Return the loop around both statements."""
    index = directive.index
    elsewhere = beside.union(*map(read, rest))
    shared = written(one) & read(other)
    local = frozenset(name for name in written(one) if name in shared and name not in elsewhere and name not in written(other))
    for name in sorted(shared):
        if name not in local:
            refuse(Rule.JOIN_ORDER, f"{name} is read after the loop too, and has to be whole there")
        _check_complete(program, index, name, one, other, isinstance(directive, d.Recompute))
    if isinstance(directive, d.Recompute) and not (written(one) and written(one) <= local):
        what = ", ".join(sorted(written(one) - local))
        refuse(Rule.JOIN_ORDER, f"{what} is not a workspace that the second alone reads, and would be added to again for every {index}")
    own = sequence(one.body if isinstance(one, Forall) and isinstance(directive, d.Join) else one)
    assert isinstance(other, Forall)
    return Forall(index, arranged((*own, *sequence(other.body)), (written(one) - local) | written(other)))


def _check_complete(program: Program, index: str, name: str, one: Stmt, other: Stmt, repeated: bool) -> None:
    """Refuse to join if an iteration of the second statement needs what several iterations of the first compute."""
    if repeated:
        return
    graph = graph_of(program.relations)
    through = {index, *graph.originals(index)}
    for target in (assign.target for assign in assignments(one) if assign.target.tensor == name):
        if not covers(target.indices, index, graph):
            refuse(Rule.JOIN_ORDER, f"{show(target)} is complete only after all iterations of {index}, and the second statement reads it")
        for access in (access for access in reads(other) if access.tensor == name):
            pairs = zip(target.subscripts, access.subscripts, strict=True)
            if any(mine != theirs and through & {*mine.indices, *theirs.indices} for mine, theirs in pairs):
                refuse(Rule.JOIN_ORDER, f"the second statement reads {show(access)} in an iteration that writes {show(target)}")


def _narrowed(program: Program, index: str, joined: Forall) -> Program:
    """Remove the mode of the loop from workspaces that live inside it."""
    outside = [access.tensor for access in (*reads(program.statement), *(assign.target for assign in assignments(program.statement)))]
    inside = [access.tensor for access in (*reads(joined), *(assign.target for assign in assignments(joined)))]
    spaces = {space.name: space.indices.index(index) for space in program.workspaces if index in space.indices}
    lost = {name: mode for name, mode in spaces.items() if name in inside and outside.count(name) == inside.count(name)}
    lost = {name: mode for name, mode in lost.items() if name not in written(joined)}

    def access(node: notation.Expr) -> notation.Expr | None:
        if not isinstance(node, Access) or node.tensor not in lost:
            return None
        mode = lost[node.tensor]
        protocols = node.protocols[:mode] + node.protocols[mode + 1 :]
        return replace(node, subscripts=node.subscripts[:mode] + node.subscripts[mode + 1 :], protocols=protocols)

    def rule(node: Stmt) -> Stmt | None:
        if not isinstance(node, Assign):
            return None
        target = access(node.target) or node.target
        assert isinstance(target, Access)
        return Assign(target, node.operator, notation.transform_expression(node.value, access))

    workspaces = tuple(
        replace(space, indices=tuple(name for name in space.indices if name != index)) if space.name in lost else space
        for space in program.workspaces
    )
    return replace(program, statement=transform(program.statement, rule), workspaces=workspaces)
