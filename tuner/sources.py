"""The states of this package's files, and notes of those that an answer came from: it holds until one of them changes.

To examine all sources takes a quarter of a first lookup, and a choice rests on half of them. What is kept for other processes has a note:
the name of a list of the modules that were imported when it was found, and a digest of the states of their files. Lists are files among the
``answers``, named after what is in them, so that all that was found with the same modules shares one.

States are those of the first lookup of a process that chose itself: what it imported then was made of these, or of later ones.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

GENERATING: Mapping[str, tuple[str, ...]] = {"compiler": (".py",), "csrc": (".c", ".h")}
"""The folders whose files decide which kernels are made, with the endings of those files."""

MAKING = frozenset({"csrc", "lowering", "passes", "codegen", "build", "targets"})
"""Folders among these that make code of a schedule, and have no part in choosing one."""

LISTS = ".modules"
"""How the names of files end that hold lists of modules, among the ``answers``."""

_DECIDING = {"compiler": (".py",), "tuner": (".py",)}
_SEPARATOR = "\n"
_VERSION = 2  # of ``marshal``: equal values have equal bytes, in a third of the time of text
_HERE = Path(__file__).parents[1]  # as the files of modules are named
_BEGIN = f"{_HERE}{os.sep}"
_INSIDE = f"{__name__.partition('.')[0]}."  # how the names of this package's modules begin

Note = list[str]
"""The name of a list of modules, and a digest of the states of their files."""


def stamp(root: Path) -> str:
    """Return a digest of the names, sizes and times of change of all sources that decide which kernels are made, in a package's folder."""
    content = marshal.dumps((str(root), states(root, GENERATING)), _VERSION)
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def states(root: Path, folders: Mapping[str, tuple[str, ...]], without: frozenset[str] = frozenset()) -> list[tuple[str, int, int]]:
    """Return the paths, sizes and times of change of sources, in order.

    Args:
        root: the package's folder.
        folders: folders in it, with the endings of the files that count.
        without: names of folders that do not count.
    """
    found: list[tuple[str, int, int]] = []
    for folder, ends in folders.items():
        if folder in without:
            continue
        left = [os.path.join(root, folder)]
        while left:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith(ends):
                        status = entry.stat()
                        found.append((entry.path, status.st_size, status.st_mtime_ns))
                    elif entry.name[0] not in "._" and entry.name not in without and entry.is_dir():
                        left.append(entry.path)
    return sorted(found)


@cache
def first_states() -> dict[str, tuple[int, int]]:
    """Return the states of all sources that have a part in choosing, as they are when this is first asked for, by their paths in the
    package's folder."""
    return {path[len(_BEGIN) :]: (size, changed) for path, size, changed in states(_HERE, _DECIDING, without=MAKING)}


def note(folder: Path) -> Note:
    """Return a note of the modules that are imported now, and write their list into a folder. Raises ``OSError``."""
    from .written import write_whole  # imported here: mostly nothing is kept

    known, modules = first_states(), [module for name, module in list(sys.modules.items()) if name.startswith(_INSIDE)]
    files = {getattr(module, "__file__", None) for module in modules}
    paths = [path for path in known if f"{_BEGIN}{path}" in files]
    content = os.fsencode(_SEPARATOR.join(paths))
    name = _digest(content)
    write_whole(folder / f"{name}{LISTS}", content, 0o600)
    return [name, _digest(marshal.dumps([known[path] for path in paths], _VERSION))]


def hold(notes: Any, folder: Path) -> bool:
    """Return whether all files of some notes, at least one, are as they were. Raises ``OSError``, ``ValueError`` and ``TypeError`` where a
    note is none."""
    return bool(notes) and all(_state(str(folder), name) == told for name, told in notes)


@cache
def _state(folder: str, name: str) -> str:
    """Return a digest of the states that the files of a list have when this is first asked for."""
    with open(os.path.join(folder, f"{name}{LISTS}"), "rb", 0) as file:
        content = file.read()
    if _digest(content) != name:
        raise ValueError(f"the list {name} is damaged")
    package = os.open(_HERE, os.O_RDONLY)  # paths in it are followed in two thirds of the time
    try:
        return _digest(marshal.dumps([_now(path, package) for path in os.fsdecode(content).split(_SEPARATOR)], _VERSION))
    finally:
        os.close(package)


def _now(path: str, folder: int) -> tuple[int, int]:
    status = os.stat(path, dir_fd=folder)
    return status.st_size, status.st_mtime_ns


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
