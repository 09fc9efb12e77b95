"""Shared objects by content: the same source, flags, compiler and machine are compiled once, for all processes.

An entry is a folder ``<key>/`` with the object, its source and a checksum. It is made beside its place and renamed, so
that a reader sees all of it or nothing; one whose checksum does not match is moved away and made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..errors import BuildError
from .compile import compile_shared
from .machine import this_machine
from .toolchain import Compiler

_OBJECT, _SOURCE, _CHECKSUM = "kernel.so", "kernel.c", "sha256"


def cache_folder() -> Path:
    """Return the folder of compiled objects: $SPARSETUNE_CACHE or the platform's user cache."""
    if chosen := os.environ.get("SPARSETUNE_CACHE"):
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("sparsetune")) / "kernels"


def cached_object(
    source: str, compiler: Compiler, flags: tuple[str, ...], include: Path, timeout: float = 120.0, files: tuple[str, ...] = ()
) -> Path:
    """Return the shared object of a C source, compiling it if no whole entry is in the cache.

    Args:
        source: the whole translation unit.
        flags: every flag but those that name files.
        include: folder of what the source may include; its content is part of the key.
        timeout: seconds that the compiler may take.
        files: names of C files in the folder ``include`` that are compiled along, each a translation unit.

    Raises:
        BuildError: the compiler fails or takes too long, or no folder can be written.
    """
    key = _key(source, compiler, (*flags, *files), include)
    for folder in _folders():
        entry = folder / key[:2] / key
        if _whole(entry):
            return entry / _OBJECT
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            workplace = Path(tempfile.mkdtemp(prefix=".making-", dir=entry.parent))
        except OSError as error:
            _warn_unwritable(str(folder), error.strerror or str(error))
            continue
        try:
            (workplace / _SOURCE).write_text(source)
            sources = (workplace / _SOURCE, *(include / name for name in files))
            compile_shared(sources, workplace / _OBJECT, compiler, flags, include, timeout)
            (workplace / _CHECKSUM).write_text(hashlib.sha256((workplace / _OBJECT).read_bytes()).hexdigest())
            _publish(workplace, entry)
        except OSError as error:
            _warn_unwritable(str(folder), error.strerror or str(error))
            continue
        finally:
            shutil.rmtree(workplace, ignore_errors=True)
        return entry / _OBJECT
    places = f"neither {cache_folder()} nor {tempfile.gettempdir()} can be written"
    raise BuildError(f"compiled kernels can be stored nowhere: {places}; set SPARSETUNE_CACHE to a folder that can")


def _key(source: str, compiler: Compiler, flags: tuple[str, ...], include: Path) -> str:
    included = [path.read_text() for path in sorted(include.glob("*.[ch]"))]
    parts = (source, *included, compiler.identity, *flags, this_machine().features)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()


def _folders() -> Iterator[Path]:
    """Yield the shared folder and, only when that one has failed, a folder of this process alone."""
    yield cache_folder()
    yield _private_folder()


@cache
def _private_folder() -> Path:
    """Return a folder of this process alone, for when the shared one cannot be written; removed at exit."""
    import atexit

    try:
        folder = Path(tempfile.mkdtemp(prefix="sparsetune-"))
    except OSError:
        return Path(tempfile.gettempdir()) / "sparsetune-unwritable"
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


@cache
def _warn_unwritable(folder: str, reason: str) -> None:
    message = f"the cache of compiled kernels {folder} cannot be written ({reason}); set SPARSETUNE_CACHE"
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def _whole(entry: Path) -> bool:
    """Return whether an entry holds what was written into it."""
    try:
        return (entry / _CHECKSUM).read_text() == hashlib.sha256((entry / _OBJECT).read_bytes()).hexdigest()
    except (OSError, UnicodeDecodeError):
        return False


def _publish(workplace: Path, entry: Path) -> None:
    """Put a finished entry into its place; another process's whole one may stand there already and is as good."""
    with contextlib.suppress(OSError):
        os.rename(workplace, entry)
        return
    if _whole(entry):
        return
    broken = Path(tempfile.mkdtemp(prefix=".broken-", dir=entry.parent))
    with contextlib.suppress(FileNotFoundError):  # another process moved it away first
        os.rename(entry, broken / "entry")
    shutil.rmtree(broken, ignore_errors=True)
    try:
        os.rename(workplace, entry)
    except OSError:
        if not _whole(entry):
            raise
