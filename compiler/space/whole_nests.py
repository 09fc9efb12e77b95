"""The nests of the whole space: those of the structural one, with units that run loops, and with directives on loops and workspaces."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from ..units import UNITS
from .choices import NOTHING, All, Choice
from .grammar import Alternative, Derivation, Grammar, Sorts
from .loop_facts import LoopFacts
from .nestings import Cut, Loop, Nestings, Scope
from .options import Facts, Options
from .whole_plan import LoopOf, Opened, Place, Plan, Told, given_workspaces


class WholeNests:
    """The alternatives at every place of a nest, and the choices made there.

    Args:
        nestings: the nests of the structural space.
        facts: of their loops.
    """

    def __init__(self, nestings: Nestings, facts: LoopFacts) -> None:
        self._nestings, self._facts = nestings, facts
        self._sorts: dict[Scope, Hashable] = {}
        self.grammar: Grammar[Place] = Grammar(self._alternatives, Sorts(self._alike, self._representatives))

    @property
    def options(self) -> Options:
        """Which choices are open."""
        return self._facts.options

    # What may stand at a place

    def _alternatives(self, place: Place) -> list[Alternative[Place]]:
        found: list[Alternative[Place]] = []
        for option in self._nestings.alternatives(place.scope):
            found += self._continued(place, option)
        return found

    def _continued(self, place: Place, option: Alternative[Scope]) -> Iterator[Alternative[Place]]:
        """Yield the alternatives of this space for one of the structural space."""
        match option.label:
            case Loop(index):
                if self._facts.is_in_order(place, index):
                    yield from self._opened(place, option)
            case Cut():
                made = given_workspaces(option.parts)
                parts = tuple(replace(place, scope=replace(part, given=())) for part in option.parts)
                yield Alternative(option.label, parts, self._kinds(made).count)
            case _:
                yield Alternative(option.label)

    def _opened(self, place: Place, option: Alternative[Scope]) -> Iterator[Alternative[Place]]:
        (scope,) = option.parts
        assert isinstance(option.label, Loop)
        last = len(scope.statements) == 1 and not scope.loops
        inside = replace(place, scope=scope)
        facts = self._facts.of(option.label.index, scope.statements)
        apart = place.scope.fresh and self.options.fitting and not self._facts.result.is_dense
        yield Alternative(Opened(option.label), (replace(inside, nested=True),), self._told(None, facts, scope).count)
        for used, unit in enumerate(self.options.units[place.units :], place.units + 1):
            usual = not self.options.outermost or self.is_usual(place, unit, last)
            if unit in facts.units and usual and (UNITS[unit].is_vector or not apart):
                yield Alternative(Opened(option.label, unit), (replace(inside, units=used),), self._told(unit, facts, scope).count)

    def is_usual(self, place: Place, unit: str, last: bool) -> bool:
        """Return whether a unit runs such loops: vectors innermost ones, others outermost ones, threads of a GPU both.

        Args:
            place: where the loop is opened.
            unit: the unit.
            last: whether no loop is inside.
        """
        runner = UNITS[unit]
        return (last and (runner.is_vector or runner.member == "thread")) or (not runner.is_vector and not place.nested)

    def _told(self, unit: str | None, facts: Facts, inside: Scope) -> Choice:
        """Return the directives that a loop may have."""
        return self.options.told(unit, facts, len(inside.loops) if len(inside.statements) == 1 else None)

    def _kinds(self, made: Sequence[tuple[int, bool]]) -> All:
        """Return the kinds of workspaces that are made at the same place."""
        dense = self._facts.result.is_dense
        return All(tuple(self.options.kind(has_modes, dense) for _, has_modes in made))

    # Places with equally many nests

    def _alike(self, place: Place) -> Hashable:
        """Loops that the same statements need and pass on are interchangeable: only the number of each sort matters."""
        scope = place.scope
        known = self._sorts.get(scope)
        if known is None:
            sides = sorted(self._facts.sort(name, scope.statements) for name in scope.loops)
            known = self._sorts[scope] = (scope.statements, scope.fresh, tuple(sides))
        read = self._facts.read(scope.statements) if place.orders else ()
        orders = tuple(order for name, order in zip(self._facts.stored, place.orders, strict=True) if name in read) if read else ()
        return known, place.units, place.nested and self.options.outermost, orders

    def _representatives(self, place: Place) -> Iterator[tuple[Alternative[Place], int]]:
        """Yield one alternative of each sort, and how many there are of it: it does not matter which of several alike loops is opened."""
        several: dict[Hashable, list[Alternative[Scope]]] = {}
        for option in self._nestings.alternatives(place.scope):
            label = option.label
            sort = self._facts.sort(label.index, place.scope.statements) if isinstance(label, Loop) else label
            several.setdefault(sort, []).append(option)
        for options in several.values():
            yield from ((one, len(options)) for one in self._continued(place, options[0]))

    # Derivations

    def choice(self, place: Place, label: Hashable) -> Choice:
        """Return what is chosen at a place besides how the nest continues there."""
        if isinstance(label, Opened):
            (inside,) = self.continued(place.scope, label.loop)
            return self._told(label.unit, self._facts.of(label.loop.index, inside.statements), inside)
        return self._kinds(given_workspaces(self.continued(place.scope, label))) if isinstance(label, Cut) else NOTHING

    def continued(self, scope: Scope, label: Hashable) -> tuple[Scope, ...]:
        """Return the scopes that a way to continue leads to."""
        found = self._nestings.continued(scope, label)
        assert found is not None
        return found

    def structure(self, place: Place, tree: Derivation, told: dict[LoopOf, Told], kinds: dict[int, str | None]) -> Derivation:
        """Return the derivation of the structural space, and note in ``told`` and ``kinds`` the other choices of one of the whole
        space."""
        option = next(option for option in self._alternatives(place) if option.label == tree.label)
        label = tree.label
        value = self.choice(place, label).at(tree.choices)
        if isinstance(label, Opened):
            told[label.loop.index, frozenset(option.parts[0].scope.statements)] = label.unit, value
            label = label.loop
        elif isinstance(label, Cut):
            made = given_workspaces(self.continued(place.scope, label))
            kinds |= {number: kind for (number, _), kind in zip(made, cast("tuple[str | None, ...]", value), strict=True)}
        parts = zip(option.parts, tree.parts, strict=True)
        return Derivation(label, 0, tuple(self.structure(part, inner, told, kinds) for part, inner in parts))

    def derived(self, place: Place, derivation: Derivation, plan: Plan) -> Derivation | None:
        """Return a derivation of the whole space for one of the structural space; None where a choice is not among the options."""
        label = derivation.label
        if isinstance(label, Loop):
            scopes = self._nestings.continued(place.scope, label)
            if scopes is None:
                return None
            (inside,) = scopes
            unit, value = plan.told[label.index, frozenset(inside.statements)]
            found = self._told(unit, self._facts.of(label.index, inside.statements), inside).rank(value)
            label = Opened(label, unit)
        elif isinstance(label, Cut):
            made = given_workspaces(self.continued(place.scope, label))
            found = self._kinds(made).rank(tuple(plan.kinds.get(number) for number, _ in made))
        else:
            found = 0
        option = next((option for option in self._alternatives(place) if option.label == label), None)
        if option is None or found is None:
            return None
        parts = [self.derived(part, inner, plan) for part, inner in zip(option.parts, derivation.parts, strict=True)]
        known = tuple(part for part in parts if part is not None)
        return Derivation(label, found, known) if len(known) == len(parts) else None
