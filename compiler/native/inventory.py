"""Lists and removes entries of the cache of compiled objects (``cache``, ``targets.cuda_objects``).

Other processes may use the cache meanwhile: an entry is moved away as a whole before it is removed, so that others find all of it, or
nothing and make it again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ..errors import BuildError
from ..frozen import frozen
from .scratch import Scratch

_GROUP, _ENTRY, _DEVICE = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{64}"), re.compile(r"cuda-[0-9a-f]{40}\.\w+")
_SOURCE, _GOING = "kernel.c", ".making-"
_KINDS = {"kernel.so": "kernel", "loader": "loader", "called.o": "called functions", "interface.py": "interface"}
_COMMENT = re.compile(r"/\* (.*) \*/")


@frozen
class CachedObject:
    """An entry of the cache.

    Attributes:
        path: its folder, or its file if it was compiled for a device.
        kind: kernel, device kernel, or something that all kernels share: loader, called functions, interface.
        bytes: the size of all its files.
        used: the time of its last use in seconds since the epoch, if the file system records it (most do once a day), else of its making.
    """

    path: Path
    kind: str
    bytes: int
    used: float

    @property
    def title(self) -> str:
        """The expression that a kernel computes, from the first line of its source; for others the kind."""
        with suppress(OSError, UnicodeDecodeError), (self.path / _SOURCE).open(encoding="utf-8") as source:
            if found := _COMMENT.match(source.readline()):
                return found[1]
        return self.kind


def cached_objects(folder: Path) -> Iterator[CachedObject]:
    """Yield the entries of the cache in a folder, and nothing else that is there; nothing if there is no such folder.

    Raises:
        BuildError: the folder cannot be read.
    """
    try:
        for entry in _scanned(folder):
            if _GROUP.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                yield from (_entry(one) for one in _scanned(entry.path) if _ENTRY.fullmatch(one.name) and one.is_dir(follow_symlinks=False))
            elif _DEVICE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                yield _object(Path(entry.path), "device kernel", [entry])
    except OSError as error:
        raise BuildError(f"the cache of compiled kernels {folder} cannot be read: {error.strerror or error}") from None


def _scanned(folder: str | Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing if another process has removed it. Raises ``OSError``."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _entry(entry: os.DirEntry[str]) -> CachedObject:
    files = _scanned(entry.path)
    kind = next((_KINDS[file.name] for file in files if file.name in _KINDS), "damaged")
    return _object(Path(entry.path), kind, files)


def _object(path: Path, kind: str, files: list[os.DirEntry[str]]) -> CachedObject:
    size, used = 0, 0.0
    for file in files:
        with suppress(FileNotFoundError):
            status = file.stat(follow_symlinks=False)
            size += status.st_size
            if file.name != _SOURCE:  # the source is read only to be listed
                used = max(used, status.st_mtime, status.st_atime)
    return CachedObject(path, kind, size, used)


def remove_objects(folder: Path, objects: Iterable[CachedObject]) -> tuple[int, int]:
    """Remove entries of the cache in a folder; return how many, and how many bytes they took.

    Raises:
        BuildError: one cannot be removed.
    """
    count = size = 0
    for one in objects:
        try:
            with Scratch(folder, _GOING) as going:
                os.rename(one.path, going / "entry")
        except FileNotFoundError:  # another process was first
            continue
        except OSError as error:
            raise BuildError(f"{one.path} cannot be removed: {error.strerror or error}") from None
        count, size = count + 1, size + one.bytes
    return count, size
