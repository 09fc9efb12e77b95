"""The whole schedule space of an expression: a dependent sum of all stages, counted and drawn from without listing (DESIGN section 2).

A schedule is an algebraic form, a grouping into workspaces, a division of the indices into loops (``pieces``), a nest of these loops,
protocols, formats of what is read and storage of what is written, and the directives on every loop: the unit that runs it, how operands
meet in it, what is unrolled and prefetched. ``Options`` say which of these are open, and in what range: everything, or what filters leave
of it. The space also has schedules that the language refuses: legality is a filter like others.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, product
from typing import Any, cast

from ..concrete.applied import acting
from ..concrete.concretize import Concretized, concretize, started
from ..deadline import TimeOver
from ..format import Format
from ..levels import level_kinds
from ..notation.inner_sums import with_sums
from ..notation.nodes import Assignment
from .choices import NOTHING, All, Choice, OneOf, perhaps
from .forms import unwatched
from .grammar import Derivation
from .loop_facts import LoopFacts
from .nestings import Scope
from .options import RUNS, STAGES, Options, everything, opened
from .pieces import Division, Pieces, treatment
from .space import Member, Rules, ScheduleSpace
from .whole_nests import WholeNests
from .whole_plan import Chosen, LoopOf, Place, Plan, Start, Told


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

    Attributes:
        default: the default program.
        stored: the operands that are stored.
        pieces: what indices become.
        structures: the structural space over the loops that indices become.
        facts: what is known of these loops.
        nests: of these loops.
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
        self.default: Concretized = concretize(replace(whole, operator="="), known, *semiring)
        self.stored = tuple(name for name, form in known.items() if not form.is_dense and name != whole.target.tensor)
        self.extents = dict(extents or {})
        self.pieces = Pieces(whole, {name: known[name] for name in self.stored}, levels, watch)
        self.structures = ScheduleSpace(self.pieces.assignment, known, Rules(protocols=False, accumulators=True), watch)
        self.nestings = self.structures.nestings
        self.watch = watch
        open_choices = everything() if options is None else options
        self.facts = LoopFacts(self.default, whole.target, self.stored, self.pieces, self.nestings, open_choices, extents or {})
        self.nests = WholeNests(self.nestings, self.facts)

    def with_options(self, options: Options) -> WholeSpace:
        """Return the space with other open choices."""
        other = object.__new__(WholeSpace)
        other.__dict__.update(self.__dict__)
        for name in ("starts", "_ends"):
            other.__dict__.pop(name, None)
        other.facts = self.facts.with_options(options)
        other.nests = WholeNests(self.nestings, other.facts)
        return other

    @property
    def options(self) -> Options:
        """Which choices are open."""
        return self.facts.options

    # Where derivations begin

    @cached_property
    def starts(self) -> tuple[Start, ...]:
        """Divisions with groupings."""
        rules = [RUNS[name] for name in self.options.runs]
        every = self.pieces.divisions if self.options.divisions else (self.pieces.plain,)
        divisions = [division for division in every if all(rule(run) for run in division for rule in rules)]
        if self.options.divided is not None:
            divisions = [one for one in divisions if sum(not run.is_plain for run in one) <= self.options.divided]
        orders = list(product(*map(self.options.orders, self.stored, self.facts.held))) if self.options.in_order else [()]
        return tuple(
            Start(division, number, read)
            for division in divisions
            for number in range(len(self.structures.groupings))
            for read in orders
        )

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
            for name, order, held in zip(self.stored, orders, self.facts.held, strict=True)
        )
        assembly = options.assembly(self.structures.formats[self.structures.assignment.target.tensor])
        treatments = All(tuple(map(options.treatments, start.division)))
        return All((treatments, modes, All(tuple(formats)), assembly, options.build))

    def _is_given(self, name: str) -> bool:
        """Return whether the user gives an operand; points of affine left sides are the compiler's own."""
        return all(kind in level_kinds() for kind in self.facts.in_memory[name].levels)

    def modes(self, number: int) -> list[tuple[int, int, int]]:
        """Return (statement, read, mode) of what a grouping reads of stored operands."""
        return [
            (statement, place, mode)
            for statement in self.structures.groupings[number].statements
            for place, access in enumerate(self.nestings.stored(statement))
            for mode in range(len(access.subscripts))
        ]

    # Counts and members

    @cached_property
    def _ends(self) -> list[int]:
        """How many schedules the starts up to each have."""
        return list(accumulate(map(self._count, self.starts)))

    def _count(self, start: Start) -> int:
        self.watch()
        return self.data(start).count * self.nests.grammar.count(self.top(start))

    def count(self) -> int:
        """Return how many schedules there are; none is listed."""
        return self._ends[-1] if self._ends else 0

    def counted(self) -> tuple[int, bool]:
        """Return how many schedules are counted before the watch ends counting, at least one, and whether these are all."""
        found = 0
        try:
            for start in self.starts:
                found += self._count(start)
        except TimeOver:
            return max(1, found), False
        return found, True

    @property
    def stages(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        """The stages, in order, each with the number of schedules when it and those before it are decided."""
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
        """Yield what ``sample`` lists, one by one."""
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
        return self.planned(Chosen(start, data.at(chosen), self.nests.grammar.derivation(self.top(start), rank)))

    def planned(self, chosen: Chosen) -> Plan:
        """Return the schedule of a derivation."""
        start, number = chosen.start, chosen.start.number
        treatments, flips, formats, assembly, build = cast("tuple[Any, ...]", chosen.data)
        told: dict[LoopOf, Told] = {}
        kinds: dict[int, str | None] = {}
        top = self.top(start)
        derivation = self.nests.structure(top, chosen.tree, told, kinds)
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

    # The place of a schedule

    def rank(self, plan: Plan, division: Division) -> int | None:
        """Return the place of a schedule in the canonical order, None where it is not in the space."""
        found = self.derived(plan, division)
        if found is None:
            return None
        place, top, data = self.starts.index(found.start), self.top(found.start), self.data(found.start)
        inner, chosen = self.nests.grammar.rank(top, found.tree), data.rank(found.data)
        assert inner is not None
        assert chosen is not None
        return (self._ends[place - 1] if place else 0) + inner * data.count + chosen

    def holds(self, plan: Plan, division: Division) -> bool:
        """Return whether a schedule is in the space; nothing is counted."""
        return self.derived(plan, division) is not None

    def derived(self, plan: Plan, division: Division) -> Chosen | None:
        """Return the derivation of a schedule, None where it is not in the space."""
        form = (plan.formats.get(name) for name in self.stored)
        read = tuple(held if one is None else one.order for one, held in zip(form, self.facts.held, strict=True))
        runs, wanted = frozenset(division), (plan.member.number, read if self.options.in_order else ())
        start = next((one for one in self.starts if one[1:] == wanted and frozenset(one.division) == runs), None)
        if start is None:
            return None
        by_run = {frozenset(one.order): one for one in plan.treatments}
        treatments = tuple(by_run[frozenset(run.indices)].value for run in start.division)
        flips = tuple(True if mode in plan.flipped else None for mode in self.modes(start.number))
        formats = tuple(plan.formats.get(name) for name in self.stored)
        data = treatments, flips, formats, plan.assembly, plan.build
        tree = self.nests.derived(self.top(start), plan.member.derivation.parts[0], plan)
        return None if tree is None or self.data(start).rank(data) is None else Chosen(start, data, tree)
