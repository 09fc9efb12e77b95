"""What prefetches of gathered rows gain, and how far ahead they ask: from how many of the rows come from which cache."""

from __future__ import annotations

from collections.abc import Iterable

from ..compiler.frozen import frozen
from .steps import hypotenuse

LINE = 64
"""Bytes of a line of a cache, the least that a prefetch brings."""

LEAST_GAIN = 1.02
"""Speed that a prefetch or sums one by one have to promise, over that without them."""

_REACHED = 1.0, 1.5, 3.0, 30.0
"""Time of a row that is in the first level of cache, in the second, in the last, and in memory, over that of the first."""

_ELEMENT = 1.3  # operations of the model for each element of a row that is multiplied and added
_WAITING = 0.6  # how long other work waits for a row from outside the second level of cache, over its own time
_ASKED = 5120  # bytes from outside the first level of cache that are best asked for ahead: so many lines can be under way
_ROOM = 0.5  # share of the first level of cache that may hold rows until they are used
_FIBRES = 0.97, 1.0, 1.12, 1.2
"""Speed with prefetches of the rows that fibres choose over that without, where all come from the first level of cache, the second one, the
last one, or memory. These rows are waited for where a fibre ends: how many entries one has cannot be foretold."""
_OFTEN = 0.25  # share of an operand's rows from outside the first level of cache from which on a loop waits for them


@frozen
class Gathered:
    """Rows that a loop gathers, those of one operand or of several.

    Attributes:
        near: share of them that comes from outside the first level of cache.
        row: bytes that one coordinate chooses.
        waited: those of them that come from outside the first level of cache, on average.
        times: time of a loop that prefetches them over that of one that does not.
    """

    near: float
    row: float
    waited: float
    times: float

    def together(self, others: Iterable[Gathered]) -> Gathered:
        """Return these rows with those of other operands that the same coordinates choose.

        The loop waits for all of them. If some are not prefetched it waits as long as before, and prefetches of the others only take
        time. So all are prefetched or none, by the mean of what each would make of the time. The time of the result is the part of one
        operand in that: the product of all parts is the mean.
        """
        all_of = [self, *(one for one in others if min(one.near, self.near) >= _OFTEN)]
        mean = sum(one.times for one in all_of) / len(all_of)
        row, waited = sum(one.row for one in all_of), sum(one.waited for one in all_of)
        return Gathered(self.near, row, waited, mean ** (1 / len(all_of)))


def own_share(elements: float, operations: float) -> float:
    """Return the share of a loop's work that is on the rows themselves.

    Args:
        elements: of a row.
        operations: of the loop for each row that it gathers.
    """
    return min(1.0, _ELEMENT * elements / max(operations, 1.0))


def time_of_prefetches(
    near: float, outside: float, far: float, gains: tuple[float, float, float, float], own: float = 1.0,
    beside: tuple[float, ...] = (0.0, 0.0),
) -> float:  # fmt: skip
    """Return the time of a loop that prefetches the rows it gathers over that of one that does not.

    A processor works on what follows while rows come from its caches, so that these times add up. Rows from memory are waited for. Where
    they are prefetched they arrive while the loop works on others, so a few of them among many near ones cost little: these two times are
    combined as sides of a right angle. Other work is made for each row too where fibres of a tensor are summed and then multiplied further:
    it takes as long with prefetches, but a processor that has it under way does not get to the next rows in time, and without prefetches it
    waits for those from outside the second level of cache. A loop that waits for another row as well, which is not prefetched, waits as
    long as before.

    Args:
        near, outside, far: shares of the rows that come from beyond the first level of cache, the second one, and the last one.
        gains: speed with prefetches over that without, where all rows come from the first level, the second one, the last one, or memory.
        own: share of the work that is on the rows themselves.
        beside: shares of the rows with which the loop waits for another row, from beyond the first level of cache and the second one.
    """
    alone = (1.0, *(1 - share for share in beside), 1.0)
    gained = [gain if gain <= 1 else 1 / (1 - share + share / gain) for share, gain in zip(alone, gains, strict=True)]
    times = [share * time for share, time in zip((1 - near, near - outside, outside - far, far), _REACHED, strict=True)]
    *fetched, waited = (time / gain for time, gain in zip(times, gained, strict=True))
    asking, silent = hypotenuse(sum(fetched), waited), sum(times)
    return (own * asking + 1 - own) / (own * silent + (1 - own) * (1 + _WAITING * outside))


def time_of_fibre_prefetches(near: float, outside: float, far: float) -> float:
    """Return the time of a loop over fibres that prefetches the rows they choose over that of one that does not; arguments are those of
    ``time_of_prefetches``."""
    return sum(share / gain for share, gain in zip((1 - near, near - outside, outside - far, far), _FIBRES, strict=True))


def distance_ahead(choices: tuple[int, ...], usual: int, gathered: Gathered, cache: int) -> int:
    """Return how far ahead to prefetch: as far as ``_ASKED`` bytes of rows come from outside the first level of cache, which has ``cache``
    bytes, and as rows have room there; no less than usual. Where most rows are near, those that are not are asked for farther ahead."""
    most = min(_ASKED / max(gathered.waited, 1.0), _ROOM * cache / max(gathered.row, LINE))
    return max((usual, *(choice for choice in choices if choice <= most)))
