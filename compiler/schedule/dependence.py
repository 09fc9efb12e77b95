"""On which loops a part of a program depends, also through derived indices and workspaces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from ..concrete.nodes import Assign, Forall, Stmt, Where, targets
from ..concrete.provenance import Provenance
from ..concrete.relations import Relation
from ..notation.nodes import Expr, accesses


@lru_cache(maxsize=1024)
def graph_of(relations: tuple[object, ...]) -> Provenance:
    """Return the provenance of a program's relations. It is cached, since every check of every directive needs it."""
    return Provenance(relation for relation in relations if isinstance(relation, Relation))


def uses(needs: Collection[str], loop: str, graph: Provenance) -> bool:
    """Return whether indices depend on a loop: one of them is the loop's index, or an index from which that was derived."""
    return any(name in needs for name in graph.ancestors(loop))


def partly_used(needs: Collection[str], loop: str, graph: Provenance) -> bool:
    """Return whether indices depend on some, but not all, of the original indices through which a loop runs."""
    originals = graph.originals(loop)
    return len(originals) > 1 and uses(needs, loop, graph) and not all(uses(needs, index, graph) for index in originals)


def needs_of_expression(expr: Expr, producers: Mapping[str, Stmt], graph: Provenance) -> frozenset[str]:
    """Return the indices that an expression depends on.

    Args:
        expr: the expression.
        producers: the statements that fill the workspaces in scope; the indices that they need from outside count too.
        graph: provenance of the program.
    """
    found = accesses(expr)
    through = (producers[access.tensor] for access in found if access.tensor in producers)
    own = frozenset(name for access in found for name in access.indices)
    return own.union(*(needs_of_statement(producer, producers, graph) for producer in through))


def needs_of_statement(statement: Stmt, producers: Mapping[str, Stmt], graph: Provenance, inside: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the indices of outer loops on which a statement depends, without those of the loops ``inside``."""
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
