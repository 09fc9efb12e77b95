"""The costs of all schedules of a space at once.

Scopes of the schedule space (``compiler.space.nestings``) are interpreted abstractly, as ``interpret`` does for one
program, but every way to go on is followed together: what a scope costs depends only on the open loops and on the cases in
which it runs, so it is computed once for all loop orders and protocols that lead there, and schedules with the same task
set are merged, with their number. A producer and its consumers are composed through the states of workspaces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...compiler.space.grammar import Alternative, Derivation, Grammar
from ...compiler.space.groupings import workspace_number
from ...compiler.space.nestings import Cut, Loop, Nestings, Run, Scope
from .algebra import Algebra
from .interpret import entry_clauses
from .predicates import Predicates
from .tasks import TaskTable
from .variations import Read, Variations

States = tuple[int, ...]
"""The predicates of the workspace that a scope fills, one for each case in which the scope runs; none for the result."""


class Outcome(NamedTuple):
    """A task set, and what the scope leaves behind."""

    tasks: int
    states: States


class Case(NamedTuple):
    """A case in which a scope runs: what is left of its statements, a guard, and (workspace, state) of what they read."""

    variation: int
    guard: int
    states: tuple[tuple[int, int], ...] = ()


class Situation(NamedTuple):
    """A scope, the loops that are open around it, and the cases in which it runs."""

    scope: Scope
    bound: frozenset[str]
    cases: tuple[Case, ...]


Outcomes = dict[Outcome, int]
"""Outcomes, each with the number of schedules that have it."""


class Policy(ABC):
    """Which outcomes are of interest."""

    @abstractmethod
    def admits(self, tasks: int) -> bool:
        """Whether schedules that cost at least these tasks are of interest."""

    @abstractmethod
    def settled(self, outcomes: Outcomes) -> Outcomes:
        """Return the outcomes of a scope that are of interest."""


class Opened(NamedTuple):
    """A loop with chosen protocols: what it costs, what comes inside, and which inner cases each case leads to."""

    tasks: int
    inner: Situation
    leads: tuple[tuple[int, ...], ...]


class Composer:
    """The costs of all loop nests of one grouping.

    Args:
        nestings: the loop nests.
        tasks, predicates: tables, shared by all groupings of an expression.
        algebra: operators and fill values.
        policy: which outcomes are of interest.
        exact: the workspace state model.
        memory: whether what workspaces store is part of the cost.
    """

    def __init__(
        self,
        nestings: Nestings,
        tasks: TaskTable,
        predicates: Predicates,
        algebra: Algebra,
        policy: Policy,
        exact: bool = True,
        memory: bool = False,
    ) -> None:
        self.nestings = nestings
        self.tasks = tasks
        self.predicates = predicates
        self.exact = exact
        self.memory = memory
        self.policy = policy
        self.variations = Variations(nestings, algebra)
        self.grammar: Grammar[Scope] = Grammar(nestings.alternatives)
        self._known: dict[Situation, Outcomes] = {}
        self._entries: dict[tuple[Read, frozenset[str]], int] = {}
        self._result = {number: nestings.grouping.statements[number].parent is None for number in range(len(nestings.grouping.statements))}

    def start(self, depth: int | None) -> Situation:
        """Return the situation of the whole program."""
        return Situation(self.nestings.top(depth), frozenset(), (Case(self.variations.whole(), self.predicates.true),))

    def outcomes(self, situation: Situation) -> Outcomes:
        """Return what the schedules of a scope cost and leave behind."""
        known = self._known.get(situation)
        if known is None:
            known = self._known[situation] = self._computed(situation)
        return known

    def _computed(self, situation: Situation) -> Outcomes:
        if not situation.cases:
            return {Outcome(0, ()): self.grammar.count(situation.scope)}
        found: Outcomes = {}
        for option, _ in self.grammar.alternatives(situation.scope):
            for outcome, count in self._continued(situation, option):
                found[outcome] = found.get(outcome, 0) + count
        return self.policy.settled(found)

    def _continued(self, situation: Situation, option: Alternative[Scope]) -> Iterator[tuple[Outcome, int]]:
        match option.label:
            case Run(statement):
                yield self._run(situation, statement), 1
            case Loop(name):
                for choices in range(1 << option.bits):
                    opened = self.opened(situation, name, option.parts[0], choices)
                    if self.policy.admits(opened.tasks):
                        for outcome, count in self.outcomes(opened.inner).items():
                            yield self.around(situation, name, opened, outcome), count
            case Cut():
                yield from self._cut(situation, option.parts).items()

    def _run(self, situation: Situation, statement: int) -> Outcome:
        tasks = 0
        for case in situation.cases:
            tasks |= self.tasks.tasks(situation.bound, case.guard)
        states = () if self._result[statement] else tuple(case.guard for case in situation.cases)
        return Outcome(self.tasks.reduced(tasks), states)

    def opened(self, situation: Situation, name: str, scope: Scope, choices: int) -> Opened:
        """Interpret a loop around a scope; ``choices`` has a bit for every mode that is located instead of stepped."""
        bound = situation.bound | {name}
        modes = self.nestings.protocol_modes(situation.scope, name)
        stepping = frozenset((number, place) for bit, (number, place, _) in enumerate(modes) if not choices >> bit & 1)
        tasks = 0
        inner: dict[Case, int] = {}
        leads = []
        for case in situation.cases:
            stepped = self.variations.reads_of(case.variation) & stepping
            entries = {read: self._entry(read, bound, case, situation.scope) for read in stepped}
            guards = [self.predicates.conjunction(case.guard, entry) for entry in entries.values()] or [case.guard]
            for guard in guards:
                tasks |= self.tasks.tasks(bound, guard)
            subcases = self._subcases(case, situation.scope, stepped, entries)
            leads.append(tuple(inner.setdefault(sub, len(inner)) for sub in subcases))
        return Opened(self.tasks.reduced(tasks), Situation(scope, bound, tuple(inner)), tuple(leads))

    def _subcases(self, case: Case, scope: Scope, stepped: frozenset[Read], entries: dict[Read, int]) -> Iterator[Case]:
        guards: dict[int, int] = {}
        for variation, present in self.variations.rests(case.variation, scope.statements, stepped):
            guard = case.guard
            for read in present:
                guard = self.predicates.conjunction(guard, entries[read])
            guards[variation] = self.predicates.disjunction(guards.get(variation, self.predicates.false), guard)
        for variation, guard in guards.items():
            if guard != self.predicates.false:
                yield Case(variation, guard, self._visible(case.states, variation))

    def _visible(self, states: tuple[tuple[int, int], ...], variation: int) -> tuple[tuple[int, int], ...]:
        if not states:
            return states
        read = self.variations.workspaces(variation)
        return tuple(entry for entry in states if entry[0] in read)

    def _entry(self, read: Read, bound: frozenset[str], case: Case, scope: Scope) -> int:
        """Return the predicate that a read has an entry at the open loops' coordinates."""
        access = self.variations.reads[read[0]][read[1]]
        number = workspace_number(access)
        if number is not None:
            state = next(state for workspace, state in case.states if workspace == number)
            return self.predicates.exists(state, frozenset(dict(scope.given)[number]) - bound)
        key = (read, bound.intersection(access.indices))
        known = self._entries.get(key)
        if known is None:
            known = self._entries[key] = self.predicates.of_clauses(entry_clauses(access, bound))
        return known

    def around(self, situation: Situation, name: str, opened: Opened, inner: Outcome) -> Outcome:
        """Return the outcome of a scope from that of what is inside the loop."""
        tasks = self.tasks.reduced(opened.tasks | inner.tasks)
        last = situation.scope.statements[-1]
        if self._result[last]:
            return Outcome(tasks, ())
        hidden = frozenset() if name in self.nestings.grouping.statements[last].carries else frozenset({name})
        states = []
        for places in opened.leads:
            state = self.predicates.false
            for place in places:
                state = self.predicates.disjunction(state, inner.states[place])
            states.append(self.predicates.exists(state, hidden))
        return Outcome(tasks, tuple(states))

    def _cut(self, situation: Situation, parts: tuple[Scope, ...]) -> Outcomes:
        reached: dict[tuple[int, tuple[Case, ...], States], int] = {(0, situation.cases, ()): 1}
        for part in parts:
            following: dict[tuple[int, tuple[Case, ...], States], int] = {}
            for (tasks, cases, _), count in reached.items():
                inner, places = self.part(cases, part, situation.bound)
                for outcome, more in self.outcomes(inner).items():
                    total = self.tasks.reduced(tasks | outcome.tasks | self._stored(part, outcome, situation.bound))
                    if self.policy.admits(total):
                        key = (total, *self.after(cases, part, places, outcome, situation))
                        following[key] = following.get(key, 0) + count * more
            reached = following
        found: Outcomes = {}
        for (tasks, _, states), count in reached.items():
            outcome = Outcome(tasks, states)
            found[outcome] = found.get(outcome, 0) + count
        return found

    def part(self, cases: tuple[Case, ...], part: Scope, bound: frozenset[str]) -> tuple[Situation, tuple[int | None, ...]]:
        """Return the situation of one part of a cut, and which of its cases each case is; None where the part does nothing."""
        inner: dict[Case, int] = {}
        places: list[int | None] = []
        for case in cases:
            variation = self.variations.part(case.variation, part.statements)
            sub = Case(variation, case.guard, self._visible(case.states, variation))
            places.append(inner.setdefault(sub, len(inner)) if variation else None)
        return Situation(part, bound, tuple(inner)), tuple(places)

    def _stored(self, part: Scope, outcome: Outcome, bound: frozenset[str]) -> int:
        """Return what the workspace that a part fills stores at one time, at most; nothing for scalars and the result."""
        number = part.statements[-1]
        indices = self.nestings.grouping.statements[number].carries.intersection(part.loops)
        if not self.memory or self._result[number] or not indices:
            return 0
        tasks = 0
        for state in outcome.states:
            tasks |= self.tasks.tasks(indices, self.predicates.exists(state, bound), "memory")
        return tasks

    def after(
        self, cases: tuple[Case, ...], part: Scope, places: tuple[int | None, ...], outcome: Outcome, situation: Situation
    ) -> tuple[tuple[Case, ...], States]:
        """Return the cases with the state of the workspace that a part filled, or, after the last part, the states alone."""
        number = part.statements[-1]
        if self._result[number]:
            return cases, ()
        states = tuple(self.predicates.false if place is None else outcome.states[place] for place in places)
        if number == situation.scope.statements[-1]:
            return cases, states
        if not self.exact:
            states = tuple(self.predicates.exists(state, situation.bound) for state in states)
        return tuple(
            Case(case.variation, case.guard, (*case.states, (number, state))) for case, state in zip(cases, states, strict=True)
        ), ()

    def derivations(self, situation: Situation, wanted: Outcome) -> Iterator[Derivation]:
        """Yield the schedules of a scope that have an outcome, in canonical order."""
        if not situation.cases:
            yield from self.grammar.derivations(situation.scope)
            return
        for option, _ in self.grammar.alternatives(situation.scope):
            match option.label:
                case Run(statement):
                    if self._run(situation, statement) == wanted:
                        yield Derivation(option.label, 0, ())
                case Loop(name):
                    for choices in range(1 << option.bits):
                        opened = self.opened(situation, name, option.parts[0], choices)
                        if self.policy.admits(opened.tasks):
                            for inner in self._inner(situation, name, opened, wanted):
                                yield Derivation(option.label, choices, (inner,))
                case Cut():
                    for trees in self._cut_derivations(situation, option.parts, situation.cases, 0, wanted):
                        yield Derivation(option.label, 0, trees)

    def _inner(self, situation: Situation, name: str, opened: Opened, wanted: Outcome) -> Iterator[Derivation]:
        for outcome in self.outcomes(opened.inner):
            if self.around(situation, name, opened, outcome) == wanted:
                yield from self.derivations(opened.inner, outcome)

    def _cut_derivations(
        self, situation: Situation, parts: tuple[Scope, ...], cases: tuple[Case, ...], tasks: int, wanted: Outcome
    ) -> Iterator[tuple[Derivation, ...]]:
        inner, places = self.part(cases, parts[0], situation.bound)
        for outcome in self.outcomes(inner):
            total = self.tasks.reduced(tasks | outcome.tasks | self._stored(parts[0], outcome, situation.bound))
            following, states = self.after(cases, parts[0], places, outcome, situation)
            if len(parts) == 1:
                if Outcome(total, states) == wanted:
                    yield from ((tree,) for tree in self.derivations(inner, outcome))
                continue
            if not self.tasks.within(total, wanted.tasks):
                continue
            rests = list(self._cut_derivations(situation, parts[1:], following, total, wanted))
            if rests:
                for tree in self.derivations(inner, outcome):
                    yield from ((tree, *rest) for rest in rests)


