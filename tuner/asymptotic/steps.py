"""Single steps of the abstract interpretation of a whole space: opening a loop, executing a statement, cutting a scope.

Scopes of the schedule space (``compiler.space.nestings``) are interpreted as ``interpret`` does for one program. What a
scope costs depends only on the open loops and on the cases in which it runs, whatever loop orders and protocols lead there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...compiler.space.grammar import Grammar
from ...compiler.space.nestings import Nestings, Scope
from ...compiler.space.statements import workspace_number
from .gathering import Gathering, Progress
from .interpret import entry_clauses
from .predicates import Predicates
from .reading import Reading
from .tasks import TaskTable
from .variations import Read, Variations

States = tuple[int, ...]
"""The predicates of the workspace that a scope fills, one for each case in which the scope runs; none for the result."""


class Outcome(NamedTuple):
    """A task set, and what the scope leaves behind."""

    tasks: int
    states: States


class Case(NamedTuple):
    """A case in which a scope runs: what is left of its statements, a guard, and (workspace, state) for the workspaces that they read."""

    variation: int
    guard: int
    states: tuple[tuple[int, int], ...] = ()


class Situation(NamedTuple):
    """A scope, the loops that are open around it, the cases in which it runs, and how far the result can be appended to."""

    scope: Scope
    bound: frozenset[str]
    cases: tuple[Case, ...]
    progress: Progress = 0


class Opened(NamedTuple):
    """One or more loops with chosen protocols: their cost, the situation inside, and the inner cases that each case leads to."""

    tasks: int
    inner: Situation
    leads: tuple[tuple[int, ...], ...]


class _Entered:
    """A case inside a loop before the reads that the loop steps through are chosen; equal choices are computed once."""

    def __init__(self, steps: Steps, case: Case, entries: dict[Read, int], bound: frozenset[str], statements: tuple[int, ...]) -> None:
        self._steps = steps
        self._case = case
        self._entries = entries
        self._bound = bound
        self._statements = statements
        self._known: dict[frozenset[Read], tuple[int, tuple[Case, ...]]] = {}

    def stepped(self, stepping: frozenset[Read]) -> tuple[int, tuple[Case, ...]]:
        """Return the loop's tasks in this case and the cases that follow."""
        chosen = stepping.intersection(self._entries)
        known = self._known.get(chosen)
        if known is None:
            steps, case = self._steps, self._case
            entries = {read: self._entries[read] for read in chosen}
            guards = [steps.predicates.conjunction(case.guard, entry) for entry in entries.values()]
            idle = steps.reading.idle and steps.variations.goes_on(case.variation, self._statements, chosen)
            if idle or not entries:
                guards.append(case.guard)
            tasks = 0
            for guard in guards:
                tasks |= steps.tasks.tasks(self._bound, guard)
            known = self._known[chosen] = tasks, steps.subcases(case, self._statements, entries)
        return known


