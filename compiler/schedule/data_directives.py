"""Directives about data and code: how tensors are stored, traversed, converted and assembled, and how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from ..concrete.loop_tag import PLAIN
from ..concrete.nodes import Assign, Forall, Program, Stmt, Workspace, reads, targets, transform, walk
from ..concrete.relations import PosRelation
from ..concrete.said import means, operand_of, saying
from ..errors import FormatError
from ..format import parse_format
from ..notation import nodes as notation
from ..notation.nodes import Access
from ..notation.printer import show
from . import directives as d
from .addresses import accesses_meant, at, body_address, chain, follow, put
from .context import Context, check_positive
from .dependence import graph_of
from .rules import Rule, refuse

MOST_IN_REGISTERS = 2**14
"""The most elements of a workspace of kind registers: those that do not fit into registers are on the stack of a thread."""


def protocol(program: Program, directive: d.ProtocolDirective, context: Context) -> Program:
    """Set how each level of an operand is traversed, or how a result is assembled."""
    wanted = directive.access
    address = follow(program.statement, directive.path or ())
    statement = at(program.statement, address)
    read = accesses_meant(wanted, reads(statement))
    written = [] if read else accesses_meant(wanted, tuple(assign.target for assign in _assigns(statement)))
    if not read and not written:
        refuse(Rule.NAMES_EXIST, f"there is no access {show(wanted)}")
    order = len((read or written)[0].subscripts)
    if len(directive.protocols) != order:
        refuse(Rule.PROTOCOL_FITS, f"{wanted.tensor} has {order} modes, and {len(directive.protocols)} protocols are given")
    allowed = ("step", "locate") if read else ("append", "insert")
    for name in directive.protocols:
        if name not in allowed:
            use = "read" if read else "written"
            refuse(Rule.PROTOCOL_FITS, f"{show(wanted)} is {use}: its protocols are {' and '.join(allowed)}, not {name}")
    places = _places(directive, statement, bool(read))
    if written:
        return _written(program, directive, written[0], context)
    changed = _changed(statement, places, lambda node: replace(node, protocols=directive.protocols))
    return replace(program, statement=put(program.statement, address, changed))


def _written(program: Program, directive: d.ProtocolDirective, written: Access, context: Context) -> Program:
    """Assemble a result as its protocols say. Levels in which every coordinate is present are written in place, whichever they have."""
    name, levels = written.tensor, context.levels(written)
    if not levels:
        refuse(Rule.PROTOCOL_FITS, f"{name} is a workspace, and its kind says how it is written; use workspace({name}, KIND)")
    chosen = {strategy for (kind, _), strategy in zip(levels, directive.protocols, strict=True) if not kind.full}
    if len(chosen) > 1:
        refuse(
            Rule.PROTOCOL_FITS,
            f"all levels of {name} are assembled alike, by append or by insert; assemble({name}, workspace) collects what is not in order",
        )
    return assemble(program, d.Assemble(name, chosen.pop()), context) if chosen else program


def _places(directive: d.ProtocolDirective | d.Convert, statement: Stmt, read: bool) -> frozenset[int]:
    """Return the numbers of the accesses of a statement, counted in order, that a directive means."""
    meant = [place for place, (access, is_read) in enumerate(_in_order(statement)) if is_read is read and means(directive.access, access)]
    if directive.place is None:
        return frozenset(meant)
    check_positive(directive.place, "the place")
    if directive.place > len(meant):
        refuse(Rule.NAMES_EXIST, f"{show(directive.access)} stands here {len(meant)} times, not {directive.place}")
    return frozenset({meant[directive.place - 1]})


def _in_order(statement: Stmt) -> list[tuple[Access, bool]]:
    """Return the accesses of a statement and whether they are read; the target of an assignment comes before its operands."""
    found = []
    for assign in _assigns(statement):
        found += [(assign.target, False), *((access, True) for access in notation.accesses(assign.value))]
    return found


def _changed(statement: Stmt, places: frozenset[int], change: Callable[[Access], Access]) -> Stmt:
    counter = iter(range(len(_in_order(statement))))

    def access(node: notation.Expr) -> notation.Expr | None:
        if not isinstance(node, Access):
            return None
        return change(node) if next(counter) in places else node

    def rule(node: Stmt) -> Stmt | None:
        if not isinstance(node, Assign):
            return None
        target = access(node.target)
        assert isinstance(target, Access)
        return Assign(target, node.operator, notation.transform_expression(node.value, access))

    return transform(statement, rule)


def _assigns(statement: Stmt) -> list[Assign]:
    return [statement] if isinstance(statement, Assign) else [leaf for child in statement.children for leaf in _assigns(child)]


def workspace(program: Program, directive: d.WorkspaceDirective, context: Context) -> Program:
    """Choose the storage of a workspace."""
    found = [space for space in program.workspaces if space.name == directive.workspace]
    if not found:
        names = ", ".join(space.name for space in program.workspaces)
        refuse(Rule.NAMES_EXIST, f"there is no workspace {directive.workspace}; the workspaces are {names or 'none'}")
    _check_kind(found[0], directive.kind, program, context)
    chosen = tuple(replace(space, kind=directive.kind) if space is found[0] else space for space in program.workspaces)
    return replace(program, workspaces=chosen)


def _check_kind(space: Workspace, kind: str, program: Program, context: Context) -> None:
    graph = graph_of(program.relations)
    if (kind == "scalar") != (not space.indices):
        what = "is a scalar" if not space.indices else f"has the modes {', '.join(space.indices)}"
        refuse(Rule.WORKSPACE_FITS, f"{space.name} {what}, and so cannot be {kind}")
    unknown = [index for index in space.indices if graph.constant_extent(index, context.extents) is None]
    if kind == "registers" and unknown:
        refuse(Rule.WORKSPACE_FITS, f"registers need a constant extent, and that of {unknown[0]} is not known; split or bound it")
    elements = prod(graph.constant_extent(index, context.extents) or 1 for index in space.indices)
    if kind == "registers" and elements > MOST_IN_REGISTERS:
        refuse(
            Rule.WORKSPACE_FITS, f"{space.name} has {elements} elements, more than the {MOST_IN_REGISTERS} that registers and stack take"
        )
    if kind == "positions" and not any(graph.space(index) == "position" for index in space.indices):
        refuse(Rule.WORKSPACE_FITS, f"no mode of {space.name} counts positions of an operand; take them with pos first")


def convert(program: Program, directive: d.Convert, context: Context) -> Program:
    """Convert an operand before the kernel runs."""
    wanted = directive.access
    address = follow(program.statement, directive.path or ())
    statement = at(program.statement, address)
    found = accesses_meant(wanted, reads(statement))
    if not found or wanted.tensor not in context.types:
        refuse(Rule.NAMES_EXIST, f"there is no operand {show(wanted)} to convert")
    held = context.types[wanted.tensor]
    if held.in_memory is not held and not directive.is_general:
        refuse(Rule.CONVERT_FITS, f"{wanted.tensor} is read at compound subscripts; all its reads are converted together")
    try:
        form = held.read_from(parse_format(directive.format, len(held.in_memory)))
    except FormatError as error:
        refuse(Rule.CONVERT_FITS, f"{wanted.tensor} cannot be converted: {error}")
    if directive.is_general:
        return replace(program, conversions=saying(operand_of(wanted), form, program.conversions))
    if any(isinstance(relation, PosRelation) and means(wanted, relation.access) for relation in program.relations):
        refuse(Rule.CONVERT_FITS, f"positions of {wanted.tensor} are taken already; convert its single reads before pos")
    places = _places(directive, statement, read=True)
    changed = _changed(statement, places, lambda node: replace(node, stored=form))
    return replace(program, statement=put(program.statement, address, changed))


def assemble(program: Program, directive: d.Assemble, context: Context) -> Program:
    """Choose how a sparse result is assembled."""
    name = directive.result
    local = {space.name for space in program.workspaces}
    if name not in targets(program.statement) or name in local or name not in context.types:
        known = [target for target in targets(program.statement) if target not in local]
        refuse(Rule.NAMES_EXIST, f"{name} is not the result; the result is {', '.join(known)}")
    if context.types[name].is_dense:
        refuse(Rule.ASSEMBLE_FITS, f"{name} is dense and is written in place; assemble is for sparse results")
    kept = tuple(pair for pair in program.assembly if pair[0] != name)
    return replace(program, assembly=(*kept, (name, directive.strategy)))


def build(program: Program, directive: d.Build, context: Context) -> Program:
    """Choose compiler and flags."""
    return replace(program, build=(directive.compiler, directive.flags))


def call(program: Program, directive: d.Call, context: Context) -> Program:
    """Let BLAS compute the last loops of the chain at a path, as many as the routine has."""
    start = follow(program.statement, directive.path or ())
    loops = chain(program.statement, start)
    body = body_address(program.statement, start)
    leaf, wanted = at(program.statement, body), d.CALL_LOOPS[directive.routine]
    if not isinstance(leaf, Assign) or len(loops) < wanted:
        refuse(Rule.CALL_DENSE, f"{directive.routine} is {wanted} loops around one assignment; here are {len(loops)} loops")
    place, own = body[: len(body) - wanted], loops[len(loops) - wanted :]
    sparse = [access for access in (leaf.target, *notation.accesses(leaf.value)) if _stores_coordinates(access, own, context)]
    if sparse:
        refuse(Rule.CALL_DENSE, f"{show(sparse[0])} is not dense, as {directive.routine} needs it")
    if any(isinstance(node, Forall) and node.tag != PLAIN for node in walk(at(program.statement, place))):
        refuse(Rule.CALL_DENSE, f"one of the loops {', '.join(own)} is tagged already")
    outermost = at(program.statement, place)
    assert isinstance(outermost, Forall)
    tagged = replace(outermost, tag=replace(outermost.tag, routine=directive.routine))
    return replace(program, statement=put(program.statement, place, tagged))


def _stores_coordinates(access: Access, loops: Sequence[str], context: Context) -> bool:
    """Whether an access stores coordinates in the level of one of the loops, or in a level below."""
    levels = context.levels(access)
    first = next((place for place, (_, indices) in enumerate(levels) if set(indices) & set(loops)), len(levels))
    return any(kind.stores_coordinates for kind, _ in levels[first:])
