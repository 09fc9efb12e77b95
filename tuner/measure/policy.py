"""How trials are timed and judged, as one value that is stored with every record that was judged by it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...compiler.errors import TuningError

CACHES = ("warm", "cold")
"""What a timed run finds in the caches: what the run before has left there (warm), or nothing of the operands (cold)."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How one candidate is timed, and how the finals decide. A candidate runs at least 1 + ``min_repeats`` times, unless it is losing.

    Attributes:
        min_repeats, max_repeats: undisturbed samples to take.
        max_seconds: stop after this time once ``min_repeats`` samples are taken, and after four times this time in any case.
        sample_seconds: shorter kernels run several times a sample, so that a sample takes about this long.
        spread: stop when three samples lie within this part of the fastest.
        hopeless: stop after one run that takes this many times the rival's time, if it is ``long_seconds`` or longer; time in which
            threads waited for cores does not count.
        losing: stop when the candidate took this many times the rival's time in three pairs and in all undisturbed pairs; waiting for
            cores does not count.
        behind: stop when the candidate's time is surely more than this many times the rival's, by the median of pairs.
        finalists: how many of the fastest are measured in turn with the default; half of the places are for undisturbed trials
            (``trials.leading``).
        final_margin: finalists took at most this many times the time of the fastest trial; undisturbed ones, of the fastest of these.
        final_rounds: undisturbed rounds of the finals, at least 6; up to four times as many in all while it is not known which finalists
            are close to the fastest, or other programs disturb.
        final_places: so often operands and result are moved to other memory during ``final_rounds``, from the first round on.
        final_seconds: no round starts after so many seconds.
        burst_seconds: a finalist runs about this long in each round, and at least five times; the fastest run counts.
        cache: "warm" or "cold" (``CACHES``); cold runs are timed one by one, with the caches filled by other data before each.
    """

    min_repeats: int = 5
    max_repeats: int = 100
    max_seconds: float = 0.5
    sample_seconds: float = 5e-4
    spread: float = 0.02
    hopeless: float = 3.0
    long_seconds: float = 0.1
    losing: float = 1.25
    behind: float = 1.1
    finalists: int = 6
    final_margin: float = 1.2
    final_rounds: int = 11
    final_places: int = 4
    final_seconds: float = 8.0
    burst_seconds: float = 0.015
    cache: str = "warm"

    def __post_init__(self) -> None:
        if self.cache not in CACHES:
            raise TuningError(f"cache is {self.cache!r}: one of {', '.join(CACHES)} is expected")

    @property
    def is_cold(self) -> bool:
        """Whether a run finds nothing of its operands in the caches."""
        return self.cache == "cold"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, for records."""
        return asdict(self)
