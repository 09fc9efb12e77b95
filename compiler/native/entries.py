"""Entries of the cache: folders that are made whole or not at all, and are known to be sound.

An entry is a folder ``<key>/`` with a file, the source of it and a seal. It is made under another name, its file is checked, and then it is
renamed, so that readers see all of it or none. The seal has a digest of key and file, so that a file that was cut off, damaged, or made for
something else is made again. It also records the state of the file that was checked; if the file has changed since, it is checked again
before it is used. All this guards against accidents only. Whoever can write the folder can run code as its user, so a folder that others
can write is not used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from ..errors import BuildError
from ..frozen import frozen
from .scratch import Scratch
from .trust import flaw, make_private

SOURCE = "kernel.c"
"""The name of an entry's source."""

MAKING = ".making-"
"""How the names of folders begin in which entries are being made."""

_SEAL = "sha256"
_ROOM = 1 << 20  # bytes that must be free in a folder, so that compilers do not fail for lack of room
_TRIES = 3  # attempts to put an entry into its place while other processes do the same


@frozen
class Recipe:
    """How an entry is made.

    Attributes:
        name: the name of the file that it holds beside its source and its seal.
        make: called with a folder that holds the source; makes the file there, or raises ``BuildError``.
        check: returns why a file cannot be used, or None.
    """

    key: str
    source: str
    name: str
    make: Callable[[Path], None]
    check: Callable[[Path], str | None]


class Untrusted(OSError):
    """Others can write a folder."""


def sound_file(folder: Path, recipe: Recipe) -> Path:
    """Return the file of an entry, which is made if there is no sound one. Raises ``OSError``, ``BuildError``."""
    entry = folder / recipe.key[:2] / recipe.key
    if found := flaw(folder) or flaw(entry):
        raise Untrusted(found)
    if not _is_sound(entry, recipe):
        _make(folder, entry, recipe)
    return entry / recipe.name


def _make(folder: Path, entry: Path, recipe: Recipe) -> None:
    make_private(folder)
    with Scratch(folder, MAKING) as workplace:
        (workplace / SOURCE).write_text(recipe.source)
        made = workplace / recipe.name
        try:
            recipe.make(workplace)
            if refused := recipe.check(made):
                raise BuildError(f"the compiled object cannot be loaded: {refused}; check that the compiler fits this Python")
        except BuildError:
            _require_room(workplace)
            raise
        (workplace / _SEAL).write_text(_seal(recipe.key, made))
        make_private(entry.parent)
        _publish(folder, workplace, entry, recipe)


def _is_sound(entry: Path, recipe: Recipe) -> bool:
    """Return whether an entry still holds what was written into it, and a child process could load it."""
    made = entry / recipe.name
    try:
        found, sealed = _seal(recipe.key, made), (entry / _SEAL).read_text()
    except (OSError, UnicodeDecodeError):
        return False
    if sealed == found:
        return True
    if sealed.partition(" ")[0] != found.partition(" ")[0] or recipe.check(made) is not None:
        return False
    with contextlib.suppress(OSError), Scratch(entry.parents[1], MAKING) as workplace:  # it may have been copied here
        (workplace / _SEAL).write_text(found)
        os.replace(workplace / _SEAL, entry / _SEAL)
    return True


def _publish(folder: Path, workplace: Path, entry: Path, recipe: Recipe) -> None:
    """Put a finished entry into its place. A sound one of another process may be there already, and is kept."""
    for tries_left in reversed(range(_TRIES)):
        try:
            os.rename(workplace, entry)
            return
        except OSError:
            if _is_sound(entry, recipe):
                return
            if not tries_left:
                raise
        with Scratch(folder, MAKING) as broken, contextlib.suppress(FileNotFoundError):  # another process moved it away first
            os.rename(entry, broken / "entry")


def _seal(key: str, path: Path) -> str:
    """Return a digest of a file made for a key, and one of the file's state, which includes the time of its last change."""
    content = hashlib.sha256(key.encode() + path.read_bytes()).hexdigest()
    status = path.stat()
    return f"{content} {status.st_ino}-{status.st_size}-{status.st_ctime_ns}"


def _require_room(folder: Path) -> None:
    """Raise ``OSError`` if a folder has no room, which then is the reason for the failure of a compiler."""
    with (folder / "room").open("wb", buffering=0) as file:
        if file.write(bytes(_ROOM)) < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
