"""The lowest costs in a space: every step keeps only what no other way to the same place beats.

Costs and workspace states are monotone in the guards of the cases, so whatever a beaten start or part of a schedule leads
to, the one that beats it leads to something at least as good: no undominated cost of the space is lost. Loops of a scope
are opened set by set, and starts with the same open loops are compared; scopes that a cut leaves are solved on their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ...compiler.space.nestings import Cut, Executed, Loop, Scope
from .gathering import goes_further
from .steps import Case, Opened, Outcome, Situation, States, Steps


class CheapestSearch:
    """Finds the undominated costs of programs.

    Costs of whole programs bound the search: a part that costs as much as a program that was found, or more than one that was known
    before, is given up before it is complete.

    Args:
        steps: the abstract interpretation.
        known: what some programs cost.

    Attributes:
        reached: the lowest costs in what has been searched so far.
        searched: how many of the given situations have been searched.
    """

    def __init__(self, steps: Steps, known: Iterable[int] = ()) -> None:
        self.steps = steps
        self.searched = 0
        self._known: dict[Situation, tuple[Outcome, ...]] = {}
        self._bounds = tuple(known)
        self.reached: tuple[Outcome, ...] = ()
        self._hopeless: dict[int, bool] = {}

    def lowest(self, starts: Sequence[Situation], report: Callable[[str], None]) -> tuple[Outcome, ...]:
        """Return the costs of whole programs that no other beats, from the situations in which the programs begin.

        ``report`` is told how far the search has come.
        """
        for number, start in enumerate(starts):
            report(f"{len(self.reached)} lowest costs in {number} of {len(starts)} ways to place workspaces")
            reached = self.undominated((*self.reached, *self.outcomes(start)))
            if reached != self.reached:
                self.reached = reached
                self._hopeless.clear()
            self.searched = number + 1
        return self.reached

    def _is_hopeless(self, tasks: int) -> bool:
        """Whether some program was found that costs no more than this part of one, or was known before and costs less."""
        known = self._hopeless.get(tasks)
        if known is None:
            within = self.steps.tasks.within
            found = any(within(one.tasks, tasks) for one in self.reached)
            known = self._hopeless[tasks] = found or any(within(one, tasks) and not within(tasks, one) for one in self._bounds)
        return known

    def outcomes(self, situation: Situation) -> tuple[Outcome, ...]:
        """Return the outcomes of a scope that no other beats, except those that cost as much as a known program."""
        known = self._known.get(situation)
        if known is None:
            possible = self.steps.grammar.count(situation.scope) > 0
            found = self._searched(situation) if situation.cases else [Outcome(0, ())] * possible
            known = self._known[situation] = self.undominated(one for one in found if not self._is_hopeless(one.tasks))
        return known

    def undominated(self, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
        """Return the outcomes that no other one beats, each once."""
        kept: list[Outcome] = []
        for outcome in dict.fromkeys(outcomes):
            if not any(self._beats(other, outcome) for other in kept):
                kept = [other for other in kept if not self._beats(outcome, other)]
                kept.append(outcome)
        return tuple(kept)

    def _beats(self, one: Outcome, other: Outcome) -> bool:
        return self.steps.tasks.within(one.tasks, other.tasks) and all(map(self.steps.predicates.implies, one.states, other.states))

    def _searched(self, situation: Situation) -> list[Outcome]:
        """Open loops until the scope is cut or run; ``starts`` are the ways that are not beaten so far."""
        results: list[Outcome] = []
        starts = [((), Opened(0, situation, tuple((place,) for place in range(len(situation.cases)))))]
        while starts:
            following: dict[Scope, list[tuple[tuple[str, ...], Opened]]] = {}
            for names, start in starts:
                self.steps.nestings.watch()
                results += [self.steps.around(situation, names, start, outcome) for outcome in self._ended(start.inner)]
                for name, opened in self._opened(start.inner):
                    further = self._joined(start, opened)
                    if not self._is_hopeless(further.tasks):
                        self._enter(following.setdefault(further.inner.scope, []), (*names, name), further)
            starts = [start for group in following.values() for start in group]
        return results

    def _ended(self, situation: Situation) -> Iterator[Outcome]:
        """Yield the outcomes of executing or cutting a scope at once."""
        for option, _ in self.steps.grammar.alternatives(situation.scope):
            match option.label:
                case Executed(statement):
                    yield self.steps.run(situation, statement)
                case Cut():
                    yield from self._cut(situation, option.parts)
                case _:
                    pass

    def _opened(self, situation: Situation) -> Iterator[tuple[str, Opened]]:
        """Yield every loop with every choice of protocols."""
        for option, _ in self.steps.grammar.alternatives(situation.scope):
            if isinstance(option.label, Loop):
                for opened in self.steps.openings(situation, option.label.index, option.parts[0]):
                    yield option.label.index, opened

    def _joined(self, start: Opened, opened: Opened) -> Opened:
        leads = tuple(tuple(sorted({lead for place in places for lead in opened.leads[place]})) for places in start.leads)
        return Opened(self.steps.tasks.reduced(start.tasks | opened.tasks), opened.inner, leads)

    def _enter(self, group: list[tuple[tuple[str, ...], Opened]], names: tuple[str, ...], start: Opened) -> None:
        """Add a start to those with the same loops open, unless one of them beats it; drop those that it beats."""
        if any(self._leads_better(other, start) for _, other in group):
            return
        group[:] = [(known, other) for known, other in group if not self._leads_better(start, other)]
        group.append((names, start))

    def _leads_better(self, one: Opened, other: Opened) -> bool:
        """Whether a start costs no more, and every case it leads to is covered by one that the other leads to."""
        if not self.steps.tasks.within(one.tasks, other.tasks) or not goes_further(one.inner.progress, other.inner.progress):
            return False
        for own, theirs in zip(one.leads, other.leads, strict=True):
            covers = [other.inner.cases[place] for place in theirs]
            if not all(any(self._narrower(one.inner.cases[place], cover) for cover in covers) for place in own):
                return False
        return True

    def _narrower(self, case: Case, cover: Case) -> bool:
        implies = self.steps.predicates.implies
        return (
            case.variation == cover.variation
            and implies(case.guard, cover.guard)
            and all(implies(state, wider) for (_, state), (_, wider) in zip(case.states, cover.states, strict=True))
        )

    def _cut(self, situation: Situation, parts: tuple[Scope, ...]) -> Iterator[Outcome]:
        reached: list[tuple[int, tuple[Case, ...], States]] = [(0, situation.cases, ())]
        for part in parts:
            following: list[tuple[int, tuple[Case, ...], States]] = []
            for tasks, cases, _ in reached:
                inner, places = self.steps.part(cases, part, situation)
                for outcome in self.outcomes(inner):
                    total = self.steps.tasks.reduced(tasks | outcome.tasks | self.steps.stored(part, outcome, situation.bound))
                    if not self._is_hopeless(total):
                        self._reach(following, (total, *self.steps.after(cases, part, places, outcome, situation)))
            reached = following
        yield from (Outcome(tasks, states) for tasks, _, states in reached)

    def _reach(self, reached: list[tuple[int, tuple[Case, ...], States]], new: tuple[int, tuple[Case, ...], States]) -> None:
        if not any(self._goes_better(other, new) for other in reached):
            reached[:] = [other for other in reached if not self._goes_better(new, other)]
            reached.append(new)

    def _goes_better(self, one: tuple[int, tuple[Case, ...], States], other: tuple[int, tuple[Case, ...], States]) -> bool:
        return (
            self.steps.tasks.within(one[0], other[0])
            and all(map(self._narrower, one[1], other[1]))
            and all(map(self.steps.predicates.implies, one[2], other[2]))
        )
