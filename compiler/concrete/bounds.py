"""Checks ``bound`` directives against the known ranges: when a schedule is applied, and when operands are bound."""

from __future__ import annotations

from collections.abc import Mapping

from .provenance import Provenance
from .relations import BoundRelation


def bound_holds(kind: str, amount: int, low: int, high: int | None) -> bool:
    """Return whether a bound holds of the range ``[low, high)``; where ``high`` is None, as far as can be told from ``low``."""
    match kind:
        case "min_exact":
            return amount == low
        case "min_constraint":
            return amount <= low
        case "max_exact":
            return high is None or amount == high
        case "max_constraint":
            return high is None or high <= amount
        case _:
            return high is None or (high - low) % amount == 0


def broken_bound(relations: tuple[object, ...], extents: Mapping[str, int]) -> str:
    """Return a text that says which bound of a program does not hold for some extents and why, or "".

    Args:
        relations: the provenance of the program.
        extents: of all original indices.
    """
    bounds = [relation for relation in relations if isinstance(relation, BoundRelation)]
    if not bounds:
        return ""
    graph = Provenance(relations)  # type: ignore[arg-type]
    for relation in bounds:
        low, length = graph.constant_low(relation.parent), graph.constant_extent(relation.parent, extents)
        if low is not None and relation.kind in ("min_exact", "min_constraint") and bound_holds(relation.kind, relation.amount, low, None):
            continue
        if low is None or length is None:
            return f"{relation.kind} {relation.amount} of {relation.parent} cannot be checked"
        if not bound_holds(relation.kind, relation.amount, low, low + length):
            return f"{relation.kind} {relation.amount} does not hold of {relation.parent}, which runs from {low} to {low + length - 1}"
    return ""
