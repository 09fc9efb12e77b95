"""The cheapest forest of a contraction path by dynamic programming (Kanakagiri and Solomonik, Algorithm 1).

What may be peeled from some neighbouring terms depends only on which terms they are and on the indices of the loops around
them; for each such pair the cheapest forest is kept, and the cheapest one with another first loop. The second one is needed where the
loop directly before has the index that the cheapest begins with: a fully fused forest would have the two as one loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from ...frozen import frozen
from .contraction import Contraction, members
from .forest import Forest, Loop, Tree
from .paths import Path, Term, term_indices
from .peeling import Peeling, passed
from .separable import Peel, SeparableCost


@frozen
class Optimum:
    """A forest of least cost; ``cost`` is infinite, and ``forest`` None, where no forest is allowed."""

    cost: float
    forest: Forest | None


@frozen
class _Choice:
    """What to peel first: the index (-1: the first term itself), around how many terms, and what the whole costs then."""

    cost: float
    index: int
    terms: int


_NONE = _Choice(inf, -2, 0)


class Optimizer:
    """Finds cheapest forests; what it learns about one path serves the others.

    Args:
        peeling: the contraction and its rules.
        cost: what is minimized.
    """

    def __init__(self, peeling: Peeling, cost: SeparableCost) -> None:
        self.peeling = peeling
        self.contraction: Contraction = peeling.contraction
        self.cost = cost
        self._terms: dict[Term, Term] = {}
        self._waiting: dict[Term, int] = {}
        self._known: dict[tuple[tuple[int, ...], int], tuple[_Choice, _Choice]] = {}

    def optimum(self, path: Path) -> Optimum:
        """Return the cheapest forest of a path."""
        terms = tuple(self._terms.setdefault(term, term) for term in path)
        for term in terms:
            if term not in self._waiting:
                self._waiting[term] = term_indices(self.contraction, term)
        best = self._best(terms, 0)[0]
        if best.cost == inf:
            return Optimum(inf, None)
        return Optimum(best.cost, Forest(self.contraction, tuple(self._trees(terms, 0, -1))))

    def best(self, among: Iterable[Path]) -> Optimum:
        """Return the cheapest forest of several paths, the first of those that cost the same."""
        return min((self.optimum(path) for path in among), key=lambda found: found.cost, default=Optimum(inf, None))

    def _best(self, terms: Path, removed: int) -> tuple[_Choice, _Choice]:
        """Return the cheapest choice, and the cheapest that begins with another index."""
        key = (tuple(map(id, terms)), removed)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._searched(terms, removed)
        return found

    def _searched(self, terms: Path, removed: int) -> tuple[_Choice, _Choice]:
        first, second = _NONE, _NONE
        waiting = self._waiting[terms[0]] & ~removed
        if not waiting:
            return self._priced(terms, removed, -1, 1, self.cost.nothing), _NONE
        for index in members(waiting):
            chosen = _NONE
            for count, term in enumerate(terms, 1):
                if not self.peeling.may_run(term, index, self._waiting[term] & ~removed, count):
                    break
                inner = self._best(terms[:count], removed | 1 << index)[0].cost
                if inner < chosen.cost or self.cost.operator is not max:
                    option = self._priced(terms, removed, index, count, inner)
                    if option.cost < chosen.cost:
                        chosen = option
            if chosen.cost < first.cost:
                first, second = chosen, first
            elif chosen.cost < second.cost:
                second = chosen
        return first, second

    def _priced(self, terms: Path, removed: int, index: int, count: int, inner: float) -> _Choice:
        if inner == inf:
            return _NONE
        buffers = tuple(self.contraction.open(part) & ~removed for part in passed(terms, count)) if count < len(terms) else ()
        found = self.cost.phi(Peel(self.contraction, index, terms[:count], removed, buffers), inner)
        if count < len(terms) and found < inf:
            found = self.cost.operator(found, self._after(terms[count:], removed, index).cost)
        return _Choice(found, index, count)

    def _after(self, terms: Path, removed: int, barred: int) -> _Choice:
        """Return the cheapest choice that does not begin with an index, the one of the loop directly before."""
        first, second = self._best(terms, removed)
        is_one_loop = barred >= 0 and first.index == barred and self.peeling.rules.fused and self.peeling.shares(barred)
        return second if is_one_loop else first

    def _trees(self, terms: Path, removed: int, barred: int) -> Iterable[Tree]:
        choice = self._after(terms, removed, barred)
        if choice.index < 0:
            yield terms[0]
        else:
            yield Loop(choice.index, tuple(self._trees(terms[: choice.terms], removed | 1 << choice.index, -1)))
        if choice.terms < len(terms):
            yield from self._trees(terms[choice.terms :], removed, choice.index)


def evaluated(forest: Forest, cost: SeparableCost) -> float:
    """Return the cost of one forest."""
    return _evaluated(forest, forest.trees, 0, cost)


def _evaluated(forest: Forest, trees: tuple[Tree, ...], removed: int, cost: SeparableCost) -> float:
    terms = tuple(term for tree in trees for term in terms_of(tree))
    found: float | None = None
    done = 0
    for tree in trees:
        own = tuple(terms_of(tree))
        buffers = tuple(forest.contraction.open(part) & ~removed for part in passed(terms[done:], len(own)))
        done += len(own)
        inner, index = cost.nothing, -1
        if isinstance(tree, Loop):
            inner, index = _evaluated(forest, tree.parts, removed | 1 << tree.index, cost), tree.index
        value = inner if inner == inf else cost.phi(Peel(forest.contraction, index, own, removed, buffers), inner)
        found = value if found is None else cost.operator(found, value)
    assert found is not None
    return found


def terms_of(tree: Tree) -> Path:
    """Return the terms below a loop, in order."""
    return tuple(term for part in tree.parts for term in terms_of(part)) if isinstance(tree, Loop) else (tree,)
