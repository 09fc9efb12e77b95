"""Decides whether a sparse result shares the index arrays of an operand, and in which order of levels it is then made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..concrete.nodes import Program
from ..concrete.provenance import Provenance
from ..concrete.sharing import shared_pattern
from ..format import Format
from ..notation.nodes import Access, Assignment
from .tensor_types import TensorType


def shared_type_of(
    program: Program, result: Access, requested: TensorType, kinds: Mapping[str, TensorType], keys: Mapping[Access, str]
) -> tuple[Access | None, TensorType]:
    """Return the operand access whose pattern the result has, or None, and the type of the result that shares it.

    If the operand stores the same indices in another order, as in a transposition, the result is made in that order too
    and then converted: counting and moving whole entries is faster than appending them one by one.

    Args:
        program: scheduled concrete notation.
        result: the left side.
        requested: the type of the result that the caller gets.
        kinds: the type of every stored operand, by key.
        keys: the key of every operand access.
    """
    if requested.format.is_dense or program.add != "+" or program.multiply != "*":
        return None, requested
    formats = {access.tensor: kinds[key].format for access, key in keys.items()}
    if any(kinds[key].format != formats[access.tensor] for access, key in keys.items()):
        return None, requested
    graph = Provenance(program.relations)  # type: ignore[arg-type]
    others = () if program.assembly else _other_orders(result, requested.format, formats, keys)
    for form in (requested.format, *others):
        shared = shared_pattern(program.statement, graph, result, form, formats)
        found = (access for access in keys if shared is not None and replace(access, protocols=()) == replace(shared, protocols=()))
        if (access := next(found, None)) is not None:
            return access, replace(requested, format=form)
    return None, requested


def is_copy(original: Assignment, operand: TensorType, result: TensorType) -> bool:
    """Whether an assignment stores each entry of its only operand unchanged, at the same indices."""
    target, value = original.target, original.value
    plain = original.operator == "=" and isinstance(value, Access) and set(value.subscripts) == set(target.subscripts)
    return plain and operand.dtype == result.dtype


def _other_orders(result: Access, requested: Format, formats: Mapping[str, Format], accesses: Iterable[Access]) -> tuple[Format, ...]:
    """Return the formats of operands that store each index of the result once, in another order than the requested one."""
    found = []
    for access in accesses:
        form, indices = formats[access.tensor], list(result.indices)
        same = sorted(access.indices) == sorted(indices) and len(access.subscripts) == len(indices) == len(set(indices))
        if same and not form.is_dense and form.in_memory is form:
            order = tuple(indices.index(access.subscripts[mode].index) for mode in form.order)
            found += [Format(form.levels, order)] if order != requested.order else []
    return tuple(found)
