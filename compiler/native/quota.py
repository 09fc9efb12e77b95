"""The limit that control groups set to the processor time of this process.

Version 2 says it in ``cpu.max`` ("200000 100000": 200 ms of time in every 100 ms, two cores), version 1 in ``cpu.cfs_quota_us`` and
``cpu.cfs_period_us``. A group around the group of the process may set a lower limit.
"""

from __future__ import annotations

from pathlib import Path

from .groups import PROC, group_folders, text_of


def processor_quota(proc: Path = PROC) -> float | None:
    """Return how many cores this process may use on average; None if there is no limit, or it is not known.

    Args:
        proc: /proc, or a folder like it.
    """
    shares = [share for version, folder in group_folders("cpu", proc) if (share := _share(version, folder)) is not None]
    return min(shares, default=None)


def _share(version: int, folder: Path) -> float | None:
    """Return how many cores one group may use on average."""
    if version == 2:
        quota, _, period = text_of(f"{folder}/cpu.max").partition(" ")
    else:
        quota, period = text_of(f"{folder}/cpu.cfs_quota_us"), text_of(f"{folder}/cpu.cfs_period_us")
    try:
        return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None
    except ValueError:  # "max" is no number; the topmost group of version 2 has no such file
        return None
