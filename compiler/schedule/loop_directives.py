"""Directives that change loops: one function each, from a program to the next."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.bounds import bound_holds
from ..concrete.loop_tag import PLAIN, THREAD_REGISTERS, WARP_LANES
from ..concrete.nodes import Block, Forall, Program, Stmt, Where, nest, reads
from ..concrete.provenance import Provenance
from ..concrete.relations import BoundRelation, PosRelation, Relation, SplitRelation
from ..concrete.said import operand_of, saying
from ..notation.printer import show
from ..units import LANES, REGISTERS, UNITS
from . import directives as d
from .addresses import Address, accesses_meant, at, chain, enclosing_loops, everywhere, find_loop, follow, frames, put, show_paths
from .context import LARGEST_CHUNK, MOST_COPIES, Context, check_new, check_positive
from .dependence import graph_of
from .rules import Rule, refuse


def reorder(program: Program, directive: d.Reorder, context: Context) -> Program:
    """Change the order of directly nested loops; loops of the nest that are not named keep their places."""
    order, statement = directive.order, program.statement
    for place, name in enumerate(order):
        if name in order[:place]:
            refuse(Rule.REORDER_DIRECTLY_NESTED, f"loop {name} is named twice")
    start = _nest_of(statement, order, directive.path)
    loops = [at(statement, (*start, *(0,) * depth)) for depth in range(len(chain(statement, start)))]
    named = {loop.index: loop for loop in loops if isinstance(loop, Forall) and loop.index in order}
    body = at(statement, (*start, *(0,) * len(loops)))
    pending = iter(order)
    arranged = [named[next(pending)] if isinstance(loop, Forall) and loop.index in named else loop for loop in loops]
    for loop in reversed(arranged):
        body = loop.rebuild((body,))
    return replace(program, statement=put(statement, start, body))


def _nest_of(statement: Stmt, order: tuple[str, ...], path: tuple[int, ...] | None) -> Address:
    """Return the address of the directly nested loops with all the names: at the path, at the root, or at the only place with them."""
    if path is not None:
        start = follow(statement, path)
        _check_nest(statement, start, order)
        return start
    holding = [address for address, _ in _nests(statement) if set(order) <= set(chain(statement, address))]
    if () in holding or len(holding) == 1:
        return () if () in holding else holding[0]
    if len(holding) > 1:
        where = show_paths(statement, holding)
        refuse(Rule.NAMES_UNIQUE, f"{len(holding)} nests have the loops {', '.join(order)}; say which by a path: {where}")
    present = {node.index for _, node in everywhere(statement) if isinstance(node, Forall)}
    for name in order:
        if name not in present:
            find_loop(statement, name, None)
    _check_nest(statement, (), order)
    raise AssertionError("a nest that passes the check would have been found")


def _nests(statement: Stmt) -> list[tuple[Address, Stmt]]:
    """Return the outermost loop of every run of directly nested loops."""
    found = []
    for address, node in everywhere(statement):
        inside = address and isinstance(at(statement, address[:-1]), Forall)
        if isinstance(node, Forall) and not inside:
            found.append((address, node))
    return found


def _check_nest(statement: Stmt, start: Address, order: tuple[str, ...]) -> None:
    loops = chain(statement, start)
    missing = [name for name in order if name not in loops]
    if not missing:
        return
    below = {node.index for _, node in everywhere(at(statement, start)) if isinstance(node, Forall)}
    end = at(statement, (*start, *(0,) * len(loops)))
    if missing[0] in below and isinstance(end, Where | Block):
        refuse(
            Rule.REORDER_DISTRIBUTES,
            f"loop {missing[0]} stands inside a {'where' if isinstance(end, Where) else 'block'}, whose other parts do not repeat"
            f" with it; only the directly nested loops {', '.join(loops) or '(none)'} can change places here",
        )
    refuse(Rule.REORDER_DIRECTLY_NESTED, f"loop {missing[0]} is not one of the directly nested loops {', '.join(loops) or '(none)'}")


def split(program: Program, directive: d.Split | d.SplitUp, context: Context) -> Program:
    """Split a loop into a loop over tiles and a loop over the iterations of a tile."""
    check_positive(directive.factor, "the factor")
    relation = SplitRelation(directive.index, directive.outer, directive.inner, directive.factor, isinstance(directive, d.Split))
    return replace_loop(program, directive.index, relation, directive.path)


def bound(program: Program, directive: d.Bound, context: Context) -> Program:
    """Note a known fact about the range of a loop."""
    least = 1 if directive.kind in ("divisible", "max_exact", "max_constraint") else 0
    check_positive(directive.amount, "the amount", least=least)
    graph = graph_of(program.relations)
    low, length = graph.constant_low(directive.index), graph.constant_extent(directive.index, context.extents)
    if low is not None and length is not None:
        _check_bound(directive, low, low + length)
    elif low is not None and directive.kind in ("min_exact", "min_constraint"):
        _check_bound(directive, low, None)
    elif low is None:
        refuse(Rule.BOUND_HOLDS, f"the range of {directive.index} begins at a stored position, not at a number; split it and bound a piece")
    elif length is None and directive.kind not in ("min_exact", "min_constraint") and _depends_on_positions(directive.index, graph):
        refuse(Rule.BOUND_HOLDS, f"how far {directive.index} goes depends on what is stored, and cannot be checked before the kernel runs")
    relation = BoundRelation(directive.index, directive.bounded, directive.amount, directive.kind)
    return replace_loop(program, directive.index, relation, directive.path)


def _depends_on_positions(index: str, graph: Provenance) -> bool:
    return any(isinstance(graph.maker(name), PosRelation) for name in graph.ancestors(index))


def _check_bound(directive: d.Bound, low: int, high: int | None) -> None:
    amount = directive.amount
    if not bound_holds(directive.kind, amount, low, high):
        found = f"{low} to {high - 1}" if high is not None else f"{low} upwards"
        refuse(Rule.BOUND_HOLDS, f"{directive.kind} {amount} contradicts the range of {directive.index}, which is {found}")


def unroll(program: Program, directive: d.Unroll, context: Context) -> Program:
    """Tag a loop with the number of iterations, or of vectors, in one step."""
    check_positive(directive.factor, "the factor", MOST_COPIES)
    return _tagged(program, directive.index, directive.path, unroll=directive.factor)


def merge(program: Program, directive: d.Merge, context: Context) -> Program:
    """Tag a loop with the way in which sparse operands are merged in it."""
    return _tagged(program, directive.index, directive.path, merge=directive.strategy)


def prefetch(program: Program, directive: d.Prefetch, context: Context) -> Program:
    """Note that an operand's data is prefetched some iterations ahead."""
    check_positive(directive.distance, "the distance", LARGEST_CHUNK)
    address = find_loop(program.statement, directive.index, directive.path)
    loop = at(program.statement, address)
    assert isinstance(loop, Forall)
    wanted = directive.access
    found = sorted({access.tensor for access in reads(loop)}.intersection(context.types))
    if wanted.tensor not in found:
        refuse(
            Rule.PREFETCH_READS,
            f"{wanted.tensor} is no operand read in loop {directive.index}; those read are {', '.join(found) or 'none'}",
        )
    if not accesses_meant(wanted, reads(loop)):
        refuse(Rule.PREFETCH_READS, f"loop {directive.index} does not read {show(wanted)}")
    asked = saying(operand_of(wanted), directive.distance, loop.tag.prefetch)
    return _tagged(program, directive.index, directive.path, prefetch=asked)


