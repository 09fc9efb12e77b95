"""Whether iterations of a loop write different components: judged by the indices of a target, through derived indices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ..format import Format
from ..notation.nodes import Access
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
    given: Collection[str], variable: str, around: Collection[str], graph: Provenance, format_of: Callable[[Access], Format | None]
) -> bool:
    """Return whether iterations of a loop have different values of the given indices while the loops around it keep their values.

    ``covers`` says it of coordinates. Different positions of an operand are different coordinates below one parent only: the indices
    of the levels above must keep their values or be among those given.
    """
    fixed = {*around, *graph.derivation(around)}
    above = (name for relation in _positions(variable, graph) for name in _above(relation, format_of(relation.access), graph))
    return covers(given, variable, graph) and all(name in fixed or covers(given, name, graph) for name in above)


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
