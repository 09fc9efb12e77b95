"""Which costs are beaten: a cost is beaten if another one is never above it for admitted sizes, and below it for some (Dias et al., 5.2).

Three ways decide, the cheap ones first. A cost that is lower at some admitted sizes is not beaten. A difference of posynomials is not
negative if every negative monomial is covered by positive ones that are never smaller, by intervals. Z3 decides the rest, over real
numbers. A cost of which Z3 finds nothing counts as not beaten.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...compiler.space.forests.costs import Costs
from ...compiler.space.forests.posynomial import Monomial, Peak, Posynomial
from .domain import Domain

POINTS = 400
"""Number of admitted sizes at which costs are compared before anything is proved."""
SOLVER_MILLISECONDS = 300
_CLOSE = 1e-9  # relative differences that come from rounding


class Dominance:
    """Compares costs over a domain; answers are remembered.

    Args:
        domain: the admitted sizes.
        plain: use Z3 alone (to check the other two ways).
        watch: called now and then; ends a search that takes too long by raising an exception.
    """

    def __init__(self, domain: Domain, plain: bool = False, watch: Callable[[], None] = lambda: None) -> None:
        self.domain = domain
        self._plain, self._watch = plain, watch
        self._known: dict[tuple[Posynomial, tuple[Posynomial, ...]], bool] = {}
        self.asked = 0

    @cached_property
    def _points(self) -> list[dict[str, float]]:
        return self.domain.points(POINTS)

    def undominated(self, found: Sequence[Costs]) -> list[Costs]:
        """Return the costs that no other one beats, in their order: none is never above it in time and memory, and somewhere below."""
        times, memories = self._values([one.time for one in found]), self._values([one.memory for one in found])
        kept = []
        for place, one in enumerate(found):
            self._watch()
            never_above = _at_most(times, times[place]) & _at_most(memories, memories[place])
            below = (~_at_least(times, times[place]) | ~_at_least(memories, memories[place])).any(axis=1)
            candidates = [int(other) for other in np.flatnonzero(never_above.all(axis=1) & below) if other != place]
            beaten = any(
                self.never_above(found[other].time, one.time) and self.never_above(found[other].memory, one.memory) for other in candidates
            )
            if not beaten:
                kept.append(one)
        return kept

    def _values(self, found: Iterable[Posynomial | Peak]) -> np.ndarray:
        """Return the values of costs at the points of the domain that are tried, a row for each cost."""
        return np.array([[one.at(sizes) for sizes in self._points] for one in found])

    def never_above(self, one: Posynomial | Peak, other: Posynomial | Peak) -> bool:
        """Return whether a cost is proved to be at most another for all admitted sizes."""
        if self.domain.is_point:
            (sizes,) = self._points
            return one.at(sizes) <= other.at(sizes) * (1 + _CLOSE)
        return all(self._below(part, other.parts) for part in one.parts)

    def _below(self, one: Posynomial, others: tuple[Posynomial, ...]) -> bool:
        """Return whether a cost is proved to be at most the largest of others for all admitted sizes."""
        key = (one, others)
        found = self._known.get(key)
        if found is None:
            covered = not self._plain and any(self._covered(one, other) for other in others)
            found = self._known[key] = covered or self._proved(one, others)
        return found

    # Intervals

    def _covered(self, one: Posynomial, other: Posynomial) -> bool:
        """Return whether intervals show that the first is at most the second: each monomial of which the first has more is covered by
        monomials of which the second has more and which are never smaller."""
        difference = Counter(dict(other.terms))
        difference.subtract(dict(one.terms))
        left = {monomial: float(count) for monomial, count in difference.items() if count > 0}
        for monomial, count in difference.items():
            needed = float(-count)
            if needed <= 0:
                continue
            ratios = sorted(((self.least_ratio(larger, monomial), larger) for larger in left), reverse=True)
            for ratio, larger in ratios:
                if needed <= 0 or ratio <= 0:
                    break
                used = min(left[larger], needed / ratio)
                left[larger] -= used
                needed -= used * ratio
            if needed > _CLOSE:
                return False
        return True

    def least_ratio(self, above: Monomial, below: Monomial) -> float:
        """Return a lower bound of the quotient of two monomials."""
        over, under = Counter(above), Counter(below)
        over, under = over - under, under - over
        best = 0.0
        for bounded in self._bounded_below(over, under):
            best = max(best, bounded)
        return best

    def _bounded_below(self, over: Counter[str], under: Counter[str]) -> Iterable[float]:
        """Yield lower bounds: from the intervals, and with stored positions in the denominator replaced by upper bounds of them."""
        yield self._interval(over, under)
        for operand in self.domain.stored:
            symbols = operand.symbols
            for level, symbol in enumerate(symbols):
                if not under[symbol]:
                    continue
                less = under - Counter([symbol])
                for deeper in symbols[level + 1 :]:  # each position has at least one below it
                    if over[deeper]:
                        yield from self._bounded_below(over - Counter([deeper]), less)
                more = Counter(operand.levels[: level + 1])
                yield from self._bounded_below(over - more, less + (more - over))
                if level:
                    more = Counter([symbols[level - 1], operand.levels[level]])
                    yield from self._bounded_below(over - more, less + (more - over))

    def _interval(self, over: Counter[str], under: Counter[str]) -> float:
        logarithm = sum(count * math.log(max(self._range(name)[0], 1e-300)) for name, count in over.items())
        logarithm -= sum(count * math.log(self._range(name)[1]) for name, count in under.items())
        return math.exp(max(min(logarithm, 700.0), -700.0)) * (1 - _CLOSE)

    def _range(self, symbol: str) -> tuple[float, float]:
        if symbol in self.domain.extents:
            return self.domain.extents[symbol]
        return self._positions[symbol]

    @cached_property
    def _positions(self) -> dict[str, tuple[float, float]]:
        """The least and largest number of positions of every level: they grow with extents and shares."""
        least, most = (
            self.domain.sizes({name: bounds[end] for name, bounds in (*self.domain.extents.items(), *self.domain.shares.items())})
            for end in (0, 1)
        )
        return {name: (least[name], most[name]) for name in least}

    # Z3

    def _proved(self, one: Posynomial, others: tuple[Posynomial, ...]) -> bool:
        """Return whether Z3 proves that no admitted sizes, whatever the pattern, make a cost larger than all others."""
        self.asked += 1
        self._watch()
        try:
            import z3
        except ImportError:
            return False
        variables = {name: z3.Real(name) for name in (*self.domain.extents, *self._shares, *self._positions)}
        solver = z3.Solver()
        solver.set("timeout", SOLVER_MILLISECONDS)
        for constraint in self._constraints(variables):
            solver.add(constraint)
        for other in others:
            solver.add(_written(one, variables) > _written(other, variables))
        return solver.check() == z3.unsat

    @property
    def _shares(self) -> tuple[str, ...]:
        return tuple(f"share_{name}" for name in self.domain.shares)

    def _constraints(self, variables: Mapping[str, Any]) -> Iterable[Any]:
        for name, (low, high) in self.domain.extents.items():
            yield variables[name] >= low
            yield variables[name] <= high
        for (one, other), (low, high) in self.domain.quotients.items():
            yield variables[one] >= low * variables[other]
            yield variables[one] <= high * variables[other]
        for operand in self.domain.stored:
            share = variables[f"share_{operand.name}"]
            yield share >= self.domain.shares[operand.name][0]
            yield share <= self.domain.shares[operand.name][1]
            everywhere: Any = 1
            above: Any = 1
            for level, (index, symbol) in enumerate(zip(operand.levels, operand.symbols, strict=True), 1):
                positions = variables[symbol]
                low, high = self._positions[symbol]
                everywhere = everywhere * variables[index]
                yield positions >= low
                yield positions <= high
                yield positions <= above * variables[index]
                if level > 1:
                    yield positions >= above
                above = positions
            yield above == share * everywhere


def _at_most(values: np.ndarray, row: np.ndarray) -> np.ndarray:
    return values <= row * (1 + _CLOSE)


def _at_least(values: np.ndarray, row: np.ndarray) -> np.ndarray:
    return values >= row * (1 - _CLOSE)


def _written(cost: Posynomial, variables: Mapping[str, Any]) -> Any:
    total: Any = 0
    for monomial, coefficient in cost:
        product: Any = coefficient
        for name in monomial:
            product = product * variables[name]
        total = total + product
    return total
