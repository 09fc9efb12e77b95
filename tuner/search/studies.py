"""Studies of Optuna, and the holes of templates as their parameters.

Numbers are integers over their ranks, so that neighbouring sizes are neighbours; everything else is a category.
"""

from __future__ import annotations

import warnings
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import TrialState

from ...compiler.space.template import Hole, Value
from ..settings import MOST_SEED
from .journal import fail_orphans


def open_study(storage: BaseStorage, name: str, seed: int, **options: Any) -> tuple[Study, int]:
    """Return a study by TPE, made if there is none, and how many trials it has; those that dead processes left running are failed.

    Args:
        options: of ``TPESampler``.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(storage=storage, study_name=name, direction="minimize", load_if_exists=True)
        past = len(study.get_trials(deepcopy=False))
        # a sampler started with the seed of an earlier process would propose the same points again
        study.sampler = TPESampler(seed=(seed + past) % (MOST_SEED + 1), **options)
    fail_orphans(study)
    return study, past


def finish(study: Study, trial: int, seconds: float | None) -> None:
    """Report a trial by its number; None: it failed. Such a trial is told as pruned without intermediate values, which ranks behind every
    finished one, so that the sampler avoids similar points; Optuna would ignore a failed one."""
    study.tell(trial, seconds, state=TrialState.PRUNED if seconds is None else TrialState.COMPLETE, skip_if_finished=True)


def distribution(hole: Hole) -> BaseDistribution:
    """Return the distribution of the parameter for a hole."""
    return IntDistribution(0, len(hole.choices) - 1) if hole.is_ordered else CategoricalDistribution(hole.labels)


def encoded(hole: Hole, value: Value) -> Any:
    """Return the parameter for a value of a hole."""
    label = hole.labels[hole.choices.index(value)]
    return _ranks(hole).index(label) if hole.is_ordered else label


def decoded(hole: Hole, parameter: Any) -> Value:
    """Return the value of a hole for a parameter."""
    label = _ranks(hole)[parameter] if hole.is_ordered else parameter
    return hole.choices[hole.labels.index(label)]


def _ranks(hole: Hole) -> list[Any]:
    return sorted(hole.labels)
