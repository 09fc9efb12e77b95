"""Finds the files of the Linux control groups of this process, which containers and batch systems make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

PROC = Path("/proc")

_PIECE = 2**14  # bytes that are read at once


def group_folders(controller: str, proc: Path = PROC) -> Iterator[tuple[int, Path]]:
    """Yield (version, folder) of this process's group for a controller and of the groups around it, up to the topmost visible one.

    Args:
        controller: ``memory`` or ``cpu``; hierarchies of version 2 have all controllers.
        proc: /proc, or a folder like it.
    """
    for version, top, folder in _mounted(controller, str(proc), text_of(f"{proc}/self/cgroup")):
        yield version, folder
        while folder != top and top in folder.parents:
            folder = folder.parent
            yield version, folder


@lru_cache(8)
def _mounted(controller: str, proc: str, groups: str) -> tuple[tuple[int, Path, Path], ...]:
    """Return (version, folder of the mount, folder of the group) of every hierarchy, given the text of a process's file ``cgroup``.

    A mount shows a hierarchy from its root on, which in a container is the container's own group. Paths that lead out of it, as those
    of a process that was moved into a namespace do, are taken as the mount itself.
    """
    paths: dict[int, str] = {}
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            paths[1] = path
        elif number == "0" and not controllers:
            paths[2] = path
    found = []
    for line in text_of(f"{proc}/self/mountinfo").splitlines():
        if "cgroup" not in line:  # of tens of lines
            continue
        mount, _, source = line.partition(" - ")
        fields, kinds = mount.split(" "), source.split(" ")
        if len(fields) < 5 or len(kinds) < 3:
            continue
        version = 2 if kinds[0] == "cgroup2" else 1 if kinds[0] == "cgroup" and controller in kinds[2].split(",") else 0
        if version in paths:
            root, top = _plain(fields[3]), Path(_plain(fields[4]))
            found.append((version, top, _below(top, root, paths[version])))
    return tuple(found)


def _below(top: Path, root: str, path: str) -> Path:
    """Return the folder of a group under a mount that shows the hierarchy from ``root`` on, or the nearest folder above that exists."""
    shown = path if root == "/" else path[len(root) :] if path == root or path.startswith(f"{root}/") else ""
    if ".." in shown.split("/"):
        return top
    folder = top / shown.strip("/")
    while folder != top and not folder.is_dir():
        folder = folder.parent
    return folder


def _plain(text: str) -> str:
    """Return a path of mountinfo, where blanks and backslashes are octal numbers."""
    for code, character in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(code, character)
    return text


def text_of(path: Path | str) -> str:
    """Return the text of a small file of the system; empty where it cannot be read. File objects would take twice as long."""
    with suppress(OSError, UnicodeDecodeError):
        file = os.open(path, os.O_RDONLY)
        try:
            return b"".join(iter(lambda: os.read(file, _PIECE), b"")).decode()
        finally:
            os.close(file)
    return ""
