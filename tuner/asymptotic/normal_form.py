"""Simplification of conjunctions: the core, in a form that is equal for equivalent conjunctions (section 5.4).

A clause is left out when the rest implies it; what remains is the core, which is unique up to the names of quantified
variables. Those are then numbered canonically, by refining classes of variables that occur alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from .homomorphism import find_clause_homomorphism
from .query import Clause, Clauses, Term


def core(clauses: Iterable[Clause], saturated: Callable[[Clauses], Clauses] | None = None) -> Clauses:
    """Return the smallest equivalent conjunction. Named variables are fixed, numbered ones quantified.

    Args:
        clauses: the conjunction.
        saturated: adds what is assumed to follow from a conjunction; with it, clauses that only follow so are left out too.
    """
    kept = frozenset(clauses)
    fixed: dict[Term, Term] = {term: term for one in kept for term in one.arguments if isinstance(term, str)}
    for one in sorted(kept, key=repr):
        rest = kept - {one}
        goal = rest if saturated is None else saturated(rest)
        if one in goal or (_loose(one, rest) and find_clause_homomorphism(kept, goal, fixed) is not None):
            kept = rest
    return kept


def _loose(one: Clause, rest: Clauses) -> bool:
    """Whether a clause has quantified variables and another of the same tensor could stand in for it."""
    return any(isinstance(term, int) for term in one.arguments) and any(other.predicate == one.predicate for other in rest)


def canonical(clauses: Iterable[Clause]) -> Clauses:
    """Number the quantified variables 0, 1, ... such that conjunctions that differ only in these numbers become equal."""
    ordered = list(clauses)
    quantified = {term for one in ordered for term in one.arguments if isinstance(term, int)}
    if not quantified:
        return frozenset(ordered)
    numbers = _Labelling(ordered, quantified).best(dict.fromkeys(quantified, 0))[1]
    return renamed(ordered, numbers)


def renamed(clauses: Iterable[Clause], names: Mapping[Term, Term]) -> Clauses:
    """Return a conjunction with other variables; what is not in the mapping stays."""
    return frozenset(Clause(predicate, tuple(names.get(term, term) for term in arguments)) for predicate, arguments in clauses)


def shifted(clauses: Iterable[Clause], by: int) -> Clauses:
    """Return a conjunction whose quantified variables have numbers that are larger by ``by``."""
    if not by:
        return frozenset(clauses)
    return frozenset(
        Clause(predicate, tuple(term + by if isinstance(term, int) else term for term in arguments)) for predicate, arguments in clauses
    )


def next_number(clauses: Iterable[Clause]) -> int:
    """Return the first number above those of all terms of some clauses."""
    return 1 + max((term for one in clauses for term in one.arguments if isinstance(term, int)), default=-1)


class _Labelling:
    """Individualization and refinement, as in graph canonization; conjunctions are tiny, so plain search is enough."""

    def __init__(self, clauses: list[Clause], quantified: AbstractSet[Term]) -> None:
        self.clauses = clauses
        self.places: dict[Term, list[tuple[int, int]]] = {term: [] for term in quantified}
        for number, one in enumerate(clauses):
            for mode, term in enumerate(one.arguments):
                if term in quantified:
                    self.places[term].append((number, mode))

    def best(self, colors: dict[Term, int]) -> tuple[list[tuple], dict[Term, int]]:
        colors = self._refined(colors)
        classes: dict[int, list[Term]] = {}
        for term, color in colors.items():
            classes.setdefault(color, []).append(term)
        tied = min((color for color, terms in classes.items() if len(terms) > 1), default=None)
        if tied is None:
            return sorted((one.predicate, self._key(one, colors)) for one in self.clauses), colors
        tries = []
        for term in classes[tied]:
            split = {other: 2 * color + 1 for other, color in colors.items()}
            split[term] -= 1
            tries.append(self.best(split))
        return min(tries, key=lambda attempt: attempt[0])

    def _refined(self, colors: dict[Term, int]) -> dict[Term, int]:
        count = len(set(colors.values()))
        while True:
            signatures = {term: (color, self._surroundings(term, colors)) for term, color in colors.items()}
            ranked = {signature: place for place, signature in enumerate(sorted(set(signatures.values())))}
            colors = {term: ranked[signature] for term, signature in signatures.items()}
            if len(ranked) == count:
                return colors
            count = len(ranked)

    def _surroundings(self, term: Term, colors: dict[Term, int]) -> tuple:
        found = ((self.clauses[number], mode) for number, mode in self.places[term])
        return tuple(sorted((one.predicate, mode, self._key(one, colors)) for one, mode in found))

    def _key(self, one: Clause, colors: dict[Term, int]) -> tuple[tuple[int, int | str], ...]:
        return tuple((1, colors[term]) if term in colors else (0, str(term)) for term in one.arguments)
