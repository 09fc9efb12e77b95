"""Steps of a search in the whole space: to a schedule that differs from another in one choice, or to an independent one.

Draws that are uniform over the space have directives on nearly every loop, since there are so many of these. Here each stage is drawn
given those before it, and loops get no directives but the unit that runs them; steps add the rest one choice at a time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from ..frozen import frozen
from .grammar import Alternative, Derivation
from .whole import WholeSpace
from .whole_plan import Chosen, LoopOf, Opened, Place, Start

_MOST_DIVIDED = 1
"""Most runs of indices that are transformed in an independent draw."""

_WEIGHTS = {"told": 4, "nest": 3, "beside": 2, "start": 2}
"""Weights of the kinds of steps: directives on loops, the nest below a place, choices beside the nest, loops and grouping."""


@frozen
class Spot:
    """A place of a derivation.

    Attributes:
        path: the numbers of the parts that lead to it.
        place: the symbol.
        tree: the derivation there.
    """

    path: tuple[int, ...]
    place: Place
    tree: Derivation


class Moves:
    """Draws from a space.

    Args:
        space: the space.
        seed: of the draws.
    """

    def __init__(self, space: WholeSpace, seed: int) -> None:
        self._space, self._random = space, random.Random(seed)

    def anywhere(self) -> Chosen | None:
        """Return a schedule: a start whose indices mostly stay as they are, a nest, the units that run its loops; None where
        there is no nest."""
        starts = [one for one in self._space.starts if sum(not run.is_plain for run in one.division) <= _MOST_DIVIDED]
        return self._begun(self._random.choice(starts), {})

    def near(self, chosen: Chosen) -> Chosen | None:
        """Return a schedule that differs in one choice; what depends on it is drawn anew. None where there is nothing else to choose."""
        kinds = list(_WEIGHTS)
        while kinds:
            kind = self._random.choices(kinds, [_WEIGHTS[one] for one in kinds])[0]
            found = getattr(self, f"_other_{kind}")(chosen)
            if found is not None:
                return found
            kinds.remove(kind)
        return None

    def _other_told(self, chosen: Chosen) -> Chosen | None:
        """Change one directive on a loop, or the kind of one workspace."""
        spots = [(spot, way) for spot in self._spots(chosen) if (way := self._way(spot.place, spot.tree)).ways > 1]
        if not spots:
            return None
        spot, way = self._random.choice(spots)
        choice = self._space.nests.choice(spot.place, way.label)
        value = choice.near(choice.at(spot.tree.choices), self._random)
        rank = choice.rank(value)
        assert rank is not None
        return replace(chosen, tree=_with(chosen.tree, spot.path, replace(spot.tree, choices=rank)))

    def _other_nest(self, chosen: Chosen) -> Chosen | None:
        """Take another alternative at one place of the nest."""
        spots = [spot for spot in self._spots(chosen) if len(self._ways(spot.place)) > 1]
        if not spots:
            return None
        spot = self._random.choice(spots)
        others = [way for way in self._ways(spot.place) if way.label != spot.tree.label]
        tree = self._grown(spot.place, self._random.choice(others), self._told(chosen))
        return replace(chosen, tree=_with(chosen.tree, spot.path, tree))

    def _other_beside(self, chosen: Chosen) -> Chosen | None:
        """Change a number or the order of a run, how an operand is traversed or stored, how the result is assembled, or the compiler."""
        choice = self._space.data(chosen.start)
        return replace(chosen, data=choice.near(chosen.data, self._random)) if choice.count > 1 else None

    def _other_start(self, chosen: Chosen) -> Chosen | None:
        """Transform one run of indices differently, change the grouping, or read operands in another order."""
        near = [one for one in self._space.starts if _differ(one, chosen.start) == 1]
        return self._begun(self._random.choice(near), self._told(chosen)) if near else None

    def _begun(self, start: Start, told: dict[LoopOf, Derivation]) -> Chosen | None:
        data, place = self._space.data(start), self._space.top(start)
        if not data.count or not self._ways(place):
            return None
        return Chosen(start, data.plainest(self._random), self._grown(place, self._picked(place, told), told))

    def _grown(self, place: Place, way: Alternative[Place], told: dict[LoopOf, Derivation]) -> Derivation:
        """Return a derivation that begins in one way; loops that existed before keep their directives."""
        label, choice = way.label, self._space.nests.choice(place, way.label)
        choices = 0 if choice.count < 2 else choice.rank(choice.plainest(self._random)) or 0
        if isinstance(label, Opened):
            known = told.get((label.loop.index, frozenset(way.parts[0].scope.statements)))
            choices = known.choices if known is not None and known.label == label and known.choices < way.ways else choices
        parts = tuple(self._grown(part, self._picked(part, told), told) for part in way.parts)
        return Derivation(label, choices, parts)

    def _picked(self, place: Place, told: dict[LoopOf, Derivation]) -> Alternative[Place]:
        """Return a way to continue: a loop keeps its unit where possible, threads take outermost loops and vectors innermost ones."""
        ways = self._ways(place)
        kept = [way for way in ways if isinstance(way.label, Opened) and way.label in [one.label for one in told.values()]]
        usual = [way for way in ways if not isinstance(way.label, Opened) or self._is_usual(place, way)]
        return self._random.choice(kept or usual or ways)

    def _is_usual(self, place: Place, way: Alternative[Place]) -> bool:
        assert isinstance(way.label, Opened)
        inside = way.parts[0].scope
        last = not inside.loops and len(inside.statements) == 1
        return way.label.unit is None or self._space.nests.is_usual(place, way.label.unit, last)

    def _ways(self, place: Place) -> list[Alternative[Place]]:
        return [way for way, _ in self._space.nests.grammar.alternatives(place)]

    def _way(self, place: Place, tree: Derivation) -> Alternative[Place]:
        return next(way for way in self._ways(place) if way.label == tree.label)

    def _spots(self, chosen: Chosen) -> Iterator[Spot]:
        """Yield every place of a derivation, the outermost first."""
        open_spots = [Spot((), self._space.top(chosen.start), chosen.tree)]
        while open_spots:
            spot = open_spots.pop()
            yield spot
            parts = zip(self._way(spot.place, spot.tree).parts, spot.tree.parts, strict=True)
            open_spots += [Spot((*spot.path, number), place, tree) for number, (place, tree) in enumerate(parts)]

    def _told(self, chosen: Chosen) -> dict[LoopOf, Derivation]:
        """Return the derivations of the directives on loops, by loop."""
        found: dict[LoopOf, Derivation] = {}
        for spot in self._spots(chosen):
            if isinstance(spot.tree.label, Opened):
                (inside,) = self._way(spot.place, spot.tree).parts
                found[spot.tree.label.loop.index, frozenset(inside.scope.statements)] = spot.tree
        return found


def _differ(one: Start, other: Start) -> int:
    """Return in how many ways two starts differ: runs of indices, grouping, orders of operands."""
    runs = len(set(one.division) - set(other.division))
    return runs + (one.number != other.number) + sum(mine != its for mine, its in zip(one.orders, other.orders, strict=True))


def _with(tree: Derivation, path: tuple[int, ...], part: Derivation) -> Derivation:
    """Return a derivation with another part at a path."""
    if not path:
        return part
    parts = list(tree.parts)
    parts[path[0]] = _with(parts[path[0]], path[1:], part)
    return replace(tree, parts=tuple(parts))
