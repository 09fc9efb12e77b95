"""Renames indices, tensors and new names in directives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..notation.nodes import Access, Affine, Assignment, Expr, transform_expression
from .directives import Directive


def made_by(directive: Directive) -> Iterator[str]:
    """Yield the names that a directive introduces."""
    for parameter in directive.parameters:
        value = getattr(directive, parameter.field)
        if parameter.kind == "new":
            yield value
        elif parameter.kind == "news":
            kept = getattr(directive, "indices", ())
            yield from (name for name in value if name not in kept)
        elif parameter.kind == "addend":
            yield from (part.target.tensor for part in value if isinstance(part, Assignment))


def renamed_directive(directive: Directive, names: Mapping[str, str]) -> Directive:
    """Return a directive with other names; names that are not in the mapping stay."""
    changes = {}
    for parameter in directive.parameters:
        if parameter.kind in ("index", "name", "new", "indices", "news", "expression", "addend", "access"):
            changes[parameter.field] = _renamed(getattr(directive, parameter.field), names)
    return replace(directive, **changes)


def _renamed(value: object, names: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple(_renamed(item, names) for item in value)
    if isinstance(value, Assignment):
        target = rename_expression(value.target, names)
        assert isinstance(target, Access)
        return Assignment(target, value.operator, rename_expression(value.value, names))
    return rename_expression(value, names) if isinstance(value, Expr) else value


def rename_expression(value: Expr, names: Mapping[str, str]) -> Expr:
    """Return an expression with other names of tensors and indices; names that are not in the mapping stay."""
    return transform_expression(value, lambda node: _renamed_access(node, names) if isinstance(node, Access) else None)


def _renamed_access(access: Access, names: Mapping[str, str]) -> Access:
    subscripts = tuple(
        Affine(tuple((names.get(name, name), coefficient) for name, coefficient in subscript.terms), subscript.constant)
        for subscript in access.subscripts
    )
    return Access(names.get(access.tensor, access.tensor), subscripts, access.protocols, span=access.span)
