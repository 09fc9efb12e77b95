"""The values in the holes of one structure: a study of Optuna with one parameter for each hole, the same in all its trials.

Since every trial has every parameter, multivariate TPE sees how they go together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from ...compiler.space.template import Template, Value
from .journal import own
from .studies import decoded, distribution, encoded, finish, open_study

STARTUP = 4
"""Trials before TPE has something to learn from; until then points are drawn."""

_TRIES = 8  # known proposals in a row before points are drawn at random
_WAITING = 30  # most points that a killed process may have left waiting
_DRAWS = 200  # known points that are drawn in a row before the structure counts as exhausted
_SIBLING = "sibling"

Values = tuple[Value, ...]


class StructureStudy:
    """The points of one template.

    Args:
        template: the structure.
        storage: of the studies.
        name: of this one.
        seed: of the sampler.
    """

    def __init__(self, template: Template, storage: BaseStorage, name: str, seed: int) -> None:
        self._holes = template.holes
        self._spread = {hole.name: distribution(hole) for hole in self._holes}
        self._study, past = open_study(storage, name, seed, multivariate=True, n_startup_trials=STARTUP)
        self._random = random.Random(seed + past)
        self._siblings: set[str] = {trial.user_attrs[_SIBLING] for trial in self._past() if _SIBLING in trial.user_attrs}

    def recorded(self) -> Iterator[tuple[Values, float | None]]:
        """Yield the points of this structure that were told before, and their seconds."""
        for trial in self._past():
            if _SIBLING not in trial.user_attrs and trial.state.is_finished() and trial.state != TrialState.FAIL:
                yield self._values(trial.params), trial.value

    def running(self) -> list[Values]:
        """Return the points that are being measured, by other processes too."""
        found = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return [self._values(trial.params) for trial in found if len(trial.params) == len(self._holes)]

    def learn(self, source: str, values: Mapping[str, Value], seconds: float) -> None:
        """Add the time of a sibling's point to the study, once, if its values are choices of the holes here.

        Args:
            source: its schedule.
            values: by the names of holes; those of holes that this structure lacks are left out.
            seconds: what it would take here.
        """
        fitting = all(hole.name in values and values[hole.name] in hole.choices for hole in self._holes)
        if fitting and self._holes and source not in self._siblings:
            self._siblings.add(source)
            params = self._encoded(tuple(values[hole.name] for hole in self._holes))
            trial = create_trial(params=params, distributions=self._spread, value=seconds, user_attrs={_SIBLING: source})
            self._study.add_trial(trial)

    def ask(self, first: Values, is_new: Callable[[Values], bool]) -> tuple[Values, int] | None:
        """Return a new point and the number of its trial; None: there are no more.

        Args:
            first: the point to begin with, if it is new.
            is_new: tells whether a point was not asked for yet.
        """
        if is_new(first):
            return self._asked(first, is_new)
        for _ in range(_TRIES):
            trial = self._study.ask(self._spread)
            values = self._values(trial.params)
            if is_new(values):
                own(trial)
                return values, trial.number
            self._study.tell(trial, state=TrialState.FAIL)
        for _ in range(_DRAWS):
            drawn = tuple(self._random.choice(hole.choices) for hole in self._holes)
            if is_new(drawn):
                return self._asked(drawn, is_new)
        return None

    def tell(self, number: int, seconds: float | None) -> None:
        """Report a trial; points similar to one that failed are avoided."""
        finish(self._study, number, seconds)

    def _asked(self, values: Values, is_new: Callable[[Values], bool]) -> tuple[Values, int] | None:
        """Ask the study for a point. Points that a killed process left waiting come first; they may be known by now."""
        self._study.enqueue_trial(self._encoded(values))
        for _ in range(_WAITING):
            trial = self._study.ask(self._spread)
            if is_new(found := self._values(trial.params)):
                own(trial)
                return found, trial.number
            self._study.tell(trial, state=TrialState.FAIL)
        return None

    def _past(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _encoded(self, values: Values) -> dict[str, Any]:
        return {hole.name: encoded(hole, value) for hole, value in zip(self._holes, values, strict=True)}

    def _values(self, params: Mapping[str, Any]) -> Values:
        return tuple(decoded(hole, params[hole.name]) for hole in self._holes)
