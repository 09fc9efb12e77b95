"""What the static model knows of a machine besides its caches: a few constants, measured on request (``calibration``) and remembered."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

from ..compiler.frozen import frozen
from ..compiler.native.folders import cache_folder
from ..compiler.native.machine import this_machine

_SHORT_ROW = 128  # bytes of a row for which a sum waits: those that ``calibration`` measures
_LONG_ROWS = 0.88  # speed with prefetches of longer rows from the first two levels of cache, over that with prefetches of short ones


@frozen
class Constants:
    """The constants of one machine; the defaults lie between those of the machines that the model was made on.

    Attributes:
        operation: seconds of one operation of ``costs.operations``.
        short_sums: the same in sums over short rows of stored entries, which use no vectors.
        start: seconds that the threads of a parallel loop take to begin and to end.
        chunk: seconds that a thread takes to get a chunk of a loop.
        prefetch_near: speed with prefetches over that without where what is gathered lies in the first-level cache.
        prefetch_hit, prefetch_miss, prefetch_far: the same where it lies in the second level of cache, in the last one, and in memory.
        summed_near, summed_hit, summed_miss, summed_far: the same where each gathered row is summed up, as in SDDMM: fewer loads are then
            in flight by themselves, so that prefetches gain more.
        stream_hit: time of a sum over stored entries without prefetches of these over that with them, where they lie in the caches.
        stream_miss: time of such a sum whose entries are prefetched far ahead, to the second level of cache, over that with the usual
            prefetches, where what it gathers lies outside of that level.
        surprises: ends of rows of random lengths that branch prediction of one core remembers from call to call.
        halved: for rows between one and two of the widest vectors long, time with vectors of half the width over time with the widest.
    """

    operation: float = 1.2e-10
    short_sums: float = 2.4e-10
    start: float = 1e-6
    chunk: float = 1.5e-7
    prefetch_near: float = 0.75
    prefetch_hit: float = 1.0
    prefetch_miss: float = 1.0
    prefetch_far: float = 1.15
    summed_near: float = 0.92
    summed_hit: float = 1.15
    summed_miss: float = 1.3
    summed_far: float = 1.3
    stream_hit: float = 0.93
    stream_miss: float = 0.75
    surprises: float = 16_000.0
    halved: float = 0.85

    def prefetched(self, is_summed: bool, row: float = 0.0) -> tuple[float, float, float, float]:
        """Return the speed with prefetches of gathered rows over that without, where these lie in the first level of cache, in the second,
        in the last, and in memory.

        Args:
            is_summed: whether each row is summed up.
            row: bytes of one. The loads of a long one overlap each other, so that a sum waits less for it.
        """
        if is_summed:
            share = 1.0 if row <= _SHORT_ROW else _LONG_ROWS
            return share * self.summed_near, share * self.summed_hit, self.summed_miss, self.summed_far
        return self.prefetch_near, self.prefetch_hit, self.prefetch_miss, self.prefetch_far

    @property
    def is_sane(self) -> bool:
        """Whether all are numbers that some machine could have."""
        ranges = {"operation": (1e-12, 1e-8), "short_sums": (1e-12, 1e-8), "start": (1e-8, 1e-3), "chunk": (1e-10, 1e-4)}
        for what in ("prefetch", "summed"):
            ranges |= {f"{what}_{place}": (0.1, 2.0) for place in ("near", "hit")}
            ranges |= {f"{what}_{place}": (0.1, 10.0) for place in ("miss", "far")}
        ranges |= {"surprises": (1e2, 1e7)}
        ranges |= {"stream_hit": (0.1, 2.0), "stream_miss": (0.1, 2.0), "halved": (0.1, 2.0)}
        return all(low <= getattr(self, name) <= high for name, (low, high) in ranges.items())


@cache
def machine_constants() -> Constants:
    """Return the constants of this machine: those that were measured, else the usual ones."""
    try:
        told = {name: float(value) for name, value in json.loads(constants_file().read_text(encoding="utf-8")).items()}
        if "operation" in told:  # versions up to 0.1 did not measure these
            told.setdefault("short_sums", told["operation"] * Constants.short_sums / Constants.operation)
        found = Constants(**told)
    except (OSError, ValueError, TypeError, AttributeError):
        return Constants()
    return found if found.is_sane else Constants()


def remember_constants(found: Constants) -> None:
    """Make the constants those of this machine."""
    from .written import write_json  # imported here: every first lookup asks for the file's name

    write_json(constants_file(), asdict(found))
    machine_constants.cache_clear()


def constants_file() -> Path:
    """Return where the constants of this machine are remembered."""
    return cache_folder().parent / "limits" / f"{this_machine().fingerprint}-constants.json"
