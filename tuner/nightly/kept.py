"""The version that a baseline was measured with, kept beside its compiled kernels, so that later ones can race against it.

Two times of different nights say little, and a checkout of the older version is not always at hand. The whole package is kept, not only its
compiled objects, so that packing and the Python path of a call are raced too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from ...compiler.native.folders import cache_folder
from ...compiler.native.scratch import Scratch, sweep
from ...compiler.native.trust import flaw, make_private
from ..environment import code_version, version_of
from .race import ROOT

MOST_KEPT = 4
"""Most versions that are kept; of more, the least recently used are removed."""

_FOLDER, _MAKING = "versions", ".version-"
_UNWANTED = shutil.ignore_patterns(".*", "tests", "results", "docs", "examples", "__pycache__", "*.egg-info")


def copy_version(place: Path) -> None:
    """Copy the files that this version needs to run, a few megabytes, into a new folder. Raises ``OSError``."""
    shutil.copytree(ROOT, place, ignore=_UNWANTED)


def keep() -> Path:
    """Keep this version in the cache, if it is not there yet, and return its folder.

    Raises:
        OSError: the folder cannot be written, or others can write it too.
    """
    folder = cache_folder() / _FOLDER
    make_private(folder)
    if why := flaw(folder):
        raise PermissionError(why)
    sweep(folder, _MAKING)
    place = folder / code_version()
    if not _is_whole(place):
        with Scratch(folder, _MAKING) as workplace:
            if place.exists():
                place.rename(workplace / "broken")
            copy_version(workplace / "version")
            with contextlib.suppress(OSError):  # another process has kept the same version meanwhile
                (workplace / "version").rename(place)
    os.utime(place)
    for old in sorted(_versions(folder), key=lambda path: path.stat().st_mtime)[:-MOST_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def kept(code: str) -> Path | None:
    """Return the folder of a kept version (``code_version``); None if that is this version, is not kept, or was changed."""
    if not code or code == code_version() or "/" in code or code.startswith("."):
        return None
    folder = cache_folder() / _FOLDER
    place = folder / code
    try:
        if flaw(folder) or not _is_whole(place):
            return None
        os.utime(place)
    except OSError:
        return None
    return place


def _versions(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _is_whole(place: Path) -> bool:
    """Return whether a folder holds the version that its name says."""
    return place.is_dir() and version_of(place).partition("+")[2] == place.name.partition("+")[2]
