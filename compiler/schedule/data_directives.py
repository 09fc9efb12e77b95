"""Directives about data and code: how things are stored, traversed, converted, assembled and compiled."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..concrete.nodes import Assign, Program, Stmt, Workspace, operand_of, reads, saying, targets, transform
from ..errors import FormatError
from ..format import parse_format
from ..notation import nodes as notation
from ..notation.nodes import Access
from ..notation.printer import show
from . import directives as d
from .addresses import accesses_meant, at, body_address, chain, follow, put
from .context import Context
from .dependence import graph_of
from .rules import Rule, refuse

MOST_IN_REGISTERS = 2**14
"""Elements of a workspace that is asked to be no memory: what does not fit into registers is on the stack of a thread."""


def protocol(program: Program, directive: d.ProtocolDirective, context: Context) -> Program:
    """Say for every level of an access how it is traversed."""
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
    chosen = {access: replace(access, protocols=directive.protocols) for access in (*read, *written)}
    return replace(program, statement=put(program.statement, address, transform(statement, lambda node: _with_accesses(node, chosen))))


def _assigns(statement: Stmt) -> list[Assign]:
    return [statement] if isinstance(statement, Assign) else [leaf for child in statement.children for leaf in _assigns(child)]


def _with_accesses(statement: Stmt, chosen: dict[Access, Access]) -> Stmt | None:
    if not isinstance(statement, Assign):
        return None
    value = notation.transform(statement.value, lambda node: chosen.get(node) if isinstance(node, Access) else None)
    return Assign(chosen.get(statement.target, statement.target), statement.operator, value)


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
    found = accesses_meant(wanted, reads(program.statement))
    if not found or wanted.tensor not in context.types:
        refuse(Rule.NAMES_EXIST, f"there is no operand {show(wanted)} to convert")
    try:
        form = parse_format(directive.format, len(found[0].subscripts))
    except FormatError as error:
        refuse(Rule.CONVERT_FITS, f"{wanted.tensor} cannot be converted: {error}")
    return replace(program, conversions=saying(operand_of(wanted), form, program.conversions))


def assemble(program: Program, directive: d.Assemble, context: Context) -> Program:
    """Choose how a sparse result is put together."""
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


_CALL_LOOPS = {"gemm": 3, "gemv": 2, "ger": 2, "axpy": 1, "dot": 1}


def call(program: Program, directive: d.Call, context: Context) -> Program:
    """Hand the dense loops at a path to BLAS."""
    path = directive.path or ()
    start = follow(program.statement, path)
    loops = chain(program.statement, start)
    leaf = at(program.statement, body_address(program.statement, start))
    wanted = _CALL_LOOPS[directive.routine]
    if not isinstance(leaf, Assign) or len(loops) != wanted:
        refuse(Rule.CALL_DENSE, f"{directive.routine} is {wanted} loops around one assignment; here are {len(loops)} loops")
    sparse = [access for access in (leaf.target, *notation.accesses(leaf.value)) if _stores_coordinates(access, context)]
    if sparse:
        refuse(Rule.CALL_DENSE, f"{show(sparse[0])} is not dense, as {directive.routine} needs it")
    return replace(program, calls=(*program.calls, (path, directive.routine)))


def _stores_coordinates(access: Access, context: Context) -> bool:
    return any(kind.stores_coordinates for kind, _ in context.levels(access))
