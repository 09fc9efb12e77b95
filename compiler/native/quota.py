"""How much processor time a control group of Linux leaves to this process, as containers and batch systems set it.

Version 2 says it in ``cpu.max`` ("200000 100000": 200 ms of time in every 100 ms, two cores), version 1 in ``cpu.cfs_quota_us`` and
``cpu.cfs_period_us``; each group in which the group of the process lies may set less than those below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PROCESS = Path("/proc/self")


def processor_quota(process: Path = PROCESS) -> float | None:
    """Return how many cores' time this process may use on average; None where nothing limits it, or nobody says.

    Args:
        process: the folder of the process in /proc, with ``cgroup`` and ``mountinfo``.
    """
    shares = [share for folder in _folders(process) if (share := _share(folder)) is not None]
    return min(shares, default=None)


@dataclass(frozen=True)
class _Mount:
    """Where a hierarchy of groups that may limit processor time is seen, and which group of it is on top there."""

    folder: Path
    top: PurePosixPath
    version: int


def _folders(process: Path) -> Iterator[Path]:
    """Yield the folders of the group of the process, and of those around it, as far as they are seen from here."""
    groups = [line.split(":", 2) for line in _lines(process / "cgroup") if line.count(":") >= 2]
    for mount in _mounts(process):
        for _, controllers, path in groups:
            if (controllers == "") if mount.version == 2 else ("cpu" in controllers.split(",")):
                inside = _inside(PurePosixPath(path), mount.top)
                yield from (mount.folder / part for part in (inside, *inside.parents))


def _mounts(process: Path) -> Iterator[_Mount]:
    for line in _lines(process / "mountinfo"):
        fields, _, rest = line.partition(" - ")
        kind, _, options = (*rest.split(" "), "", "")[:3]
        parts = fields.split(" ")
        if len(parts) > 4 and (kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(","))):
            yield _Mount(Path(parts[4].replace("\\040", " ")), PurePosixPath(parts[3]), 2 if kind == "cgroup2" else 1)


def _inside(path: PurePosixPath, top: PurePosixPath) -> PurePosixPath:
    """Return the path of a group below the one on top; the top itself where the group lies elsewhere."""
    return path.relative_to(top) if path.is_relative_to(top) else PurePosixPath()


def _share(folder: Path) -> float | None:
    """Return the cores' worth of time that one group may use."""
    try:
        if (folder / "cpu.max").exists():
            quota, _, period = (folder / "cpu.max").read_text().partition(" ")
        else:
            quota, period = (folder / "cpu.cfs_quota_us").read_text(), (folder / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None
    except (OSError, ValueError):  # the root of version 2 has no such file; "max" is no number
        return None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
