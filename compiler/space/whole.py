"""The whole schedule space of an expression: a dependent sum of all stages, counted and drawn from without listing (DESIGN section 2).

A schedule is an algebraic form, a grouping into workspaces, a division of the indices into loops (``pieces``), a nest of these loops,
protocols, formats of what is read and storage of what is written, and what every loop is told: who runs it, how operands meet in it,
what is unrolled and prefetched. ``Options`` say which of these are open, and in what range: everything, or what filters leave of it.
What the language refuses is in the space too: that it is legal is a filter like others.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias, cast

from ..concrete.concretize import Concretized, concretize, started
from ..format import Format
from ..notation.nodes import Assignment
from .choices import All, Choice, OneOf
from .forms import unwatched
from .grammar import Alternative, Derivation, Grammar
from .nestings import Cut, Loop, Scope
from .options import RUNS, STAGES, Options, everything, opened
from .pieces import Division, Pieces, Treatment, treatment, ways
from .space import Member, Rules, ScheduleSpace

Told: TypeAlias = "tuple[str | None, Hashable]"
"""The unit that runs a loop, and a value of ``Options.told``."""

LoopOf: TypeAlias = "tuple[str, frozenset[int]]"
"""A loop of a nest: its index and the statements inside it."""


@dataclass(frozen=True)
class Place:
    """A scope of the structural space, how many of the parallel units are used around it, and whether any loop is."""

    scope: Scope
    units: int = 0
    nested: bool = False


@dataclass(frozen=True)
class Opened:
    """A loop, and the unit that runs it."""

    loop: Loop
    unit: str | None = None


@dataclass(frozen=True, eq=False)
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


class WholeSpace:
    """All schedules of an expression.

    Args:
        assignment: the checked expression, without functions.
        formats: a format for every tensor.
        semiring: (add, multiply).
        options: which choices are open; None: all of a processor.
        levels: how often a loop may be cut.
        watch: called again and again while the space is worked on; it may raise to end that.
    """

    def __init__(
        self,
        assignment: Assignment,
        formats: Mapping[str, Format],
        semiring: tuple[str, str] = ("+", "*"),
        options: Options | None = None,
        levels: int = 1,
        watch: Callable[[], None] = unwatched,
    ) -> None:
        whole, known = started(assignment, formats)
        self.options = everything() if options is None else options
        self.default: Concretized = concretize(replace(whole, operator="="), known, *semiring)
        self.stored = tuple(name for name, form in known.items() if not form.is_dense and name != whole.target.tensor)
        self.pieces = Pieces(whole, self.stored, levels, watch)
        self.structures = ScheduleSpace(self.pieces.assignment, known, Rules(protocols=False, accumulators=True), watch)
        self.nestings = self.structures.nestings
        self.watch = watch
        self._sides: dict[tuple[str, tuple[int, ...]], tuple[bool, ...]] = {}
        self._read: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._sorts: dict[Scope, Hashable] = {}
        self.grammar: Grammar[Place] = Grammar(self._alternatives, self._alike)

    def with_options(self, options: Options) -> WholeSpace:
        """Return the space of which other choices are open."""
        other = object.__new__(WholeSpace)
        other.__dict__.update(self.__dict__)
        for name in ("starts", "_ends"):
            other.__dict__.pop(name, None)
        other.options = options
        other.grammar = Grammar(other._alternatives, other._alike)
        return other

    # Where derivations begin

    @cached_property
    def starts(self) -> tuple[tuple[Division, int], ...]:
        """Divisions with groupings; what is written as several sums is not divided."""
        table = self.nestings.table
        simple = [
            len(grouping.roots) == 1 and not any(table[number].summed for number in grouping.statements)
            for grouping in self.structures.groupings
        ]
        rules = [RUNS[name] for name in self.options.runs]
        every = self.pieces.divisions if self.options.divisions else (self.pieces.plain,)
        divisions = [division for division in every if all(rule(run) for run in division for rule in rules)]
        return tuple(
            (division, number)
            for division in divisions
            for number, divisible in enumerate(simple)
            if divisible or division is divisions[0]
        )

    def top(self, division: Division, number: int) -> Scope:
        """Return the scope of the nests of a grouping over the loops of a division."""
        grouping = self.structures.groupings[number]
        present = frozenset(loop for run in division for loop in run.loops)
        return Scope(grouping.statements, self.nestings.ordered(self.nestings.needs(grouping.statements) & present))

    def data(self, division: Division, number: int) -> Choice:
        """Return what is chosen beside the nest: treatments of indices, modes traversed otherwise, formats, assembly, build."""
        options = self.options
        modes = OneOf(range(1 << len(self.modes(number)) if options.protocols else 1))
        formats = All(tuple(options.format(len(self.structures.formats[name])) for name in self.stored))
        assembly = options.assembly(self.structures.formats[self.structures.assignment.target.tensor])
        return All((ways(division, options.sizes), modes, formats, assembly, options.build))

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
            match option.label:
                case Loop():
                    found += self._opened(place, option)
                case Cut():
                    made = {number for part in option.parts for number, _ in part.given}
                    parts = tuple(Place(replace(part, given=()), place.units, place.nested) for part in option.parts)
                    found.append(Alternative(option.label, parts, self.options.kind.count ** len(made)))
                case _:
                    found.append(Alternative(option.label))
        return found

    def _opened(self, place: Place, option: Alternative[Scope]) -> Iterator[Alternative[Place]]:
        (scope,) = option.parts
        assert isinstance(option.label, Loop)
        last = len(scope.statements) == 1 and not scope.loops
        inside = Place(scope, place.units, True)
        operands = self.read(scope.statements)
        yield Alternative(Opened(option.label), (inside,), self.options.told(None, operands).count)
        for used, unit in enumerate(self.options.units[place.units :], place.units + 1):
            if not self.options.outermost or (last if unit == "cpu_vector" else not place.nested):
                yield Alternative(Opened(option.label, unit), (Place(scope, used, True),), self.options.told(unit, operands).count)

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
            sides = sorted(self._side(name, scope.statements) for name in scope.loops)
            known = self._sorts[scope] = (scope.statements, scope.fresh, tuple(sides))
        return known, place.units, place.nested

    def _side(self, name: str, statements: tuple[int, ...]) -> tuple[bool, ...]:
        known = self._sides.get((name, statements))
        if known is None:
            table = self.nestings.table
            told = [flag for number in statements for flag in (name in table[number].needs, name in table[number].carries)]
            summed = [name in table[number].summed for number in statements]
            known = self._sides[name, statements] = (*told, *summed, name in table.target.indices)
        return known

    # Counts and members

    @cached_property
    def _ends(self) -> list[int]:
        """How many schedules the starts up to each have."""
        return list(accumulate(self._count(division, number) for division, number in self.starts))

    def _count(self, division: Division, number: int) -> int:
        self.watch()
        return self.data(division, number).count * self.grammar.count(Place(self.top(division, number)))

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
        start = bisect_right(self._ends, rank)
        rank -= self._ends[start - 1] if start else 0
        division, number = self.starts[start]
        data = self.data(division, number)
        rank, chosen = divmod(rank, data.count)
        top = self.top(division, number)
        return self._plan(division, number, data.at(chosen), self.grammar.derivation(Place(top), rank))

    def _plan(self, division: Division, number: int, data: Hashable, tree: Derivation) -> Plan:
        treatments, flips, formats, assembly, build = cast("tuple[Any, ...]", data)
        told: dict[LoopOf, Told] = {}
        kinds: dict[int, str | None] = {}
        top = self.top(division, number)
        derivation = self._structure(Place(top), tree, told, kinds)
        flipped = frozenset(mode for bit, mode in enumerate(self.modes(number)) if flips >> bit & 1)
        return Plan(
            Member(number, self.nestings, Derivation(number, 0, (derivation,)), top),
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
        option = next(option for option, _ in self.grammar.alternatives(place) if option.label == tree.label)
        label = tree.label
        if isinstance(label, Opened):
            inside = option.parts[0].scope.statements
            value = self.options.told(label.unit, self.read(inside)).at(tree.choices)
            told[label.loop.index, frozenset(inside)] = label.unit, value
            label = label.loop
        elif isinstance(label, Cut):
            made = self._made(place.scope, label)
            chosen = All((self.options.kind,) * len(made)).at(tree.choices)
            kinds |= dict(zip(made, cast("tuple[str | None, ...]", chosen), strict=True))
        parts = zip(option.parts, tree.parts, strict=True)
        return Derivation(label, 0, tuple(self._structure(part, inner, told, kinds) for part, inner in parts))

    def _made(self, scope: Scope, label: Cut) -> list[int]:
        """Return the workspaces that come to life where a scope is cut."""
        scopes = self.nestings.continued(scope, label)
        assert scopes is not None
        return sorted({number for part in scopes for number, _ in part.given})

    # Where a schedule stands

    def rank(self, plan: Plan, division: Division) -> int | None:
        """Return the place of a schedule in the canonical order, None where it is not in the space."""
        found = self._placed(plan, division)
        if found is None:
            return None
        start, inner, chosen, ways = found
        return (self._ends[start - 1] if start else 0) + inner * ways + chosen

    def holds(self, plan: Plan, division: Division) -> bool:
        """Return whether a schedule is in the space; less of it is counted than for its place."""
        return self._placed(plan, division) is not None

    def _placed(self, plan: Plan, division: Division) -> tuple[int, int, int, int] | None:
        """Return where a schedule begins, its place among the nests there, what else is chosen, and among how many choices."""
        wanted = plan.member.number, frozenset(division)
        start = next((place for place, (one, number) in enumerate(self.starts) if (number, frozenset(one)) == wanted), None)
        if start is None:
            return None
        division, number = self.starts[start]
        by_run = {frozenset(one.order): one for one in plan.treatments}
        treatments = tuple(by_run[frozenset(run.indices)].value for run in division)
        flips = sum(1 << bit for bit, mode in enumerate(self.modes(number)) if mode in plan.flipped)
        formats = tuple(plan.formats.get(name) for name in self.stored)
        data, top = self.data(division, number), Place(self.top(division, number))
        chosen = data.rank((treatments, flips, formats, plan.assembly, plan.build))
        tree = self._tree(top, plan.member.derivation.parts[0], plan)
        inner = None if tree is None else self.grammar.rank(top, tree)
        return None if chosen is None or inner is None else (start, inner, chosen, data.count)

    def _tree(self, place: Place, derivation: Derivation, plan: Plan) -> Derivation | None:
        """Return a derivation of the whole space for one of the structural space; None where something said is not in the options."""
        label = derivation.label
        if isinstance(label, Loop):
            scopes = self.nestings.continued(place.scope, label)
            if scopes is None:
                return None
            inside = scopes[0].statements
            unit, value = plan.told[label.index, frozenset(inside)]
            found = self.options.told(unit, self.read(inside)).rank(value)
            label = Opened(label, unit)
        elif isinstance(label, Cut):
            made = self._made(place.scope, label)
            found = All((self.options.kind,) * len(made)).rank(tuple(plan.kinds.get(number) for number in made))
        else:
            found = 0
        option = next((option for option, _ in self.grammar.alternatives(place) if option.label == label), None)
        if option is None or found is None:
            return None
        parts = [self._tree(part, inner, plan) for part, inner in zip(option.parts, derivation.parts, strict=True)]
        known = tuple(part for part in parts if part is not None)
        return Derivation(label, found, known) if len(known) == len(parts) else None
