"""The verdict on an item: its time compared with an older one, and whether it has changed."""

from __future__ import annotations

from dataclasses import dataclass

from ..measure.finals import Comparison
from ..measure.order_statistics import median, median_interval_ranks
from .baseline import Entry
from .drift import Drift
from .race import Outcome, verdict

LEAST_MARGIN = 0.1
"""Smaller differences between two nights are undecided: references follow the speed of a machine no more closely than this."""


@dataclass(frozen=True)
class Change:
    """An item compared with an older time.

    Attributes:
        baseline_time, time: seconds, then and now; None where there is none.
        change: the time over the older one; if they were not taken in turn, each is first divided by its reference. None where there is no
            older one.
        low, high: its interval, at 95% confidence.
        verdict: "same", "regression", "improvement", "undecided" or "new".
        against: "base" (raced in turn), "baseline" (another night) or "".
        message: the reason of the verdict; empty where there is nothing to say.
        since: the night of the change point, for a slow drift.
        nights: times over their references on the nights since the baseline, oldest first.
    """

    kernel: str
    input: str
    baseline_time: float | None
    time: float | None
    change: float | None
    verdict: str
    low: float | None = None
    high: float | None = None
    against: str = ""
    message: str = ""
    since: str = ""
    nights: tuple[float, ...] = ()


def raced(entry: Entry, outcome: Outcome) -> Change:
    """Return the verdict of races against the base."""
    change, message = outcome.change, ""
    if outcome.races > 1:
        message = f"{outcome.races} races" if outcome.verdict != "undecided" else f"{outcome.races} races did not agree or decide"
    return Change(
        entry.kernel, entry.input, outcome.before, outcome.now, change.ratio, outcome.verdict, change.low, change.high, "base", message
    )


def failed(entry: Entry, before: Entry | None) -> Change:
    """Return the verdict on an item that fails now."""
    return Change(entry.kernel, entry.input, before and before.seconds, None, None, "regression", message=entry.failure)


def without_base(entry: Entry, before: Entry | None, margin: float) -> Change:
    """Compare an entry with that of an earlier night, each over its reference; differences within ``LEAST_MARGIN`` are undecided."""
    if before is None or before.seconds is None:
        return Change(entry.kernel, entry.input, None, entry.seconds, None, "new")
    if before.reference != entry.reference:
        message = "the baseline stands beside another reference; --update makes a new one"
        return Change(entry.kernel, entry.input, before.seconds, entry.seconds, None, "new", message=message)
    found = _change(entry.ratios, before.ratios)
    told, message = verdict(found, max(margin, LEAST_MARGIN)), ""
    if told is None or (told == "same" and not found.low <= 1 <= found.high):
        told, message = "undecided", "two nights cannot tell; --base PATH races the versions"
    return Change(
        entry.kernel, entry.input, before.seconds, entry.seconds, found.ratio, told, found.low, found.high, "baseline", message
    )


def agreed(first: Change, second: Change) -> Change:
    """Combine a change with a second measurement of it: the change counts if both agree."""
    if second.verdict in (first.verdict, "same"):
        return second
    return Change(**{**second.__dict__, "verdict": "undecided", "message": "a second measurement did not confirm it"})


def drifted(change: Change, drift: Drift) -> Change:
    """Add a drift over the nights to a change; the drift decides the verdict where tonight alone shows no change."""
    word = "slower" if drift.shift > 1 else "faster"
    message = f"{word} by {abs(drift.shift - 1):.0%} over the nights since {drift.since[:10]}"
    if change.verdict not in ("same", "undecided", "new"):
        return Change(**{**change.__dict__, "message": "; ".join(filter(None, (change.message, message))), "since": drift.since})
    kind = "regression" if drift.shift > 1 else "improvement"
    return Change(**{**change.__dict__, "verdict": kind, "message": message, "since": drift.since})


def _change(now: tuple[float, ...], before: tuple[float, ...]) -> Comparison:
    """Return the change from one list of ratios to another; its interval holds all quotients that their intervals allow."""
    (low, high), (low_before, high_before) = _interval(now), _interval(before)
    return Comparison(median(now) / median(before), low / high_before, high / low_before)


def _interval(ratios: tuple[float, ...]) -> tuple[float, float]:
    low, high = median_interval_ranks(len(ratios))
    return sorted(ratios)[low], sorted(ratios)[high]
