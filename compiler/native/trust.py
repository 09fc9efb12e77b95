"""Checks that only this user can write a folder. Compiled objects are loaded from it, so whoever can write there runs code as this user."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_MOST_LINKS = 40


def flaw(folder: Path) -> str | None:
    """Return why others could put files into a folder; None if they cannot.

    Every existing folder and symbolic link on the way to it is checked. It must belong to this user or to the system, and others must not
    be able to write it, unless it has the sticky bit, which keeps users from moving files of others. The folder itself must belong to this
    user, and others must not be able to write it even if it has the sticky bit.

    Raises:
        OSError: a part of the path cannot be examined.
    """
    user, owners = os.geteuid(), _owners()
    for path, status, is_last in _way(os.path.abspath(folder)):
        if is_last and status.st_uid != user:
            return f"{path} belongs to another user"
        if status.st_uid not in owners:
            return f"{path} belongs to another user"
        if not stat.S_ISLNK(status.st_mode) and _others_write(path, status) and (is_last or not status.st_mode & stat.S_ISVTX):
            return f"others can write {path}"
    return None


def make_private(folder: Path) -> None:
    """Make a folder that only this user may enter, and its missing parents. Raises ``OSError``."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _way(folder: str) -> Iterator[tuple[str, os.stat_result, bool]]:
    """Yield what exists on the way from the root to a folder, and whether it is the folder itself. Raises ``OSError``.

    Paths are texts: objects of ``pathlib`` would take most of the time, in every first lookup.
    """
    path, rest = _parted(folder)
    links = 0
    while True:
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(status.st_mode):
            yield path, status, False
            links += 1
            if links > _MOST_LINKS:
                raise OSError(f"too many symbolic links on the way to {folder}")
            root, further = _parted(os.readlink(path))
            path, rest = root or os.path.dirname(path), rest + further
            continue
        yield path, status, not rest
        if not rest:
            return
        name = rest.pop()
        path = os.path.dirname(path) if name == os.pardir else os.path.join(path, name)


def _parted(path: str) -> tuple[str, list[str]]:
    """Return the root of a path, empty where it has none, and its other parts, the innermost first."""
    parts = [part for part in path.split(os.sep) if part not in ("", os.curdir)]
    return os.sep if path.startswith(os.sep) else "", parts[::-1]


def _owners() -> frozenset[int]:
    """Return the users who can replace any file: this user, the superuser, and the owner of the root folder, which in a container may be
    the superuser outside, under another number."""
    return frozenset({os.geteuid(), 0, os.stat("/").st_uid})


def _others_write(path: str, status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    return not _is_alone(status.st_uid, status.st_gid) or _has_access_list(path)


@cache
def _is_alone(user: int, group: int) -> bool:
    """Return whether a group has the user's name and no other members. Most systems make such a group for each user."""
    import grp
    import pwd

    try:
        owner, found = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return owner.pw_gid == group and found.gr_name == owner.pw_name and set(found.gr_mem) <= {owner.pw_name}


def _has_access_list(path: str) -> bool:
    """Return whether an access list names further users. The permissions of the group are then the most that these users have."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (OSError, AttributeError):  # there is no access list, or the system has none at all
        return False
