"""How a campaign searches and measures; ``configs/search.toml`` names profiles of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .measure.timing import Policy

MOST_SEED = 2**32 - 1
"""The largest seed that every generator of random numbers takes."""

EXPLORE_SECONDS = 60.0
"""After which an exploration gives up unless it is told otherwise: schedule spaces grow exponentially with operands and indices."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one campaign.

    Attributes:
        policy: how one candidate is timed.
        finalists: how many of the fastest are measured in turn with the default.
        final_margin: only those no slower than this many times the fastest.
        final_rounds: rounds of the finals; at least 6.
        final_seconds: no round starts after so long.
        burst_seconds: a finalist runs about this long each round, five times at least; the fastest run counts.
        skip: stages of static pruning to leave out (``prune.SWITCHES``).
    """

    policy: Policy = field(default_factory=Policy)
    finalists: int = 4
    final_margin: float = 1.2
    final_rounds: int = 11
    final_seconds: float = 8.0
    burst_seconds: float = 0.015
    skip: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When a campaign ends: after so many trials in all its runs, or so many seconds in this one, whichever comes first."""

    trials: int = 100
    seconds: float | None = None
