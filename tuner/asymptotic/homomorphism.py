"""Containment of conjunctive queries: a homomorphism from the container to the contained query proves it (Ahrens et al., section 5.1).

The head of the contained query must be covered by images of the container's head variables of the same dimension. Nothing else is
required of heads, since a task stands for all sub-tuples and permutations (section 5.2). The search backtracks over clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .query import Clause, Clauses, Query, Term

Mapped = dict[Term, Term]
"""Variables of one query to variables of another."""


def find_clause_homomorphism(source: Iterable[Clause], goal: Iterable[Clause], start: Mapping[Term, Term]) -> Mapped | None:
    """Return an extension of ``start`` that maps every clause of ``source`` to a clause of ``goal``, or None."""
    by_predicate: dict[str, list[tuple[Term, ...]]] = {}
    for predicate, arguments in goal:
        by_predicate.setdefault(predicate, []).append(arguments)
    ordered = sorted(source, key=lambda one: len(by_predicate.get(one.predicate, ())))
    if ordered and ordered[0].predicate not in by_predicate:
        return None
    return _extend(ordered, 0, by_predicate, dict(start))


def _extend(source: Sequence[Clause], place: int, goal: Mapping[str, list[tuple[Term, ...]]], mapped: Mapped) -> Mapped | None:
    if place == len(source):
        return mapped
    predicate, arguments = source[place]
    for candidate in goal[predicate]:
        added: list[Term] = []
        for term, image in zip(arguments, candidate, strict=True):
            known = mapped.get(term)
            if known is None:
                mapped[term] = image
                added.append(term)
            elif known != image:
                break
        else:
            found = _extend(source, place + 1, goal, mapped)
            if found is not None:
                return found
        for term in added:
            del mapped[term]
    return None


def find_homomorphism(container: Query, contained: Query) -> Mapped | None:
    """Return a homomorphism that proves ``contained`` to be within ``container``, or None if there is none.

    Without one, there are inputs on which the contained query is the larger one: evaluate both on the clauses of
    ``contained``, its variables taken as coordinates.
    """
    return None if container.resource != contained.resource else _cover(container, contained, 0, {})


def _cover(container: Query, contained: Query, place: int, mapped: Mapping[Term, Term]) -> Mapped | None:
    """Choose, for each head variable of the contained query, a head variable of the container that maps to it."""
    if place == len(contained.head):
        return find_clause_homomorphism(container.clauses, contained.clauses, mapped)
    goal = contained.head[place]
    for variable in container.head:
        if variable.dimension == goal.dimension and variable.name not in mapped:
            wider: Mapped = {**mapped, variable.name: goal.name}
            found = _cover(container, contained, place + 1, wider)
            if found is not None:
                return found
    return None


def implies(stronger: Clauses, weaker: Clauses) -> bool:
    """Whether a conjunction implies another; named variables are the same in both, numbered ones are quantified."""
    fixed: Mapped = {term: term for one in weaker for term in one.arguments if isinstance(term, str)}
    return find_clause_homomorphism(weaker, stronger, fixed) is not None