class Cheapest(Policy):
    """Keeps outcomes that no other beats; costs and states are monotone, so no undominated cost of the space is lost."""

    def __init__(self, tasks: TaskTable, predicates: Predicates) -> None:
        self._tasks = tasks
        self._predicates = predicates

    def admits(self, tasks: int) -> bool:
        return True

    def settled(self, outcomes: Outcomes) -> Outcomes:
        kept: list[Outcome] = []
        for outcome in outcomes:
            if not any(self._beats(other, outcome) for other in kept):
                kept = [other for other in kept if not self._beats(outcome, other)]
                kept.append(outcome)
        return {outcome: outcomes[outcome] for outcome in kept}

    def _beats(self, one: Outcome, other: Outcome) -> bool:
        return self._tasks.within(one.tasks, other.tasks) and all(map(self._predicates.implies, one.states, other.states))


class Within(Policy):
    """Keeps outcomes that cost no more than one of some given task sets."""

    def __init__(self, tasks: TaskTable, limits: Iterable[int]) -> None:
        self._tasks = tasks
        self._limits = tuple(limits)
        self._admitted: dict[int, bool] = {}

    def admits(self, tasks: int) -> bool:
        known = self._admitted.get(tasks)
        if known is None:
            known = self._admitted[tasks] = any(self._tasks.within(tasks, limit) for limit in self._limits)
        return known

    def settled(self, outcomes: Outcomes) -> Outcomes:
        return {outcome: count for outcome, count in outcomes.items() if self.admits(outcome.tasks)}
