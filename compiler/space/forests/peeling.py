"""The forests of a contraction path as a grammar, by peeling: an outermost loop around the first terms, then the others.

A fully fused forest belongs to exactly one choice of an index order for every term (Kanakagiri and Solomonik, Definitions 4.2 to
4.5). In partially fused ones neighbouring terms may have separate loops where they could share one.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import accumulate, chain
from math import prod

from ...frozen import frozen
from ..forms import unwatched
from ..grammar import Alternative, Derivation, Grammar
from .contraction import Contraction, members
from .forest import Forest, Loop, Tree
from .paths import Path, PathRules, Term, paths, term_indices


@frozen
class ForestRules:
    """Rules that say which forests there are.

    Attributes:
        paths: which contraction paths.
        fused: every outermost loop that neighbouring terms agree on is shared.
        derived: terms that read an intermediate made from a sparse operand keep its storage order too (section 4.1.2 of SpTTN-Cyclops);
            otherwise only those that read the operand itself do, as buffers are dense (section 4.5 of SparseAuto).
        memory_depth: the most modes of a buffer; None: any number.
        loop_depth: the most nested loops; None: any number.
    """

    paths: PathRules = field(default_factory=PathRules)
    fused: bool = True
    derived: bool = True
    memory_depth: int | None = None
    loop_depth: int | None = None


@frozen
class Whole:
    """All forests."""


@frozen
class Rest:
    """Neighbouring terms inside loops that all of them share.

    Attributes:
        terms: in order of execution.
        removed: the indices of these loops.
        barred: the index of the loop directly before, which the first loop here must not have; or -1.
    """

    terms: Path
    removed: int
    barred: int = -1


@frozen
class Peeled:
    """The next loop: its index, and around how many of the terms it stands. Without an index: the first term, which has all its loops."""

    index: int
    terms: int


FIRST = Peeled(-1, 1)
Symbol = Whole | Rest


class Peeling:
    """The forests of a contraction under rules: a grammar.

    Args:
        contraction: what is computed.
        rules: which forests there are.
        watch: called again and again while forests are counted and sought; it may raise to end that.
    """

    def __init__(self, contraction: Contraction, rules: ForestRules, watch: Callable[[], None] = unwatched) -> None:
        self.watch = watch
        self.contraction = contraction
        self.rules = rules
        self.grammar: Grammar[Symbol] = Grammar(self._alternatives)
        self._before: dict[tuple[int, int], int] = {}

    def paths(self) -> Iterator[Path]:
        """Yield the contraction paths, in canonical order."""
        deepest = self.rules.loop_depth
        for path in paths(self.contraction, self.rules.paths):
            self.watch()
            if deepest is None or path_depth(self.contraction, path) <= deepest:
                yield path

    def _alternatives(self, symbol: Symbol) -> Sequence[Alternative[Symbol]]:
        if isinstance(symbol, Whole):
            return tuple(Alternative(path, (Rest(path, 0),)) for path in self.paths())
        self.watch()
        return tuple(Alternative(label, self.parts(symbol, label)) for label in self.peelings(symbol))

    def peelings(self, rest: Rest) -> Iterator[Peeled]:
        """Yield what may come next, in canonical order."""
        waiting = [term_indices(self.contraction, term) & ~rest.removed for term in rest.terms]
        if not waiting[0]:
            if self._fits(rest, 1):
                yield FIRST
            return
        for index in members(waiting[0]):
            if index == rest.barred:
                continue
            for count, (term, indices) in enumerate(zip(rest.terms, waiting, strict=True), 1):
                if not self.may_run(term, index, indices, count):
                    break
                if self._fits(rest, count):
                    yield Peeled(index, count)

    def parts(self, rest: Rest, label: Peeled) -> tuple[Rest, ...]:
        """Return what stands in the loop that was peeled, and what comes after it."""
        inner = () if label == FIRST else (Rest(rest.terms[: label.terms], rest.removed | 1 << label.index),)
        after = rest.terms[label.terms :]
        barred = label.index if self.rules.fused and self.shares(label.index) else -1
        return (*inner, Rest(after, rest.removed, barred)) if after else inner

    def may_run(self, term: Term, index: int, waiting: int, place: int) -> bool:
        """Return whether a term may stand in a loop that is next.

        Args:
            term: the term.
            index: of the loop.
            waiting: the indices of the term that have no loop yet.
            place: its number among the terms in the loop.
        """
        return bool(waiting >> index & 1 and not self.before(term, index) & waiting and (place == 1 or self.shares(index)))

    def shares(self, index: int) -> bool:
        """Return whether terms may share loops over an index; loops over stored fibres are not shared, since forests by
        coordinates have those."""
        return self.contraction.fibres is None or index != self.contraction.fibres.index

    def before(self, term: Term, index: int) -> int:
        """Return the indices that must come before an index since a term's sparse operands store them above it."""
        operands = term.operands if self.rules.derived else sum(part for part in term.parts if not part & (part - 1))
        key = (operands & self.contraction.sparse, index)
        found = self._before.get(key)
        if found is None:
            found = 0
            for number, levels in self.contraction.chains:
                if key[0] >> number & 1 and index in levels:
                    found |= sum(1 << other for other in levels[: levels.index(index)])
            self._before[key] = found
        return found

    def count(self) -> int:
        """Return how many forests there are.

        There are as many fully fused ones as combinations of index orders (section 4.1.2).
        """
        if self.rules.fused and self.rules.memory_depth is None:
            return sum(prod(map(self.order_count, path)) for path in self.paths())
        return self.grammar.count(Whole())

    def order_count(self, term: Term) -> int:
        """Return how many index orders a term has."""
        return self.grammar.count(Rest((term,), 0))

    def sample(self, count: int, seed: int) -> Iterator[Forest]:
        """Yield forests drawn uniformly, with replacement."""
        source = random.Random(seed)
        if self.rules.fused and self.rules.memory_depth is None:
            paths = tuple(self.paths())
            sizes = tuple(accumulate(prod(map(self.order_count, path)) for path in paths))
            for _ in range(count if sizes and sizes[-1] else 0):
                path = paths[bisect_right(sizes, source.randrange(sizes[-1]))]
                orders = [(term, self._order(term, source)) for term in path]
                yield Forest(self.contraction, tuple(fused(orders, self.shares)))
            return
        size = self.count()
        for _ in range(count if size else 0):
            yield self.forest(self.grammar.derivation(Whole(), source.randrange(size)))

    def _order(self, term: Term, source: random.Random) -> tuple[int, ...]:
        rest = Rest((term,), 0)
        derivation = self.grammar.derivation(rest, source.randrange(self.grammar.count(rest)))
        found = []
        while derivation.label != FIRST:
            assert isinstance(derivation.label, Peeled)
            found.append(derivation.label.index)
            (derivation,) = derivation.parts
        return tuple(found)

    def admits(self, forest: Forest) -> bool:
        """Return whether a forest is among those of the rules; nothing is counted."""
        return forest.path in self.paths() and self._admits(forest.trees, Rest(forest.path, 0))

    def _admits(self, trees: Sequence[Tree], rest: Rest) -> bool:
        first, *others = trees
        label = Peeled(first.index, leaf_count(first)) if isinstance(first, Loop) else FIRST
        if label not in set(self.peelings(rest)):
            return False
        parts = self.parts(rest, label)
        inside = [first.parts] if isinstance(first, Loop) else []
        below = [*inside, others] if others else inside
        return len(below) == len(parts) and all(self._admits(own, part) for own, part in zip(below, parts, strict=True))

    def _fits(self, rest: Rest, count: int) -> bool:
        """Return whether no buffer between the first terms and the others has too many modes."""
        most = self.rules.memory_depth
        return most is None or all(
            (self.contraction.open(part) & ~rest.removed).bit_count() <= most for part in passed(rest.terms, count)
        )

    def forest(self, derivation: Derivation) -> Forest:
        """Return the forest that a derivation of the whole stands for."""
        assert isinstance(derivation.label, tuple)
        return Forest(self.contraction, tuple(self._trees(derivation.label, derivation.parts[0])))

    def _trees(self, terms: Path, derivation: Derivation) -> Iterator[Tree]:
        label = derivation.label
        assert isinstance(label, Peeled)
        parts = derivation.parts
        if label == FIRST:
            yield terms[0]
        else:
            yield Loop(label.index, tuple(self._trees(terms[: label.terms], parts[0])))
            parts = parts[1:]
        if parts:
            yield from self._trees(terms[label.terms :], parts[0])