def _check_chunking(unit: str, chunking: str, chunk: int | None) -> None:
    """Refuse a way of distributing iterations that is that of another unit, and numbers that the unit cannot have."""
    owner = next(found for found in UNITS.values() if chunking in found.chunkings)
    counted = chunking in (LANES, REGISTERS)
    if owner.name != unit:
        whose = f"{chunking} are those of a {owner.name}; {unit} has none"
        refuse(Rule.UNIT_NESTING, whose if counted else f"{chunking} deals out iterations to CPU threads; {unit} takes none")
    if chunking == LANES and chunk not in WARP_LANES:
        refuse(Rule.UNIT_NESTING, f"a {unit} has {', '.join(map(str, WARP_LANES))} lanes; say how many behind it")
    if chunking == REGISTERS and chunk not in THREAD_REGISTERS:
        refuse(Rule.UNIT_NESTING, f"a {unit} has {THREAD_REGISTERS[0]} to {THREAD_REGISTERS[-1]} registers; say how many behind it")


def parallelize(program: Program, directive: d.Parallelize, context: Context) -> Program:
    """Tag a loop for parallel units; whether that is sound is checked for the finished program."""
    if directive.chunk is not None:
        check_positive(directive.chunk, "the chunk", LARGEST_CHUNK)
    address = find_loop(program.statement, directive.index, directive.path)
    loop = at(program.statement, address)
    if directive.chunking is not None:
        _check_chunking(directive.unit, directive.chunking, directive.chunk)
    if isinstance(loop, Forall) and loop.tag.unit is not None:
        refuse(Rule.UNIT_NESTING, f"loop {directive.index} is parallel already, on {loop.tag.unit}")
    return _tagged(
        program,
        directive.index,
        directive.path,
        unit=directive.unit,
        race=directive.race,
        chunking=directive.chunking,
        chunk=directive.chunk,
    )


def _tagged(program: Program, index: str, path: tuple[int, ...] | None, **changes: object) -> Program:
    address = find_loop(program.statement, index, path)
    loop = at(program.statement, address)
    assert isinstance(loop, Forall)
    for frame in (*frames(program.statement, address), loop):
        if isinstance(frame, Forall) and frame.tag.routine is not None:
            refuse(Rule.CALL_DENSE, f"{frame.tag.routine} does loop {index} already")
    return replace(program, statement=put(program.statement, address, replace(loop, tag=replace(loop.tag, **changes))))


def replace_loop(program: Program, index: str, relation: Relation, path: tuple[int, ...] | None) -> Program:
    """Replace a loop by the loops over a relation's children, in their order.

    If the program has the relation already, another nest gets the same loops, so that ``join`` can share them.
    """
    address = find_loop(program.statement, index, path)
    return with_loops(program, address, untagged(at(program.statement, address)).body, relation)


def with_loops(program: Program, address: Address, body: Stmt, relation: Relation) -> Program:
    """Put loops over a relation's children around a statement, and replace the statement at an address by them."""
    again = relation in program.relations
    if again:
        _check_apart(program.statement, address, relation)
    else:
        check_new(relation.children, program)
    statement = put(program.statement, address, nest(relation.children, body))
    return replace(program, statement=statement, relations=program.relations if again else (*program.relations, relation))


def _check_apart(statement: Stmt, address: Address, relation: Relation) -> None:
    inside = (node.index for _, node in everywhere(at(statement, address)) if isinstance(node, Forall))
    for name in (*enclosing_loops(statement, address), *inside):
        if name in relation.children:
            refuse(Rule.NAMES_NEW, f"the name {name} is that of a loop in the same nest; choose another")


def untagged(loop: Stmt) -> Forall:
    """Return a statement as a loop; refuse a loop that is tagged already."""
    assert isinstance(loop, Forall)
    if loop.tag != PLAIN:
        refuse(Rule.TAGGED_LOOPS_STAY, f"loop {loop.index} is tagged already; transform loops before unroll, prefetch and merge")
    return loop
