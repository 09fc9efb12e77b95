"""Protocols for a program that names none, chosen by its formats and loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.nodes import Assign, Stmt, transform
from ..format import Format
from ..notation.nodes import Access, Expr, accesses, transform_expression


def with_default_protocols(statement: Stmt, formats: Mapping[str, Format]) -> Stmt:
    """Return a statement in which every read has protocols; those that it names stay.

    A stored operand is located in dense and hashed levels and stepped through in others. A workspace is located where a
    stored operand of the same assignment is stepped through, and is stepped through where nothing else drives the loop.
    """

    def rule(node: Stmt) -> Stmt | None:
        if not isinstance(node, Assign):
            return None
        stored = [access for access in accesses(node.value) if access.tensor in formats]
        driven = {name for access in stored for name in _stepped(_with_stored(access, formats[access.tensor]))}
        return Assign(node.target, node.operator, transform_expression(node.value, lambda value: _chosen(value, formats, driven)))

    return transform(statement, rule)


def _chosen(value: Expr, formats: Mapping[str, Format], driven: set[str]) -> Expr | None:
    if not isinstance(value, Access) or value.protocols:
        return None
    if value.tensor in formats:
        return _with_stored(value, formats[value.tensor])
    return replace(value, protocols=tuple("locate" if set(subscript.indices) <= driven else "step" for subscript in value.subscripts))


def _with_stored(access: Access, form: Format) -> Access:
    if access.protocols:
        return access
    chosen = level_protocols(form)
    return replace(access, protocols=tuple(chosen[form.level_of(mode)] for mode in range(len(form))))


def level_protocols(form: Format) -> tuple[str, ...]:
    """Return the protocols that the levels of a stored operand are made for, outermost first."""
    return tuple("locate" if kind.located else "step" for kind in form.levels)


def _stepped(access: Access) -> set[str]:
    paired = zip(access.subscripts, access.protocols, strict=True)
    return {name for subscript, protocol in paired if protocol == "step" for name in subscript.indices}
