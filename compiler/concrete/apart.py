"""Whether iterations of a loop write different components: judged by the indices of its target, through derived indices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ..format import Format
from ..notation.nodes import Access, Affine, Expr, Mul
from ..views import View
from .nodes import Assign
from .provenance import Provenance
from .relations import CoordRelation, PosRelation


def covers(given: Collection[str], variable: str, graph: Provenance) -> bool:
    """Return whether different values of a variable mean different values of the given indices.

    True for an index itself, for what was derived from covered indices alone, and for what can be put together from
    covered pieces.
    """
    if variable in given or covered_from_above(given, variable, graph):
        return True
    return any(all(covers(given, child, graph) for child in relation.children) for relation in graph.relations_from(variable))


def covered_from_above(given: Collection[str], variable: str, graph: Provenance) -> bool:
    """Return whether a variable is one of the given indices or was derived from such alone."""
    parents = graph.parents(variable)
    return variable in given or (bool(parents) and all(covered_from_above(given, parent, graph) for parent in parents))


def apart(
    write: Assign, variable: str, around: Collection[str], graph: Provenance, format_of: Callable[[Access], Format | None]
) -> bool:
    """Return whether iterations of a loop write different components while the loops around it keep their values.

    ``covers`` says it of coordinates. Different positions of an operand are different coordinates below one parent only: the indices
    of the levels above must keep their values or be among those of the component. Of ``y(2*i + 1)``, which is ``y(s)`` times a point where
    ``2*i + 1 - s`` is 0, the component has a coordinate s; no two values of i have the same one, unless another index changes too.
    """
    fixed = {*around, *graph.derivation(around)}
    given = _determined(write.target.indices, fixed, tuple(_zeros(write.value, format_of)))
    above = (name for relation in _positions(variable, graph) for name in _above(relation, format_of(relation.access), graph))
    return covers(given, variable, graph) and all(name in fixed or covers(given, name, graph) for name in above)


def _determined(given: Collection[str], fixed: Collection[str], zeros: Collection[Affine]) -> frozenset[str]:
    """Return the indices that have one value for given ones, where others are fixed and some sums are 0."""
    found = frozenset(given)
    while True:
        left = ([name for name in zero.indices if name not in found and name not in fixed] for zero in zeros)
        more = found.union(*(names for names in left if len(names) == 1))
        if more == found:
            return found
        found = more


def _zeros(value: Expr, format_of: Callable[[Access], Format | None]) -> Iterator[Affine]:
    """Yield the sums of indices that are 0 wherever a value has an entry: those of the points among its factors."""
    match value:
        case Mul(operands):
            for operand in operands:
                yield from _zeros(operand, format_of)
        case Access() if isinstance(form := format_of(value), View) and form.is_point:
            yield from form.compound_subscripts(value.indices).values()


def _positions(variable: str, graph: Provenance) -> Iterator[PosRelation]:
    """Yield the relations that make a variable one of positions."""
    match graph.maker(variable):
        case None | CoordRelation():
            return
        case PosRelation() as relation:
            yield relation
        case relation:
            for parent in relation.parents:
                yield from _positions(parent, graph)


def _above(relation: PosRelation, form: Format | None, graph: Provenance) -> Iterator[str]:
    """Yield the indices of the levels above those whose positions a relation counts."""
    own = graph.originals(relation.parent)
    for mode in form.order if form is not None else ():
        names = relation.access.subscripts[mode].indices
        if set(names) & set(own):
            return
        yield from names