def derivation_of(forest: Forest) -> Derivation:
    """Return the derivation of a forest, if it is in the space."""
    return Derivation(forest.path, 0, (_derived(forest.trees),))


def _derived(trees: tuple[Tree, ...]) -> Derivation:
    first, *others = trees
    after = (_derived(tuple(others)),) if others else ()
    if isinstance(first, Loop):
        return Derivation(Peeled(first.index, leaf_count(first)), 0, (_derived(first.parts), *after))
    return Derivation(FIRST, 0, after)


def leaf_count(tree: Tree) -> int:
    """Return how many terms stand below a loop; of a term, 1."""
    return sum(map(leaf_count, tree.parts)) if isinstance(tree, Loop) else 1


def fused(orders: Sequence[tuple[Term, tuple[int, ...]]], shares: Callable[[int], bool] = lambda index: True) -> Iterator[Tree]:
    """Yield the trees of the fully fused forest of an index order for every term (Definitions 4.3 and 4.4).

    Args:
        orders: terms with their index orders.
        shares: whether neighbours share loops over an index.
    """
    while orders:
        term, first = orders[0]
        if not first:
            yield term
            orders = orders[1:]
            continue
        parted = (place for place, (_, order) in enumerate(orders) if order[:1] != first[:1] or (place and not shares(first[0])))
        count = next(parted, len(orders))
        yield Loop(first[0], tuple(fused([(other, order[1:]) for other, order in orders[:count]], shares)))
        orders = orders[count:]


def passed(terms: Path, count: int) -> Iterator[int]:
    """Yield the intermediates that the first of some terms compute for the others among them."""
    read = set(chain.from_iterable(term.parts for term in terms[count:]))
    return (term.operands for term in terms[:count] if term.operands in read)


def path_depth(contraction: Contraction, path: Path) -> int:
    """Return the most nested loops in the forests of a path."""
    return max(term_indices(contraction, term).bit_count() for term in path)

