"""Forests by cost: all different costs of a space with the number of forests of each, found without listing forests.

The cost of a term depends on the loops around it only through the level down to which a sparse operand drives them, so the rest of a
forest has few different costs. A grammar over pairs (rest, its cost) counts, lists and finds the forests of one cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ...format import Format
from ...frozen import frozen
from ..grammar import Alternative, Derivation, Grammar
from .costs import Costs, driven_product, elements
from .forest import Forest
from .paths import Term, term_indices
from .peeling import FIRST, Peeled, Peeling, Rest, passed, path_depth
from .posynomial import Peak, Posynomial
from .separable import Peel
from .work import is_driven

Levels = tuple[int, ...]
"""For every sparse operand the deepest level that the loops so far run over; -1: none."""


@frozen
class Priced:
    """Neighbouring terms inside shared loops, in the forests of one cost."""

    rest: Rest
    levels: Levels
    costs: Costs


@frozen
class Costly:
    """All forests of one cost."""

    costs: Costs


_Symbol = Costly | Priced


def plus(one: Costs, other: Costs) -> Costs:
    """Return the costs of two parts of a forest together."""
    depths = max(one.loop_depth, other.loop_depth), max(one.memory_depth, other.memory_depth)
    return Costs(one.time + other.time, one.memory + other.memory, *depths)


class PricedForests:
    """The forests of a space by their costs.

    Args:
        peeling: the space.
        formats: of its sparse operands.
    """

    def __init__(self, peeling: Peeling, formats: Mapping[str, Format]) -> None:
        self.peeling = peeling
        self.contraction = peeling.contraction
        self.grammar: Grammar[_Symbol] = Grammar(self._alternatives)
        self._formats = formats
        self._start: Levels = (-1,) * len(self.contraction.chains)
        self._known: dict[tuple[Rest, Levels], frozenset[Costs]] = {}
        self._terms: dict[tuple[Term, Levels], Costs] = {}
        self._paths = tuple((path, path_depth(self.contraction, path)) for path in peeling.paths())

    def costs(self) -> tuple[Costs, ...]:
        """Return all different costs, in the order of the first path that has them."""
        found: dict[Costs, None] = {}
        for path, _ in self._paths:
            for one in sorted(self._of(Rest(path, 0), self._start), key=_order):
                found.setdefault(one)
        return tuple(found)

    def count(self, costs: Costs) -> int:
        """Return how many forests have some costs."""
        return self.grammar.count(Costly(costs))

    def forests(self, costs: Costs) -> Iterator[Forest]:
        """Yield the forests of some costs, in canonical order."""
        return map(self.peeling.forest, map(_plain, self.grammar.derivations(Costly(costs))))

    def _of(self, rest: Rest, levels: Levels) -> frozenset[Costs]:
        """Return the different costs of the rest."""
        key = (rest, levels)
        found = self._known.get(key)
        if found is None:
            self.peeling.watch()
            options = (self._options(rest, levels, label) for label in self.peeling.peelings(rest))
            found = self._known[key] = frozenset(whole for option in options for whole, _, _ in option)
        return found

    def _options(self, rest: Rest, levels: Levels, label: Peeled) -> Iterator[tuple[Costs, tuple[Priced, ...], Peeled]]:
        """Yield the costs that one choice may have, each with its parts."""
        own = Costs(Posynomial(), Peak((self._buffers(rest, label),)), 0, self._depth(rest, label))
        if label == FIRST:
            own = plus(own, self._term(rest.terms[0], levels))
        parts = self.peeling.parts(rest, label)
        inside = [self._driven(rest, levels, label), levels] if label != FIRST else [levels]
        choices = [[Priced(part, around, costs) for costs in self._of(part, around)] for part, around in zip(parts, inside, strict=False)]
        for combination in product(*choices):
            whole = own
            for part in combination:
                whole = plus(whole, part.costs)
            yield whole if rest.removed else replace(whole, memory=self._memory(rest, own, combination, label)), combination, label

    def _memory(self, rest: Rest, own: Costs, parts: Sequence[Priced], label: Peeled) -> Peak:
        """Return the memory of the rest of a whole forest, of which one tree is peeled: what is there while this tree runs, or later."""
        terms = rest.terms
        waiting = {part for term in terms for part in term.intermediates} - {term.operands for term in terms}
        tree = own.memory + sum((elements(self.contraction, self.contraction.open(part)) for part in waiting), Posynomial())
        count = 0 if label == FIRST else 1
        for part in parts[:count]:
            tree += part.costs.memory
        return Peak.of(size for one in (tree, *(part.costs.memory for part in parts[count:])) for size in one.parts)

    def _alternatives(self, symbol: _Symbol) -> Sequence[Alternative[_Symbol]]:
        if isinstance(symbol, Costly):
            paths = (path for path, depth in self._paths if depth == symbol.costs.loop_depth)
            wanted = ((path, Rest(path, 0)) for path in paths)
            return [
                Alternative(path, (Priced(rest, self._start, symbol.costs),))
                for path, rest in wanted
                if symbol.costs in self._of(rest, self._start)
            ]
        return [
            Alternative((label, tuple(part.costs for part in parts)), parts)
            for option in self.peeling.peelings(symbol.rest)
            for whole, parts, label in self._options(symbol.rest, symbol.levels, option)
            if whole == symbol.costs
        ]

    def _driven(self, rest: Rest, levels: Levels, label: Peeled) -> Levels:
        """Return the levels inside the loop that is peeled."""
        peel = Peel(self.contraction, label.index, rest.terms[: label.terms], rest.removed, ())
        chains = zip(levels, self.contraction.chains, strict=True)
        return tuple(
            max(level, chain.index(label.index)) if label.index in chain and is_driven(peel, 1 << number) else level
            for level, (number, chain) in chains
        )

    def _term(self, term: Term, levels: Levels) -> Costs:
        key = (term, levels)
        found = self._terms.get(key)
        if found is None:
            indices, kept = term_indices(self.contraction, term), self.contraction.written(term.operands)
            deepest = {number: level for level, (number, _) in zip(levels, self.contraction.chains, strict=True) if level >= 0}
            entered = driven_product(self.contraction, deepest, indices, self._formats)
            operations = len(term.parts) - 1 + bool(indices & ~kept)
            found = self._terms[key] = Costs(entered.scaled(operations), Peak(), indices.bit_count(), 0)
        return found

    def _buffers(self, rest: Rest, label: Peeled) -> Posynomial:
        opened = (self.contraction.open(part) & ~rest.removed for part in passed(rest.terms, label.terms))
        return sum((elements(self.contraction, mask) for mask in opened if mask), Posynomial())

    def _depth(self, rest: Rest, label: Peeled) -> int:
        opened = (self.contraction.open(part) & ~rest.removed for part in passed(rest.terms, label.terms))
        return max((mask.bit_count() for mask in opened), default=0)


def _order(costs: Costs) -> tuple[int, int, str, str]:
    return costs.loop_depth, costs.memory_depth, str(costs.time), str(costs.memory)


def _plain(derivation: Derivation) -> Derivation:
    """Return the same derivation of the space without costs."""
    label = derivation.label
    if isinstance(label, tuple) and label and isinstance(label[0], Peeled):
        label = label[0]
    return Derivation(label, derivation.choices, tuple(map(_plain, derivation.parts)))
