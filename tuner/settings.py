"""How a campaign searches and measures; ``configs/search.toml`` names profiles of it."""

from __future__ import annotations

from dataclasses import field

from ..compiler.frozen import frozen
from .measure.policy import Policy
from .search.samplers import USUAL_SAMPLER

MOST_SEED = 2**32 - 1
"""The largest seed that every generator of random numbers takes."""

EXPLORE_SECONDS = 60.0
"""Default time limit of an exploration: schedule spaces grow exponentially with operands and indices."""


@frozen(kw_only=True)
class Settings:
    """Settings of one campaign.

    Attributes:
        policy: how candidates are timed and finals decide.
        skip: stages of static pruning and rules to leave out (``prune.SWITCHES``, ``compiler.space.selection.RULES``).
        also: stages of the space to open (``compiler.space.selection.CLOSED``).
        sampler: which schedule to measure next (``search.samplers.SAMPLERS``).
    """

    policy: Policy = field(default_factory=Policy)
    skip: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    sampler: str = USUAL_SAMPLER


@frozen(kw_only=True)
class Budget:
    """When a campaign ends: after so many trials in all its runs, or so many seconds in this one, whichever comes first."""

    trials: int = 100
    seconds: float | None = None
