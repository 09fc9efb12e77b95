"""Conjunctive queries evaluated by trying all values: the oracle for containment and for task sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, combinations, product

from sparsetune.tuner.asymptotic.query import Clause, Query, Term

Relations = Mapping[str, frozenset[tuple]]
"""The entries of every predicate."""

Typed = tuple[tuple[str, object], ...]
"""A tuple of (dimension, value), sorted: orders of indices do not matter."""


def clause(predicate: str, *arguments: Term) -> Clause:
    """Return the clause of a predicate and its arguments."""
    return Clause(predicate, arguments)


def answers(query: Query, relations: Relations, values: Iterable[object]) -> set[tuple]:
    """Return the head tuples of a query, with every variable tried on every value; a clause is checked once all its variables have
    values."""
    domain = list(values)
    quantified: list[Term] = sorted({term for one in query.clauses for term in one.arguments} - set(query.names), key=repr)
    names: list[Term] = [*query.names, *quantified]
    points: list[dict[Term, object]] = [{}]
    for place, name in enumerate(names):
        known = set(names[: place + 1])
        decided = [one for one in query.clauses if name in one.arguments and set(one.arguments) <= known]
        extended = ({**point, name: value} for point in points for value in domain)
        points = [point for point in extended if all(_holds(one, point, relations) for one in decided)]
    return {tuple(point[name] for name in query.names) for point in points}


def joined(query: Query, relations: Relations, values: Iterable[object]) -> set[tuple]:
    """Return the head tuples of a query as ``answers`` does, clause by clause over the entries: for larger inputs."""
    points: set[tuple[tuple[Term, object], ...]] = {()}
    for predicate, arguments in query.clauses:
        pairs = ((dict(point), entry) for point in points for entry in relations.get(predicate, frozenset()))
        points = {
            tuple(sorted(point.items(), key=repr))
            for point, entry in pairs
            if all(point.setdefault(term, value) == value for term, value in zip(arguments, entry, strict=True))
        }
    partial = {tuple(dict(point).get(name) for name in query.names) for point in points}
    domain = list(values)
    options = ([[value] if value is not None else domain for value in answer] for answer in partial)
    return set(chain.from_iterable(product(*choice) for choice in options))


def _holds(one: Clause, assigned: Mapping[Term, object], relations: Relations) -> bool:
    return tuple(assigned[term] for term in one.arguments) in relations.get(one.predicate, frozenset())


def typed(query: Query, answer: tuple) -> Typed:
    return tuple(sorted(zip((variable.dimension for variable in query.head), answer, strict=True), key=repr))


def closed(query: Query, relations: Relations, values: Iterable[object]) -> set[Typed]:
    """Return all sub-tuples of a query's answers, in any order."""
    return parts(query, answers(query, relations, list(values)))


def parts(query: Query, found: Iterable[tuple]) -> set[Typed]:
    """Return all sub-tuples of some answers of a query."""
    wholes = (typed(query, answer) for answer in found)
    return {part for whole in wholes for size in range(len(whole) + 1) for part in combinations(whole, size)}


def contained_on(contained: Query, container: Query, relations: Relations, values: Iterable[object]) -> bool:
    domain = list(values)
    wide = closed(container, relations, domain)
    return all(typed(contained, answer) in wide for answer in answers(contained, relations, domain))


def canonical_database(query: Query) -> tuple[dict[str, frozenset[tuple]], list[object]]:
    """Return the input on which a query's own variables are the coordinates, and those coordinates."""
    relations: dict[str, set[tuple]] = {}
    for predicate, arguments in query.clauses:
        relations.setdefault(predicate, set()).add(tuple(f"<{term}>" for term in arguments))
    terms = {*query.names, *(term for one in query.clauses for term in one.arguments)}
    values: list[object] = [f"<{term}>" for term in terms]
    return {name: frozenset(entries) for name, entries in relations.items()}, values or ["<any>"]
