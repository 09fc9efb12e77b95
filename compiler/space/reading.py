"""Programs of the scheduling language as programs of the space: the choices left to the compiler are made explicit.

Protocols are given by level in the language and by mode in the space, where every access has them. A workspace that only puts a
sparse result in order is no part of a schedule: lowering makes it where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.loop_tag import PLAIN
from ..concrete.nodes import Assign, Forall, Program, Stmt, Where, targets, transform, walk
from ..concrete.said import said_of
from ..format import Format
from ..notation.nodes import Access, Expr, transform_expression
from .defaults import level_protocols, with_default_protocols
from .naming import write_protocols


def structural(program: Program, target: Access, formats: Mapping[str, Format]) -> Program | None:
    """Return a program as the space has it; None where it has loops or decisions that the space does not.

    Args:
        program: what a schedule makes.
        target: the left side.
        formats: of the operands and the result.
    """
    if program.relations or program.assembly or program.build != (None, None):
        return None
    if any(isinstance(node, Forall) and node.tag != PLAIN for node in walk(program.statement)):
        return None
    statement = with_modes(replace(program, statement=ungathered(program.statement, target)), formats)
    statement = with_default_protocols(statement, {name: form for name, form in formats.items() if name != target.tensor})
    kept = targets(statement)
    return replace(program, statement=_written(statement, (), {}), workspaces=tuple(one for one in program.workspaces if one.name in kept))


def with_modes(program: Program, formats: Mapping[str, Format]) -> Stmt:
    """Return the statement of a program with the protocols of stored operands by mode; where none is given, the one that the level is
    made for."""
    return transform(program.statement, lambda node: _by_mode(node, program, formats))


def ungathered(statement: Stmt, target: Access) -> Stmt:
    """Return a statement without the workspace from which a result is only copied."""

    def rule(node: Stmt) -> Stmt | None:
        if not isinstance(node, Where):
            return None
        consumer = node.consumer
        while isinstance(consumer, Forall):
            consumer = consumer.body
        copied = consumer.value if isinstance(consumer, Assign) and consumer.target.tensor == target.tensor else None
        if not isinstance(copied, Access) or copied.tensor not in targets(node.producer):
            return None

        def direct(part: Stmt) -> Stmt | None:
            if isinstance(part, Assign) and part.target.tensor == copied.tensor:
                return replace(part, target=Access(target.tensor, target.subscripts))
            return None

        return transform(node.producer, direct)

    return transform(statement, rule)


def _by_mode(node: Stmt, program: Program, formats: Mapping[str, Format]) -> Stmt | None:
    if not isinstance(node, Assign):
        return None

    def access(part: Expr) -> Expr | None:
        if not isinstance(part, Access) or part.tensor not in formats or formats[part.tensor].is_dense:
            return None
        form = part.stored or said_of(part, program.conversions) or formats[part.tensor]
        chosen = part.protocols or level_protocols(form)
        return Access(part.tensor, part.subscripts, tuple(chosen[form.level_of(mode)] for mode in range(len(form))))

    return Assign(Access(node.target.tensor, node.target.subscripts), node.operator, transform_expression(node.value, access))


def _written(node: Stmt, loops: tuple[str, ...], outside: Mapping[str, int]) -> Stmt:
    """Give every write its protocols; ``outside`` says how many loops stand around the place where a workspace is made."""
    match node:
        case Assign(target, operator, value):
            chosen = write_protocols(target.indices, loops[outside.get(target.tensor, 0) :])
            return Assign(replace(target, protocols=chosen), operator, value)
        case Where(consumer, producer):
            inner = {**outside, **{name: len(loops) for name in targets(producer) if name not in targets(consumer)}}
            return Where(_written(consumer, loops, inner), _written(producer, loops, inner))
        case Forall(index, body):
            return Forall(index, _written(body, (*loops, index), outside))
        case _:
            return node.rebuild(tuple(_written(child, loops, outside) for child in node.children))
