"""Orders of loops that rules allow: counted by dynamic programming, listed, drawn uniformly."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

Allowed: TypeAlias = "Callable[[frozenset[str], str], bool]"
"""Whether a loop may come next, given the loops that stand outside it."""


class Orders:
    """The orders of some loops that all of some rules allow.

    Args:
        loops: in the order in which they are tried at every place.
        rules: each is asked for every loop, from the outside inwards.
    """

    def __init__(self, loops: Sequence[str], rules: Sequence[Allowed]) -> None:
        self._loops, self._rules = loops, rules
        self._known: dict[frozenset[str], int] = {}

    def count(self, placed: frozenset[str] = frozenset()) -> int:
        """Return in how many ways the loops that are left can follow those placed."""
        if placed not in self._known:
            self._known[placed] = sum(self.count(placed | {loop}) for loop in self._next(placed)) or len(placed) == len(self._loops)
        return self._known[placed]

    def all(self, order: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """Yield every order that begins so, those that change least first; there may be too many to count."""
        if len(order) == len(self._loops):
            yield order
            return
        for loop in self._next(frozenset(order)):
            yield from self.all((*order, loop))

    def draw(self, source: random.Random) -> tuple[str, ...]:
        """Return one order; there has to be one."""
        order: tuple[str, ...] = ()
        while len(order) < len(self._loops):
            loops = self._next(frozenset(order))
            order = (*order, *source.choices(loops, [self.count(frozenset((*order, loop))) for loop in loops]))
        return order

    def _next(self, placed: frozenset[str]) -> list[str]:
        return [loop for loop in self._loops if loop not in placed and all(rule(placed, loop) for rule in self._rules)]
