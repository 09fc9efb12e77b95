"""Predicates of the abstract interpretation: disjunctions of conjunctions, interned, with memoized operations.

Guards of loops and states of tensors are such predicates. A conjunction is kept as its core, a disjunction without the
members that others imply, so equivalent guards are equal numbers and every operation is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .homomorphism import implies
from .normal_form import canonical, core, next_number, renamed, shifted
from .premises import Premises
from .query import Clause, Clauses, Term


class Predicates:
    """Predicates as numbers. ``true`` and ``false`` are two of them.

    Named variables are free (indices of open loops and of workspaces), numbered ones are quantified.
    """

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._conjunctions: list[Clauses] = []
        self._conjunction_numbers: dict[Clauses, int] = {}
        self._members: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._conjoined: dict[tuple[int, int], int] = {}
        self._disjoined: dict[tuple[int, int], int] = {}
        self._quantified: dict[tuple[int, frozenset[str]], int] = {}
        self._implied: dict[tuple[int, int], bool] = {}
        self.false = self._intern(())
        self.true = self.of_clauses(())

    def of_clauses(self, clauses: Iterable[Clause]) -> int:
        """Return the predicate that all clauses hold."""
        return self._intern((self._simplified(frozenset(clauses)),))

    def conjunctions(self, predicate: int) -> tuple[int, ...]:
        """Return the numbers of the conjunctions whose disjunction a predicate is."""
        return self._members[predicate]

    def clauses(self, conjunction: int) -> Clauses:
        """Return the clauses of a conjunction, given by its number."""
        return self._conjunctions[conjunction]

    def conjunction(self, first: int, second: int) -> int:
        """Return the predicate that both hold."""
        if first == second or second == self.true:
            return first
        if first == self.true:
            return second
        known = self._conjoined.get((first, second))
        if known is None:
            pairs = [self._join(one, other) for one in self._members[first] for other in self._members[second]]
            known = self._conjoined[first, second] = self._absorbed(pairs)
        return known

    def disjunction(self, first: int, second: int) -> int:
        """Return the predicate that one of the two holds."""
        if first == second or second == self.false:
            return first
        if first == self.false:
            return second
        known = self._disjoined.get((first, second))
        if known is None:
            known = self._disjoined[first, second] = self._absorbed([*self._members[first], *self._members[second]])
        return known

    def exists(self, predicate: int, names: frozenset[str]) -> int:
        """Return the predicate that it holds for some values of the named variables."""
        if not names:
            return predicate
        known = self._quantified.get((predicate, names))
        if known is None:
            known = self._absorbed([self._hide(one, names) for one in self._members[predicate]])
            self._quantified[predicate, names] = known
        return known

    def implies(self, stronger: int, weaker: int) -> bool:
        """Whether a predicate implies another, on every input that the premises allow."""
        if stronger == weaker:
            return True
        weaker_members = self._members[weaker]
        return all(any(one == other or self._implies(one, other) for other in weaker_members) for one in self._members[stronger])

    def renamed(self, predicate: int, names: Mapping[str, str]) -> int:
        """Return the predicate about other variables."""
        mapping: dict[Term, Term] = {**names}
        if all(old == new for old, new in names.items()):
            return predicate
        return self._absorbed([self._simplified(renamed(self._conjunctions[one], mapping)) for one in self._members[predicate]])

    def _intern(self, members: tuple[int, ...]) -> int:
        number = self._numbers.get(members)
        if number is None:
            number = self._numbers[members] = len(self._members)
            self._members.append(members)
        return number

    def _simplified(self, clauses: Clauses) -> int:
        saturated = self._premises.saturated if self._premises.rules else None
        simple = canonical(core(self._premises.unassumed(clauses), saturated))
        number = self._conjunction_numbers.get(simple)
        if number is None:
            number = self._conjunction_numbers[simple] = len(self._conjunctions)
            self._conjunctions.append(simple)
        return number

    def _join(self, one: int, other: int) -> int:
        key = (one, other) if one < other else (other, one)
        known = self._joined.get(key)
        if known is None:
            left, right = self._conjunctions[one], self._conjunctions[other]
            known = self._joined[key] = self._simplified(left | shifted(right, next_number(left)))
        return known

    def _hide(self, conjunction: int, names: frozenset[str]) -> int:
        clauses = self._conjunctions[conjunction]
        first = next_number(clauses)
        return self._simplified(renamed(clauses, {name: first + place for place, name in enumerate(sorted(names))}))

    def _implies(self, stronger: int, weaker: int) -> bool:
        known = self._implied.get((stronger, weaker))
        if known is None:
            assumed = self._premises.saturated(self._conjunctions[stronger]) if self._premises.rules else self._conjunctions[stronger]
            known = self._implied[stronger, weaker] = implies(assumed, self._conjunctions[weaker])
        return known

    def _absorbed(self, members: Iterable[int]) -> int:
        distinct = sorted(set(members))
        kept = [one for one in distinct if not any(self._absorbs(other, one) for other in distinct)]
        return self._intern(tuple(kept))

    def _absorbs(self, other: int, one: int) -> bool:
        """Whether ``other`` makes ``one`` superfluous; of equivalent ones the first stays."""
        return other != one and self._implies(one, other) and (other < one or not self._implies(other, one))
