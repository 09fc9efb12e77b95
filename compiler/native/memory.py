"""How much memory this process can still have; requests for more are refused before any of it is used.

It is the least of three numbers: the available memory of the machine (``MemAvailable``), the memory left under the limits of the
process's control groups (versions 1 and 2; the memory of a group counts in all groups around it), and the memory left under the
process's own limits. Trying to allocate memory tells nothing: systems grant memory that they do not have, and then end the process that
uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import ResourceError
from ..frozen import frozen
from .groups import PROC, group_folders, text_of
from .idle_memory import IDLE

FLOOR = 1 << 26
"""Requests of up to this many bytes are not checked: reading the limits takes as long as touching a hundred pages."""

_UNLIMITED = 1 << 60
_CACHED_FILES = {2: ("inactive_file", "active_file"), 1: ("total_inactive_file", "total_active_file")}
_LIMITS = {2: ("memory.max", "memory.high"), 1: ("memory.limit_in_bytes",)}
_USAGE = {2: "memory.current", 1: "memory.usage_in_bytes"}


@frozen
class Room:
    """How many bytes are available, and which limit that is."""

    bytes: int
    limit: str


def claim(size: int, what: str, advice: str = "") -> None:
    """Check that there is memory for all that a call is about to make. Nothing is reserved.

    Args:
        size: the bytes in all.
        what: what needs them, as the beginning of the message: "the result y (4294967296 x float64)".
        advice: what the user can do about it.

    Raises:
        ResourceError: there is not enough memory.
    """
    if size <= FLOOR:
        return
    room = available()
    if size > room.bytes and IDLE.clear():
        room = available()
    if size > room.bytes:
        hint = f"; {advice}" if advice else ""
        sizes = f"{readable_bytes(size)} where {readable_bytes(room.bytes)} can be had ({room.limit})"
        raise ResourceError(f"{what} does not fit into memory: {sizes}{hint}")


def available() -> Room:
    """Return how much memory this process can still have."""
    rooms = [*_machine(), *_groups(), *_own_limits()]
    return min(rooms, key=lambda room: room.bytes, default=Room(_UNLIMITED, "no limit is known"))


def readable_bytes(count: int) -> str:
    """Return a size with a unit, such as ``21.5 KiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} EiB"


def _machine() -> Iterator[Room]:
    found = _fields(PROC / "meminfo")
    if "MemAvailable:" in found:
        yield Room(1024 * found["MemAvailable:"], "what the machine has at hand")
    elif "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        yield Room(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the machine's memory")


def _own_limits() -> Iterator[Room]:
    """Yield what is left under RLIMIT_AS and RLIMIT_DATA."""
    try:
        import resource

        pages = [int(word) for word in text_of(PROC / "self" / "statm").split()]
    except (ImportError, ValueError):
        return
    if len(pages) < 6:
        return
    page = os.sysconf("SC_PAGE_SIZE")
    for kind, used, option in ((resource.RLIMIT_AS, pages[0], "-v"), (resource.RLIMIT_DATA, pages[5], "-d")):
        most = resource.getrlimit(kind)[0]
        if most != resource.RLIM_INFINITY:
            yield Room(max(0, most - used * page), f"the limit of this process, ulimit {option}")


def _groups() -> Iterator[Room]:
    """Yield what is left in the memory control group of this process, and in the groups around it up to the topmost visible one."""
    for version, folder in group_folders("memory", PROC):
        room = _group_room(folder, version)
        if room is not None:
            yield room


def _group_room(folder: Path, version: int) -> Room | None:
    """Return what is left under a group's limit, counting its cached files as free; None if it has no limit."""
    limits = [limit for name in _LIMITS[version] if (limit := _number(folder / name)) is not None and limit < _UNLIMITED]
    used = _number(folder / _USAGE[version])
    if not limits or used is None:
        return None
    cached = _fields(folder / "memory.stat")
    used -= sum(cached.get(name, 0) for name in _CACHED_FILES[version])
    return Room(max(0, min(limits) - max(0, used)), f"the limit of the control group {folder}")


def _fields(path: Path) -> dict[str, int]:
    """Return the numbers in a file of lines such as ``name 12 kB``, by name."""
    words = (line.split(None, 2) for line in text_of(path).splitlines())
    return {found[0]: int(found[1]) for found in words if len(found) > 1 and found[1].isdecimal()}


def _number(path: Path) -> int | None:
    """Return the number in a file; None if it holds ``max`` or does not exist."""
    text = text_of(path).strip()
    return int(text) if text.isdecimal() else None
