"""Optuna's TPE over a whole space, in a journal file that a later process takes up.

The template is a categorical parameter. A parameter of the same name and choices is shared by all templates that have it: what was
learned about a chunk size serves every loop order.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from ...compiler.space.template import Hole, Value
from ..records import digest
from .journal import open_storage, own
from .space import Point, Space
from .strategy import Proposal
from .studies import decoded, encoded, finish, open_study

_TEMPLATE = "template"
_TRIES = 30  # known proposals in a row before points are drawn at random
_HOPELESS = 3  # failures after which a template that has never worked is given up
_RANDOM_TRIES = 200  # known points that are drawn in a row before the space counts as exhausted


class FlatStudy:
    """TPE, seeded; templates with usual values are tried first, known points are never proposed.

    Args:
        space: what may be proposed.
        seed: of the sampler.
        journal: file of the study, made if missing; trials that a dead process left running are failed. None: in memory.
        name: of the study; the digest of the space is added, since a study's categories cannot change.
        usual: how many templates to try with usual values before the sampler decides.
        groups: whether parameters that occur together are sampled together.
    """

    def __init__(self, space: Space, seed: int, journal: Path | None, name: str, usual: int, groups: bool = False) -> None:
        self._space = space
        self._labels = tuple(digest(template.text)[:8] for template in space.templates)
        self._known: dict[str, float | None] = {}
        self._asked: set[str] = set()  # schedules that were proposed and not told yet
        self._failures: Counter[str] = Counter()  # by template; negative once it has worked
        self._study, past = open_study(open_storage(journal), f"{name}-{space.digest}", seed, multivariate=groups, group=groups)
        self._random = random.Random(seed + past)
        if not past:
            for point, _ in zip(space.usual_points(), range(usual), strict=False):
                self._study.enqueue_trial(self._encode(point))

    def ask(self) -> Proposal | None:
        for _ in range(_TRIES):
            proposal, point = self._propose()
            if self._is_new(point):
                return self._ask(proposal)
            if proposal.schedule in self._asked:
                self._study.tell(self._trial(proposal).number, state=TrialState.FAIL)
            else:
                self._finish(proposal, self._known.get(proposal.schedule))
        for _ in range(_RANDOM_TRIES):
            point = self._space.random_point(self._random)
            if self._is_new(point):
                self._study.enqueue_trial(self._encode(point))
                proposal, found = self._propose()
                if self._is_new(found):  # otherwise a killed process had left it waiting, and it has been measured since
                    return self._ask(proposal)
                self._finish(proposal, self._known.get(proposal.schedule))
        return None

    def _ask(self, proposal: Proposal) -> Proposal:
        self._asked.add(proposal.schedule)
        return proposal

    def tell(self, proposal: Proposal, seconds: float | None) -> None:
        self._known[proposal.schedule] = seconds
        self._asked.discard(proposal.schedule)
        self._finish(proposal, seconds)
        template = self._trial(proposal).params[_TEMPLATE]
        self._failures[template] = -1 if seconds is not None or self._failures[template] < 0 else self._failures[template] + 1

    def know(self, schedule: str, seconds: float | None) -> None:
        self._known[schedule] = seconds

    def close(self) -> None:
        """Do nothing: the journal is written with every trial."""

    def _propose(self) -> tuple[Proposal, Point]:
        trial = self._study.ask()
        own(trial)
        number = self._labels.index(trial.suggest_categorical(_TEMPLATE, self._labels))
        point = Point(number, tuple(_suggested(hole, trial) for hole in self._space.templates[number].holes))
        return Proposal(self._space.schedule(point), trial.number, self._space.parameters(point)), point

    def _is_new(self, point: Point) -> bool:
        """Return whether a point is worth measuring: not known, and not of a template that has only ever failed."""
        hopeless = self._failures[self._labels[point.template]] >= _HOPELESS
        schedule = self._space.schedule(point)
        return not hopeless and schedule not in self._known and schedule not in self._asked

    def _finish(self, proposal: Proposal, seconds: float | None) -> None:
        finish(self._study, self._trial(proposal).number, seconds)

    def _trial(self, proposal: Proposal) -> optuna.trial.FrozenTrial:
        assert isinstance(proposal.token, int)
        return self._study.get_trials(deepcopy=False)[proposal.token]

    def _encode(self, point: Point) -> dict[str, Any]:
        found: dict[str, Any] = {_TEMPLATE: self._labels[point.template]}
        for hole, value in zip(self._space.templates[point.template].holes, point.values, strict=True):
            found[_name(hole)] = encoded(hole, value)
        return found


def _name(hole: Hole) -> str:
    """Return the hole's name in the study: one for every set of choices, since a study's distributions cannot change."""
    return f"{hole.name} {digest(hole.labels)[:4]}"


def _suggested(hole: Hole, trial: optuna.Trial) -> Value:
    if hole.is_ordered:
        return decoded(hole, trial.suggest_int(_name(hole), 0, len(hole.choices) - 1))
    return decoded(hole, trial.suggest_categorical(_name(hole), hole.labels))
