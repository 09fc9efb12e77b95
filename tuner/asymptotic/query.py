"""Conjunctive queries: the pieces of which task sets are unions (Ahrens et al., section 5.1).

``{(i,j) | exists k1: B(i,k1) and C(k1,j)}`` is a query with the head ``i, j`` and two clauses. A task stands for all tuples
of subsets of its indices in any order; that is in the containment test (``homomorphism``), not spelled out here. Head
variables have dimensions (section 5.2), so a head without clauses is a whole iteration space and not an infinite set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...compiler.fresh import numbered
from ...compiler.frozen import frozen

Term = str | int
"""A named variable (an index) or, as a number, an anonymous one that is existentially quantified."""


class Clause(NamedTuple):
    """``predicate(arguments)``: the entry of a tensor, or another fact about its arguments, is there."""

    predicate: str
    arguments: tuple[Term, ...]


Clauses = frozenset[Clause]
"""A conjunction; the empty one is true."""


class Variable(NamedTuple):
    """A head variable and the dimension that it ranges over."""

    name: str
    dimension: str


@frozen
class Query:
    """A conjunctive query. Variables that are not in the head are existentially quantified.

    The order of the head is that in which it is printed; it has no meaning. Queries about different resources ("time",
    "memory") are never compared.
    """

    head: tuple[Variable, ...]
    clauses: Clauses = frozenset()
    resource: str = "time"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables of the head, in the order in which it is printed."""
        return tuple(variable.name for variable in self.head)


TaskSet = tuple[Query, ...]
"""A union of conjunctive queries."""


def variables(clauses: Iterable[Clause]) -> frozenset[Term]:
    """Return all terms of some clauses."""
    return frozenset(term for _, arguments in clauses for term in arguments)


def show_query(query: Query, names: Mapping[tuple[str, int], str] | None = None) -> str:
    """Return set notation, such as ``{(i,k) | exists j1: B(i,k) and C(k,j1)}``; resources other than time stand before it.

    Args:
        query: the query.
        names: what to call the variables in a mode of a tensor, (tensor, mode) to name; a number is appended.
    """
    quantified = quantified_names(query, names or {})
    clauses = sorted(_show_clause(one, quantified) for one in query.clauses)
    exists = f"exists {','.join(sorted(quantified.values()))}: " if quantified else ""
    condition = f" | {exists}{' and '.join(clauses)}" if clauses else ""
    resource = "" if query.resource == "time" else f"{query.resource} "
    return resource + "{(" + ",".join(query.names) + ")" + condition + "}"


def quantified_names(query: Query, names: Mapping[tuple[str, int], str]) -> dict[Term, str]:
    """Return what to call the variables of a query that are not in its head; see ``show_query``."""
    found: dict[Term, str] = {}
    taken = set(query.names)
    for predicate, arguments in sorted(query.clauses, key=repr):
        for mode, term in enumerate(arguments):
            if term in found or term in query.names:
                continue
            found[term] = numbered(names.get((predicate, mode), "x"), taken)
            taken.add(found[term])
    return found


def _show_clause(one: Clause, quantified: Mapping[Term, str]) -> str:
    return f"{one.predicate}({','.join(quantified.get(term, str(term)) for term in one.arguments)})"


def show_task_set(tasks: Iterable[Query], names: Mapping[tuple[str, int], str] | None = None) -> str:
    """Return the union of queries, joined by `` + ``; an empty union costs nothing beyond the sunk costs."""
    return " + ".join(show_query(query, names) for query in tasks) or "{}"
