"""What stands in the holes of one structure: a study of Optuna with a parameter a hole, the same in all its trials.

Numbers are integers over their ranks, so that neighbouring sizes are neighbours. Since every trial has every parameter, multivariate TPE
sees how they go together.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage
from optuna.trial import TrialState, create_trial

from ...compiler.space.template import Hole, Template, Value
from ..settings import MOST_SEED
from .journal import fail_orphans, own

STARTUP = 4
"""Trials before TPE has something to learn from; until then points are drawn."""

_TRIES = 30  # proposals in a row that are known already, before points are drawn
_DRAWS = 200  # points in a row that are known already, before the structure counts as exhausted
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
        self._spread = {hole.name: _distribution(hole) for hole in self._holes}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study = optuna.create_study(storage=storage, study_name=name, direction="minimize", load_if_exists=True)
            past = len(self._study.get_trials(deepcopy=False))
            # a sampler that is started again with the seed of the first process would propose the same points again
            self._study.sampler = TPESampler(multivariate=True, n_startup_trials=STARTUP, seed=(seed + past) % (MOST_SEED + 1))
        self._random = random.Random(seed + past)
        self._siblings: set[str] = {trial.user_attrs[_SIBLING] for trial in self._past() if _SIBLING in trial.user_attrs}
        fail_orphans(self._study)

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
        """Take what a sibling's point took, once, where the values are among those of the holes here.

        Args:
            source: its schedule.
            values: by the names of holes; more than there are here do no harm.
            seconds: that it would take here.
        """
        fitting = all(hole.name in values and values[hole.name] in hole.choices for hole in self._holes)
        if fitting and self._holes and source not in self._siblings:
            self._siblings.add(source)
            params = self._encoded(tuple(values[hole.name] for hole in self._holes))
            trial = create_trial(params=params, distributions=self._spread, value=seconds, user_attrs={_SIBLING: source})
            self._study.add_trial(trial)

    def ask(self, first: Values | None, is_new: Any) -> tuple[Values, int] | None:
        """Return a new point and the number of its trial; None: there are no more.

        Args:
            first: the point to begin with, if it is new.
            is_new: tells whether a point was not asked for yet.
        """
        if first is not None and is_new(first):
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
        """Report a trial; one that failed ranks behind all others, so that the like is avoided."""
        state = TrialState.PRUNED if seconds is None else TrialState.COMPLETE
        self._study.tell(number, seconds, state=state, skip_if_finished=True)

    def _asked(self, values: Values, is_new: Any) -> tuple[Values, int] | None:
        """Ask for a point. What a process that was killed has left waiting comes first, and may be known by now."""
        self._study.enqueue_trial(self._encoded(values))
        for _ in range(_TRIES):
            trial = self._study.ask(self._spread)
            if is_new(found := self._values(trial.params)):
                own(trial)
                return found, trial.number
            self._study.tell(trial, state=TrialState.FAIL)
        return None

    def _past(self) -> list[optuna.trial.FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _encoded(self, values: Values) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for hole, value in zip(self._holes, values, strict=True):
            label = hole.labels[hole.choices.index(value)]
            found[hole.name] = sorted(hole.labels).index(label) if hole.is_ordered else label  # type: ignore[type-var]
        return found

    def _values(self, params: Mapping[str, Any]) -> Values:
        found: list[Value] = []
        for hole in self._holes:
            label = sorted(hole.labels)[params[hole.name]] if hole.is_ordered else params[hole.name]  # type: ignore[type-var]
            found.append(hole.choices[hole.labels.index(label)])
        return tuple(found)


def _distribution(hole: Hole) -> BaseDistribution:
    return IntDistribution(0, len(hole.choices) - 1) if hole.is_ordered else CategoricalDistribution(hole.labels)
