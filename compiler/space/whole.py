"""The whole schedule space of an expression: a dependent sum of all stages, counted and drawn from without listing (DESIGN section 2).

A schedule is an algebraic form, a grouping into workspaces, a division of the indices into loops (``pieces``), a nest of these loops,
protocols, formats of what is read and storage of what is written, and what every loop is told: who runs it, how operands meet in it,
what is unrolled and prefetched. ``Options`` say which of these are open, and in what range: everything, or what filters leave of it.
What the language refuses is in the space too: that it is legal is a filter like others.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import accumulate, product
from typing import Any, NamedTuple, TypeAlias, cast

from ..concrete.applied import acting
from ..concrete.concretize import Concretized, concretize, started
from ..format import Format
from ..frozen import frozen
from ..levels import level_kinds
from ..notation.inner_sums import with_sums
from ..notation.nodes import Access, Assignment
from .choices import NOTHING, All, Choice, OneOf, perhaps
from .forms import unwatched
from .grammar import Alternative, Derivation, Grammar, Sorts
from .nestings import Cut, Loop, Scope
from .options import RUNS, STAGES, Facts, Options, everything, opened
from .pieces import Division, Pieces, Run, Treatment, treatment
from .space import Member, Rules, ScheduleSpace

Told: TypeAlias = "tuple[str | None, Hashable]"
"""The unit that runs a loop, and a value of ``Options.told``."""

LoopOf: TypeAlias = "tuple[str, frozenset[int]]"
"""A loop of a nest: its index and the statements inside it."""


Orders: TypeAlias = "tuple[tuple[int, ...], ...]"
"""In which the modes of operands are read."""


@frozen
class Place:
    """A scope of the structural space, and what was decided around it.

    Attributes:
        scope: statements and the loops that they still need.
        units: how many of the parallel units are used around it.
        nested: whether any loop is that no unit runs.
        orders: in which the modes of the stored operands are read; empty where loops may come in any order.
    """

    scope: Scope
    units: int = 0
    nested: bool = False
    orders: Orders = ()


class Start(NamedTuple):
    """Where derivations begin: a division of the indices, the number of a grouping, and orders as those of a ``Place``."""

    division: Division
    number: int
    orders: Orders = ()


@frozen
class Opened:
    """A loop, and the unit that runs it."""

    loop: Loop
    unit: str | None = None


@frozen(eq=False)
class Plan:
    """A schedule of the whole space, by what was chosen.

    Attributes:
        member: of the structural space, over the loops that indices become.
        treatments: how every run of indices becomes loops.
        flipped: (statement, read, mode) of the operands' modes that are not traversed as their levels are made for.
        formats: of operands that are converted.
        assembly: of the result; None: the compiler chooses, as where ``kinds`` of workspaces are None.
        build: (compiler, flags), or None.
        told: what loops are told.
    """

    member: Member
    treatments: tuple[Treatment, ...]
    flipped: frozenset[tuple[int, int, int]] = frozenset()
    formats: Mapping[str, Format | None] = field(default_factory=dict)
    assembly: str | None = None
    build: tuple[str | None, str | None] | None = None
    kinds: Mapping[int, str | None] = field(default_factory=dict)
    told: Mapping[LoopOf, Told] = field(default_factory=dict)


@frozen
class Chosen:
    """A schedule by its derivation: where it begins, what is chosen beside the nest (``WholeSpace.data``), the nest."""

    start: Start
    data: Hashable
    tree: Derivation


class WholeSpace:
    """All schedules of an expression.

    Args:
        assignment: the checked expression.
        formats: a format for every tensor.
        semiring: (add, multiply).
        options: which choices are open; None: all of a processor.
        levels: how often a loop may be cut.
        watch: called again and again while the space is worked on; it may raise to end that.
        extents: compile-time constants, by index.
    """

    def __init__(
        self,
        assignment: Assignment,
        formats: Mapping[str, Format],
        semiring: tuple[str, str] = ("+", "*"),
        options: Options | None = None,
        levels: int = 1,
        watch: Callable[[], None] = unwatched,
        extents: Mapping[str, int] | None = None,
    ) -> None:
        whole, known = started(assignment, formats)
        whole = replace(whole, value=acting(with_sums(whole.value, whole.target.indices), known[whole.target.tensor].is_dense))
        self.options = everything() if options is None else options
        self.default: Concretized = concretize(replace(whole, operator="="), known, *semiring)
        self.stored = tuple(name for name, form in known.items() if not form.is_dense and name != whole.target.tensor)
        self.extents = dict(extents or {})
        self.target = whole.target
        self.pieces = Pieces(whole, {name: known[name] for name in self.stored}, levels, watch)
        self.structures = ScheduleSpace(self.pieces.assignment, known, Rules(protocols=False, accumulators=True), watch)
        self.nestings = self.structures.nestings
        self.watch = watch
        self._sides: dict[tuple[str, tuple[int, ...]], tuple[bool, ...]] = {}
        self._read: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._stored_here: dict[tuple[int, ...], frozenset[str]] = {}
        self._sorts: dict[Scope, Hashable] = {}
        self._facts: dict[tuple[str, tuple[int, ...]], Facts] = {}
        self._told_alike: dict[Hashable, int] = {}
        self.grammar: Grammar[Place] = Grammar(self._alternatives, Sorts(self._alike, self._representatives))

    def with_options(self, options: Options) -> WholeSpace:
        """Return the space of which other choices are open."""
        other = object.__new__(WholeSpace)
        other.__dict__.update(self.__dict__)
        for name in ("starts", "_ends"):
            other.__dict__.pop(name, None)
        other.options = options
        other._sorts, other._facts, other._told_alike = {}, {}, {}
        other.grammar = Grammar(other._alternatives, Sorts(other._alike, other._representatives))
        return other

    # Where derivations begin

    @cached_property
    def starts(self) -> tuple[Start, ...]:
        """Divisions with groupings."""
        rules = [RUNS[name] for name in self.options.runs]
        every = self.pieces.divisions if self.options.divisions else (self.pieces.plain,)
        divisions = [division for division in every if all(rule(run) for run in division for rule in rules)]
        if self.options.divided is not None:
            divisions = [one for one in divisions if sum(not run.is_plain for run in one) <= self.options.divided]
        orders = list(product(*map(self.options.orders, self.stored, self.held))) if self.options.in_order else [()]
        return tuple(
            Start(division, number, read)
            for division in divisions
            for number in range(len(self.structures.groupings))
            for read in orders
        )

    @cached_property
    def held(self) -> Orders:
        """The orders in which the default program reads the modes of the stored operands, as they are in memory."""
        return tuple(self.in_memory[name].order for name in self.stored)

    @cached_property
    def _modes_in_memory(self) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
        return {name: self.default.formats[name].modes_in_memory for name in self.stored}

    @cached_property
    def in_memory(self) -> Mapping[str, Format]:
        """How the default program reads the stored operands: their formats in memory, which views of them share."""
        said = {operand.tensor: form for operand, form in self.default.program.conversions}
        return {name: said.get(name, self.default.formats[name]).in_memory for name in self.stored}

    def top(self, start: Start) -> Place:
        """Return where the nests of a grouping over the loops of a division begin."""
        grouping = self.structures.groupings[start.number]
        present = frozenset(loop for run in start.division for loop in run.loops)
        scope = Scope(grouping.statements, self.nestings.ordered(self.nestings.needs(grouping.statements) & present))
        return Place(scope, orders=start.orders)

    def data(self, start: Start) -> Choice:
        """Return what is chosen beside the nest: treatments of indices, modes traversed otherwise, formats, assembly, build."""
        options = self.options
        modes = All((perhaps(OneOf((True,))) if options.protocols else NOTHING,) * len(self.modes(start.number)))
        orders = start.orders or (None,) * len(self.stored)
        formats = (
            options.format(name, len(held), order, held) if self._is_given(name) else NOTHING
            for name, order, held in zip(self.stored, orders, self.held, strict=True)
        )
        assembly = options.assembly(self.structures.formats[self.structures.assignment.target.tensor])
        treatments = All(tuple(map(options.treatments, start.division)))
        return All((treatments, modes, All(tuple(formats)), assembly, options.build))

    def _is_given(self, name: str) -> bool:
        """Return whether the user gives an operand; points of affine left sides are the compiler's own."""
        return all(kind in level_kinds() for kind in self.in_memory[name].levels)

    def modes(self, number: int) -> list[tuple[int, int, int]]:
        """Return (statement, read, mode) of what a grouping reads of stored operands."""
        return [
            (statement, place, mode)
            for statement in self.structures.groupings[number].statements
            for place, access in enumerate(self.nestings.stored(statement))
            for mode in range(len(access.subscripts))
        ]

    # The nests

    def _alternatives(self, place: Place) -> list[Alternative[Place]]:
        found: list[Alternative[Place]] = []
        for option in self.nestings.alternatives(place.scope):
            found += self._continued(place, option)
        return found

    def _continued(self, place: Place, option: Alternative[Scope]) -> Iterator[Alternative[Place]]:
        """Yield what a way to continue in the structural space is in this one."""
        match option.label:
            case Loop(index):
                if self._is_in_order(place, index):
                    yield from self._opened(place, option)
            case Cut():
                made = _filled(option.parts)
                parts = tuple(replace(place, scope=replace(part, given=())) for part in option.parts)
                yield Alternative(option.label, parts, self._kinds(made).count)
            case _:
                yield Alternative(option.label)

    def _opened(self, place: Place, option: Alternative[Scope]) -> Iterator[Alternative[Place]]:
        (scope,) = option.parts
        assert isinstance(option.label, Loop)
        last = len(scope.statements) == 1 and not scope.loops
        inside = replace(place, scope=scope)
        facts = self.facts(option.label.index, scope.statements)
        apart = place.scope.fresh and self.options.fitting and not self.default.formats[self.target.tensor].is_dense
        yield Alternative(Opened(option.label), (replace(inside, nested=True),), self._told(None, facts, scope).count)
        for used, unit in enumerate(self.options.units[place.units :], place.units + 1):
            usual = not self.options.outermost or self.is_usual(place, unit, last)
            if unit in facts.units and usual and not (apart and unit != "cpu_vector"):
                yield Alternative(Opened(option.label, unit), (replace(inside, units=used),), self._told(unit, facts, scope).count)

    def is_usual(self, place: Place, unit: str, last: bool) -> bool:
        """Return whether a unit runs such loops: vectors innermost ones, others outermost ones, threads of a GPU both.

        Args:
            place: where the loop is opened.
            unit: the unit.
            last: whether no loop is inside.
        """
        return (unit != "cpu_vector" and not place.nested) or (last and unit in ("cpu_vector", "gpu_thread"))

    def _told(self, unit: str | None, facts: Facts, inside: Scope) -> Choice:
        """Return what a loop may be told."""
        return self.options.told(unit, facts, len(inside.loops) if len(inside.statements) == 1 else None)

    def _is_in_order(self, place: Place, loop: str) -> bool:
        """Return whether the indices that a loop completes are stored below those that are complete already."""
        if not place.orders:
            return True
        scope, run = place.scope, self.pieces.runs[loop]
        left = {name for name in scope.loops if name != loop}
        if not left.isdisjoint(run.loops):
            return True
        pending = {index for name in left for index in self.pieces.runs[name].indices}
        return not any(
            pending.intersection(above)
            for number in scope.statements
            for access in self.nestings.stored(number)
            for index in run.indices
            for above in self._above(access, index, pending, place.orders)
        )

    def _above(self, access: Access, index: str, pending: Collection[str], orders: Orders) -> Iterator[tuple[str, ...]]:
        """Yield the indices of the levels above the one at which an operand stores the coordinates that an index settles: no other index
        of its subscript is pending."""
        subscripts = self.pieces.narrowed(access).subscripts
        modes = self._modes_in_memory[access.tensor]
        names = [
            tuple(name for own in modes[mode] for name in subscripts[own].indices) for mode in orders[self.stored.index(access.tensor)]
        ]
        level = next((number for number, several in enumerate(names) if index in several), 0)
        if level and not set(pending).intersection(names[level]):
            yield from names[:level]

    def facts(self, loop: str, statements: tuple[int, ...]) -> Facts:
        """Return what is known of a loop around some statements."""
        known = self._facts.get((loop, statements))
        if known is None:
            known = self._facts[loop, statements] = self._known_of(loop, statements)
        return known

    def _known_of(self, loop: str, statements: tuple[int, ...]) -> Facts:
        operands = self.read(statements)
        if not self.options.fitting:
            return Facts((True,) * len(operands), units=self.options.units)
        run = self.pieces.runs[loop]
        completed = frozenset(run.indices if loop == run.loops[-1] else ())
        stored = [name for name in operands if completed & self.pieces.coordinates.get(name, frozenset())]
        found = tuple(bool(stored) and bool(completed & self.pieces.choosing[name]) for name in operands)
        extent = self.extents.get(loop) if run.is_plain else None
        return Facts(found, len(stored) > 1, run.is_plain and loop in self.target.indices, extent, self._units(run, statements))

    def _units(self, run: Run, statements: tuple[int, ...]) -> tuple[str, ...]:
        """Return the units that may run a loop: threads that share the outermost level put components of sparse results together."""
        form, units = self.default.formats[self.target.tensor], self.options.units
        if form.is_dense or not any(self.nestings.table[number].root for number in statements):
            return units
        outermost = self.target.subscripts[form.order[0]].indices
        return tuple(unit for unit in units if unit != "cpu_vector" and run.is_plain and run.indices == outermost)

    def _kinds(self, made: Sequence[tuple[int, bool]]) -> All:
        """Return the kinds of workspaces that come to life together."""
        dense = self.default.formats[self.target.tensor].is_dense
        return All(tuple(self.options.kind(has_modes, dense) for _, has_modes in made))

    def read(self, statements: Sequence[int]) -> tuple[str, ...]:
        """Return the operands that some statements read."""
        known = self._read.get(tuple(statements))
        if known is None:
            found = (access.tensor for number in statements for access in self.nestings.table[number].operands)
            known = self._read[tuple(statements)] = tuple(dict.fromkeys(found))
        return known

    def _alike(self, place: Place) -> Hashable:
        """Loops that the same statements need and hand on are interchangeable: what counts is how many there are of each sort."""
        scope = place.scope
        known = self._sorts.get(scope)
        if known is None:
            sides = sorted(self._sort(name, scope.statements) for name in scope.loops)
            known = self._sorts[scope] = (scope.statements, scope.fresh, tuple(sides))
        read = self.read(scope.statements) if place.orders else ()
        orders = tuple(order for name, order in zip(self.stored, place.orders, strict=True) if name in read) if read else ()
        return known, place.units, place.nested and self.options.outermost, orders

    def _representatives(self, place: Place) -> Iterator[tuple[Alternative[Place], int]]:
        """Yield one alternative of each sort, and how many there are of it: it does not matter which of several alike loops is opened."""
        several: dict[Hashable, list[Alternative[Scope]]] = {}
        for option in self.nestings.alternatives(place.scope):
            label = option.label
            sort = self._sort(label.index, place.scope.statements) if isinstance(label, Loop) else label
            several.setdefault(sort, []).append(option)
        for options in several.values():
            yield from ((one, len(options)) for one in self._continued(place, options[0]))

    def _sort(self, name: str, statements: tuple[int, ...]) -> tuple[int, tuple[bool, ...]]:
        """Return what two loops around some statements have in common if it does not matter which of them is which."""
        facts = self.facts(name, statements)
        told = facts, self._placed(name, statements) if self.options.in_order else ()
        return self._told_alike.setdefault(told, len(self._told_alike)), self._side(name, statements)

    def _placed(self, name: str, statements: tuple[int, ...]) -> tuple[str, ...]:
        """Return the indices of a loop whose place among others hangs on how operands are stored."""
        known = self._stored_here.get(statements)
        if known is None:
            read = (access for number in statements for access in self.nestings.stored(number))
            found = {index for access in read for index in self.pieces.narrowed(access).indices}
            known = self._stored_here[statements] = frozenset(found)
        return tuple(index for index in self.pieces.runs[name].indices if index in known)

    def _side(self, name: str, statements: tuple[int, ...]) -> tuple[bool, ...]:
        known = self._sides.get((name, statements))
        if known is None:
            table = self.nestings.table
            told = [flag for number in statements for flag in (name in table[number].needs, name in table[number].carries)]
            summed = [name in table[number].summed for number in statements]
            known = self._sides[name, statements] = (*told, *summed, name in table.target.indices)
        return known

    def choice(self, place: Place, label: Hashable) -> Choice:
        """Return what is chosen at a place besides how the nest continues there."""
        if isinstance(label, Opened):
            (inside,) = self.continued(place.scope, label.loop)
            return self._told(label.unit, self.facts(label.loop.index, inside.statements), inside)
        return self._kinds(_filled(self.continued(place.scope, label))) if isinstance(label, Cut) else NOTHING

    def continued(self, scope: Scope, label: Hashable) -> tuple[Scope, ...]:
        """Return the scopes that a way to continue leads to."""
        found = self.nestings.continued(scope, label)
        assert found is not None
        return found

    # Counts and members

    @cached_property
    def _ends(self) -> list[int]:
        """How many schedules the starts up to each have."""
        return list(accumulate(map(self._count, self.starts)))

    def _count(self, start: Start) -> int:
        self.watch()
        return self.data(start).count * self.grammar.count(self.top(start))

    def count(self) -> int:
        """Return how many schedules there are; none is listed."""
        return self._ends[-1] if self._ends else 0

    @property
    def stages(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        """The stages, in order, and how many schedules there are once each is decided after those before it."""
        names = list(STAGES)
        sums = [self.with_options(opened(self.options, names[:last])) for last in range(len(names) + 1)]
        return (
            ("rewrites", lambda: len(self.structures.forms)),
            ("groupings", lambda: len(self.structures.groupings)),
            *((name, part.count) for name, part in zip(("nestings", *names), sums, strict=True)),
        )

    def sample(self, count: int, seed: int = 0) -> list[Plan]:
        """Return schedules drawn uniformly, with replacement."""
        return list(self.draws(count, seed))

    def draws(self, count: int, seed: int = 0) -> Iterator[Plan]:
        """Yield what ``sample`` lists, as it is asked for."""
        source, every = random.Random(seed), self.count()
        for _ in range(count if every else 0):
            yield self.plan(source.randrange(every))

    def plan(self, rank: int) -> Plan:
        """Return the schedule at a place of the canonical order; raises IndexError outside ``0 <= rank < count()``."""
        if not 0 <= rank < self.count():
            raise IndexError(rank)
        place = bisect_right(self._ends, rank)
        rank -= self._ends[place - 1] if place else 0
        start = self.starts[place]
        data = self.data(start)
        rank, chosen = divmod(rank, data.count)
        return self.planned(Chosen(start, data.at(chosen), self.grammar.derivation(self.top(start), rank)))

    def planned(self, chosen: Chosen) -> Plan:
        """Return the schedule of a derivation."""
        start, number = chosen.start, chosen.start.number
        treatments, flips, formats, assembly, build = cast("tuple[Any, ...]", chosen.data)
        told: dict[LoopOf, Told] = {}
        kinds: dict[int, str | None] = {}
        top = self.top(start)
        derivation = self._structure(top, chosen.tree, told, kinds)
        flipped = frozenset(mode for mode, flip in zip(self.modes(number), flips, strict=True) if flip)
        return Plan(
            Member(number, self.nestings, Derivation(number, 0, (derivation,)), top.scope),
            tuple(map(treatment, treatments)),
            flipped,
            dict(zip(self.stored, formats, strict=True)),
            assembly,
            build,
            kinds,
            told,
        )

    def _structure(self, place: Place, tree: Derivation, told: dict[LoopOf, Told], kinds: dict[int, str | None]) -> Derivation:
        """Return a derivation of the structural space, and note what else one of the whole space says."""
        option = next(option for option in self._alternatives(place) if option.label == tree.label)
        label = tree.label
        value = self.choice(place, label).at(tree.choices)
        if isinstance(label, Opened):
            told[label.loop.index, frozenset(option.parts[0].scope.statements)] = label.unit, value
            label = label.loop
        elif isinstance(label, Cut):
            made = _filled(self.continued(place.scope, label))
            kinds |= {number: kind for (number, _), kind in zip(made, cast("tuple[str | None, ...]", value), strict=True)}
        parts = zip(option.parts, tree.parts, strict=True)
        return Derivation(label, 0, tuple(self._structure(part, inner, told, kinds) for part, inner in parts))

    # Where a schedule stands

    def rank(self, plan: Plan, division: Division) -> int | None:
        """Return the place of a schedule in the canonical order, None where it is not in the space."""
        found = self.derived(plan, division)
        if found is None:
            return None
        place, top, data = self.starts.index(found.start), self.top(found.start), self.data(found.start)
        inner, chosen = self.grammar.rank(top, found.tree), data.rank(found.data)
        assert inner is not None
        assert chosen is not None
        return (self._ends[place - 1] if place else 0) + inner * data.count + chosen

    def holds(self, plan: Plan, division: Division) -> bool:
        """Return whether a schedule is in the space; nothing is counted."""
        return self.derived(plan, division) is not None

    def derived(self, plan: Plan, division: Division) -> Chosen | None:
        """Return the derivation of a schedule, None where it is not in the space."""
        form = (plan.formats.get(name) for name in self.stored)
        read = tuple(held if one is None else one.order for one, held in zip(form, self.held, strict=True))
        runs, wanted = frozenset(division), (plan.member.number, read if self.options.in_order else ())
        start = next((one for one in self.starts if one[1:] == wanted and frozenset(one.division) == runs), None)
        if start is None:
            return None
        by_run = {frozenset(one.order): one for one in plan.treatments}
        treatments = tuple(by_run[frozenset(run.indices)].value for run in start.division)
        flips = tuple(True if mode in plan.flipped else None for mode in self.modes(start.number))
        formats = tuple(plan.formats.get(name) for name in self.stored)
        data = treatments, flips, formats, plan.assembly, plan.build
        tree = self._tree(self.top(start), plan.member.derivation.parts[0], plan)
        return None if tree is None or self.data(start).rank(data) is None else Chosen(start, data, tree)

    def _tree(self, place: Place, derivation: Derivation, plan: Plan) -> Derivation | None:
        """Return a derivation of the whole space for one of the structural space; None where something said is not in the options."""
        label = derivation.label
        if isinstance(label, Loop):
            scopes = self.nestings.continued(place.scope, label)
            if scopes is None:
                return None
            (inside,) = scopes
            unit, value = plan.told[label.index, frozenset(inside.statements)]
            found = self._told(unit, self.facts(label.index, inside.statements), inside).rank(value)
            label = Opened(label, unit)
        elif isinstance(label, Cut):
            made = _filled(self.continued(place.scope, label))
            found = self._kinds(made).rank(tuple(plan.kinds.get(number) for number, _ in made))
        else:
            found = 0
        option = next((option for option in self._alternatives(place) if option.label == label), None)
        if option is None or found is None:
            return None
        parts = [self._tree(part, inner, plan) for part, inner in zip(option.parts, derivation.parts, strict=True)]
        known = tuple(part for part in parts if part is not None)
        return Derivation(label, found, known) if len(known) == len(parts) else None


def _filled(scopes: Sequence[Scope]) -> list[tuple[int, bool]]:
    """Return the workspaces that scopes are given, and whether they have modes."""
    return sorted({(number, bool(indices)) for part in scopes for number, indices in part.given})
