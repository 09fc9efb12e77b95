"""Which loops a part of a program depends on, judged through derived indices and workspaces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from ..concrete.nodes import Assign, Forall, Stmt, Where, targets
from ..concrete.provenance import Provenance
from ..concrete.relations import Relation
from ..notation.nodes import Expr, accesses


@lru_cache(maxsize=1024)
def graph_of(relations: tuple[object, ...]) -> Provenance:
    """Return the provenance of a program's relations; it is asked for by every check of every directive."""
    return Provenance(relation for relation in relations if isinstance(relation, Relation))


def uses(needs: Collection[str], loop: str, graph: Provenance) -> bool:
    """Return whether indices depend on a loop: they name it, or something that it was derived from."""
    return any(name in needs for name in graph.ancestors(loop))


def partly_used(needs: Collection[str], loop: str, graph: Provenance) -> bool:
    """Return whether indices depend on some, not all, of the original indices that a loop runs through."""
    originals = graph.originals(loop)
    return len(originals) > 1 and uses(needs, loop, graph) and not all(uses(needs, index, graph) for index in originals)


def needs_of_expression(expr: Expr, producers: Mapping[str, Stmt], graph: Provenance) -> frozenset[str]:
    """Return the indices that an expression depends on.

    Args:
        expr: the expression.
        producers: the statements that fill the workspaces that are in scope; what they need from outside counts too.
        graph: provenance of the program.
    """
    found = accesses(expr)
    through = (producers[access.tensor] for access in found if access.tensor in producers)
    own = frozenset(name for access in found for name in access.indices)
    return own.union(*(needs_of_statement(producer, producers, graph) for producer in through))


def needs_of_statement(statement: Stmt, producers: Mapping[str, Stmt], graph: Provenance, inside: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the indices that a statement takes from the loops around it; ``inside`` are loops that do not count as such."""
    match statement:
        case Assign(target, _, value):
            named = frozenset(target.indices).union(*(access.indices for access in accesses(value)))
            outer = {name: made for name, made in producers.items() if name != target.tensor}
            through = (outer[access.tensor] for access in accesses(value) if access.tensor in outer)
            determined = {*inside, *graph.derivation(inside)}
            return (named - determined).union(*(needs_of_statement(producer, outer, graph) for producer in through))
        case Forall(index, body, _):
            return needs_of_statement(body, producers, graph, (*inside, index))
        case Where(_, producer):
            made = targets(producer)
            outer = {name: found for name, found in producers.items() if name not in made}
            return frozenset().union(*(needs_of_statement(part, outer, graph, inside) for part in statement.children))
        case _:
            return frozenset().union(*(needs_of_statement(part, producers, graph, inside) for part in statement.children))
