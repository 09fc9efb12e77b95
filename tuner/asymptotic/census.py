"""The schedules of a space that cost no more than given limits, counted and listed.

Schedules that differ only inside a scope, and have the same task set there, are merged and counted; a schedule that exceeds the limits
is dropped as early as that shows. So schedules are listed one by one only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...compiler.space.grammar import Alternative, Derivation
from ...compiler.space.nestings import Cut, Executed, Loop, Scope
from .steps import Case, Opened, Outcome, Situation, States, Steps

Outcomes = dict[Outcome, int]
"""Outcomes, each with the number of schedules that have it."""


class Census:
    """The schedules of scopes by their outcomes.

    Args:
        steps: the abstract interpretation.
        limits: task sets; schedules that cost more than every one of them are left out. None: all schedules.
    """

    def __init__(self, steps: Steps, limits: Iterable[int] | None = None) -> None:
        self.steps = steps
        self._limits = None if limits is None else tuple(limits)
        self._admitted: dict[int, bool] = {}
        self._known: dict[Situation, Outcomes] = {}

    def _admits(self, tasks: int) -> bool:
        if self._limits is None:
            return True
        known = self._admitted.get(tasks)
        if known is None:
            known = self._admitted[tasks] = any(self.steps.tasks.within(tasks, limit) for limit in self._limits)
        return known

    def outcomes(self, situation: Situation) -> Outcomes:
        """Return what the schedules of a scope cost and leave behind."""
        known = self._known.get(situation)
        if known is None:
            self.steps.nestings.watch()
            known = self._known[situation] = self._computed(situation)
        return known

    def _computed(self, situation: Situation) -> Outcomes:
        if not situation.cases:
            return {Outcome(0, ()): self.steps.grammar.count(situation.scope)}
        found: Outcomes = {}
        for option, _ in self.steps.grammar.alternatives(situation.scope):
            for outcome, count in self._continued(situation, option):
                found[outcome] = found.get(outcome, 0) + count
        return {outcome: count for outcome, count in found.items() if self._admits(outcome.tasks)}

    def _continued(self, situation: Situation, option: Alternative[Scope]) -> Iterator[tuple[Outcome, int]]:
        match option.label:
            case Executed(statement):
                yield self.steps.run(situation, statement), 1
            case Loop(name):
                for opened in self.steps.openings(situation, name, option.parts[0]):
                    if self._admits(opened.tasks):
                        for outcome, count in self.outcomes(opened.inner).items():
                            yield self.steps.around(situation, (name,), opened, outcome), count
            case Cut():
                yield from self._cut(situation, option.parts).items()

    def _cut(self, situation: Situation, parts: tuple[Scope, ...]) -> Outcomes:
        reached: dict[tuple[int, tuple[Case, ...], States], int] = {(0, situation.cases, ()): 1}
        for part in parts:
            following: dict[tuple[int, tuple[Case, ...], States], int] = {}
            for (tasks, cases, _), count in reached.items():
                inner, places = self.steps.part(cases, part, situation)
                for outcome, more in self.outcomes(inner).items():
                    total = self.steps.tasks.reduced(tasks | outcome.tasks | self.steps.stored(part, outcome, situation.bound))
                    if self._admits(total):
                        key = (total, *self.steps.after(cases, part, places, outcome, situation))
                        following[key] = following.get(key, 0) + count * more
            reached = following
        found: Outcomes = {}
        for (tasks, _, states), count in reached.items():
            outcome = Outcome(tasks, states)
            found[outcome] = found.get(outcome, 0) + count
        return found

    def derivations(self, situation: Situation, wanted: Outcome) -> Iterator[Derivation]:
        """Yield the schedules of a scope that have an outcome, in canonical order."""
        if not situation.cases:
            yield from self.steps.grammar.derivations(situation.scope)
            return
        for option, _ in self.steps.grammar.alternatives(situation.scope):
            match option.label:
                case Executed(statement):
                    if self.steps.run(situation, statement) == wanted:
                        yield Derivation(option.label, 0, ())
                case Loop(name):
                    for choices, opened in enumerate(self.steps.openings(situation, name, option.parts[0])):
                        if self._admits(opened.tasks):
                            for inner in self._inner(situation, name, opened, wanted):
                                yield Derivation(option.label, choices, (inner,))
                case Cut():
                    for trees in self._cut_derivations(situation, option.parts, situation.cases, 0, wanted):
                        yield Derivation(option.label, 0, trees)

    def _inner(self, situation: Situation, name: str, opened: Opened, wanted: Outcome) -> Iterator[Derivation]:
        for outcome in self.outcomes(opened.inner):
            if self.steps.around(situation, (name,), opened, outcome) == wanted:
                yield from self.derivations(opened.inner, outcome)

    def _cut_derivations(
        self, situation: Situation, parts: tuple[Scope, ...], cases: tuple[Case, ...], tasks: int, wanted: Outcome
    ) -> Iterator[tuple[Derivation, ...]]:
        inner, places = self.steps.part(cases, parts[0], situation)
        for outcome in self.outcomes(inner):
            total = self.steps.tasks.reduced(tasks | outcome.tasks | self.steps.stored(parts[0], outcome, situation.bound))
            following, states = self.steps.after(cases, parts[0], places, outcome, situation)
            if len(parts) == 1:
                if Outcome(total, states) == wanted:
                    yield from ((tree,) for tree in self.derivations(inner, outcome))
                continue
            if not self.steps.tasks.within(total, wanted.tasks):
                continue
            rests = list(self._cut_derivations(situation, parts[1:], following, total, wanted))
            if rests:
                for tree in self.derivations(inner, outcome):
                    yield from ((tree, *rest) for rest in rests)
