"""The states of this package's files."""

from __future__ import annotations

import hashlib
import marshal
import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

GENERATING: Mapping[str, tuple[str, ...]] = {"compiler": (".py",), "csrc": (".c", ".h")}
"""The folders whose files decide which kernels are made, with the endings of those files."""

MAKING = frozenset({"csrc", "lowering", "passes", "codegen", "build", "targets"})
"""Folders among these that make code of a schedule, and have no part in choosing one."""


def stamp(root: Path) -> str:
    """Return a digest of the names, sizes and times of change of all sources that decide which kernels are made, in a package's folder."""
    content = marshal.dumps((str(root), states(root, GENERATING)), 2)  # equal values have equal bytes, in a third of the time of text
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