class Steps:
    """The steps for one space and one cost model.

    Args:
        nestings: the loop nests.
        tasks, predicates: tables of the expression.
        reading: how programs are read.
        memory: whether the memory of workspaces is part of the cost.
        gathering: how a sparse result is stored, for the workspace that it may need; matters with ``memory`` only.
    """

    def __init__(
        self,
        nestings: Nestings,
        tasks: TaskTable,
        predicates: Predicates,
        reading: Reading,
        memory: bool = False,
        gathering: Gathering | None = None,
    ) -> None:
        self.nestings = nestings
        self.table = nestings.table
        self.grammar: Grammar[Scope] = Grammar(nestings.alternatives)
        self.tasks = tasks
        self.predicates = predicates
        self.reading = reading
        self.memory = memory
        self.gathering = gathering if memory else None
        self.variations = Variations(nestings, reading.algebra)
        self._entries: dict[tuple[Read, frozenset[str]], int] = {}

    def start(self, top: Scope) -> Situation:
        """Return the situation of a whole program: one case, or none if the expression is the fill value."""
        variation = self.variations.whole(top.statements)
        return Situation(top, frozenset(), (Case(variation, self.predicates.true),) if variation else ())

    def run(self, situation: Situation, statement: int) -> Outcome:
        """Execute a statement in all cases."""
        tasks = 0
        for case in situation.cases:
            tasks |= self.tasks.tasks(situation.bound, case.guard)
            if self.gathering and self.table[statement].root:
                gathered = self.gathering.workspace(situation.progress)
                tasks |= self._held(gathered, self.predicates.exists(case.guard, situation.bound - gathered))
        states = () if self.table[statement].root else tuple(case.guard for case in situation.cases)
        return Outcome(self.tasks.reduced(tasks), states)

    def openings(self, situation: Situation, name: str, scope: Scope) -> Iterator[Opened]:
        """Interpret a loop around a scope with every choice of protocols.

        The choices come in the order of the grammar: as a number, a choice has a bit for every mode that is located.
        """
        bound = situation.bound | {name}
        modes = self.nestings.protocol_modes(situation.scope, name)
        reads = frozenset((number, place) for number, place, _ in modes)
        cases = [self._entered(case, reads, name, bound, situation.scope) for case in situation.cases]
        progress = situation.progress
        if self.gathering and self.table[scope.statements[-1]].root:
            progress = self.gathering.opened(progress, name)
        for choices in range(1 << len(modes) if self.nestings.protocols else 1):
            stepping = frozenset((number, place) for bit, (number, place, _) in enumerate(modes) if not choices >> bit & 1)
            tasks = 0
            inner: dict[Case, int] = {}
            leads = []
            for case in cases:
                own, subcases = case.stepped(stepping)
                tasks |= own
                leads.append(tuple(inner.setdefault(sub, len(inner)) for sub in subcases))
            yield Opened(self.tasks.reduced(tasks), Situation(scope, bound, tuple(inner), progress), tuple(leads))

    def _entered(self, case: Case, reads: frozenset[Read], name: str, bound: frozenset[str], scope: Scope) -> _Entered:
        live = self.variations.reads_of(case.variation) & reads
        return _Entered(self, case, {read: self._entry(read, name, bound, case, scope) for read in live}, bound, scope.statements)

    def subcases(self, case: Case, statements: tuple[int, ...], entries: dict[Read, int]) -> tuple[Case, ...]:
        """Return the cases that a case leads to when a loop steps through the reads whose entries are given."""
        guards: dict[int, int] = {}
        for variation, present in self.variations.rests(case.variation, statements, frozenset(entries)):
            guard = case.guard
            for read in present:
                guard = self.predicates.conjunction(guard, entries[read])
            guards[variation] = self.predicates.disjunction(guards.get(variation, self.predicates.false), guard)
        return tuple(
            Case(variation, guard, self._visible(case.states, variation))
            for variation, guard in guards.items()
            if guard != self.predicates.false
        )

    def _visible(self, states: tuple[tuple[int, int], ...], variation: int) -> tuple[tuple[int, int], ...]:
        if not states:
            return states
        read = self.variations.workspaces(variation)
        return tuple(entry for entry in states if entry[0] in read)

    def _entry(self, read: Read, name: str, bound: frozenset[str], case: Case, scope: Scope) -> int:
        """Return the predicate that a read has an entry at the open loops' coordinates, the loop over ``name`` innermost."""
        access = self.variations.reads(read[0])[read[1]]
        number = workspace_number(access)
        if number is not None:
            state = next(state for workspace, state in case.states if workspace == number)
            return self.predicates.exists(state, frozenset(dict(scope.given)[number]) - bound)
        if self.reading.is_dense_step(access, name, len(bound)):
            bound = bound - {name}
        key = (read, bound.intersection(access.indices))
        known = self._entries.get(key)
        if known is None:
            known = self._entries[key] = self.predicates.of_clauses(entry_clauses(access, bound))
        return known

    def around(self, situation: Situation, names: tuple[str, ...], opened: Opened, inner: Outcome) -> Outcome:
        """Return the outcome of a scope from that of what is inside loops over ``names``."""
        tasks = self.tasks.reduced(opened.tasks | inner.tasks)
        last = self.table[situation.scope.statements[-1]]
        if last.root:
            return Outcome(tasks, ())
        hidden = frozenset(names) - last.carries
        states = []
        for places in opened.leads:
            state = self.predicates.false
            for place in places:
                state = self.predicates.disjunction(state, inner.states[place])
            states.append(self.predicates.exists(state, hidden))
        return Outcome(tasks, tuple(states))

    def part(self, cases: tuple[Case, ...], part: Scope, whole: Situation) -> tuple[Situation, tuple[int | None, ...]]:
        """Return the situation of one part of a cut, and which of its cases each case is; None where the part does nothing."""
        inner: dict[Case, int] = {}
        places: list[int | None] = []
        for case in cases:
            variation = self.variations.part(case.variation, part.statements)
            sub = Case(variation, case.guard, self._visible(case.states, variation))
            places.append(inner.setdefault(sub, len(inner)) if variation else None)
        return Situation(part, whole.bound, tuple(inner), self._progress(part, whole)), tuple(places)

    def _progress(self, part: Scope, whole: Situation) -> Progress:
        """Return how far the result can be appended to in a part of a cut; no further loop counts if another part writes it too."""
        if not self.gathering or not self.table[part.statements[-1]].root:
            return 0
        several = sum(self.table[number].root for number in whole.scope.statements) > 1
        return self.gathering.stopped(whole.progress) if several else whole.progress

    def stored(self, part: Scope, outcome: Outcome, bound: frozenset[str]) -> int:
        """Return the most that the workspace filled by a part stores at one time; nothing for scalars and the result."""
        number = part.statements[-1]
        indices = self.table[number].carries.intersection(part.loops)
        if not self.memory or self.table[number].root:
            return 0
        tasks = 0
        for state in outcome.states:
            tasks |= self._held(indices, self.predicates.exists(state, bound))
        return tasks

    def _held(self, indices: frozenset[str], pattern: int) -> int:
        """Return what a workspace with a pattern costs in memory; a scalar is free."""
        return self.tasks.tasks(indices, pattern, "memory") if indices else 0

    def after(
        self, cases: tuple[Case, ...], part: Scope, places: tuple[int | None, ...], outcome: Outcome, situation: Situation
    ) -> tuple[tuple[Case, ...], States]:
        """Return the cases with the state of the workspace that a part filled, or, after the last part, the states alone."""
        number = part.statements[-1]
        if self.table[number].root:
            return cases, ()
        states = tuple(self.predicates.false if place is None else outcome.states[place] for place in places)
        if number == situation.scope.statements[-1]:
            return cases, states
        if not self.reading.exact:
            states = tuple(self.predicates.exists(state, situation.bound) for state in states)
        return tuple(
            Case(case.variation, case.guard, (*case.states, (number, state))) for case, state in zip(cases, states, strict=True)
        ), ()
