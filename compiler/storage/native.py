"""Native helpers: C files of ``csrc`` compiled at first use into the kernel cache; where that cannot be, NumPy does the work."""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[2] / "csrc"
FLAGS = ("-O3", "-std=c11", "-shared", "-fPIC", "-fno-math-errno")
"""No -march=native: the cache may be shared between machines. No fast-math: values are read and summed exactly."""

COMPILE_SECONDS = 120
log = logging.getLogger("sparsetune.native")


def threads_for(work: int) -> int:
    """Return how many threads a pass over so many elements is worth: one for short ones."""
    return thread_count() if work >= 1 << 16 else 1


def thread_count() -> int:
    """Return the number of threads that helpers use: SPARSETUNE_THREADS, else the cores that this process may use."""
    asked = os.environ.get("SPARSETUNE_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return min(int(asked), 255)
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 255)


@cache
def library(*names: str) -> tuple[Any, Any] | None:
    """Return (cffi's ffi, library) of some C files of ``csrc``, whose headers of the same names declare their functions.

    None where no compiler is found or it fails; the reason goes to the log ``sparsetune.native``. The compiler is
    SPARSETUNE_CC, or the first of gcc, clang and cc.
    """
    try:
        import cffi
    except ImportError:
        return None
    compiler = _compiler()
    if compiler is None:
        log.info("no C compiler: NumPy does the work of the native helpers")
        return None
    ffi = cffi.FFI()
    for name in names:
        if (SOURCES / f"{name}.h").exists():
            ffi.cdef(_declarations(SOURCES / f"{name}.h"))
    for folder in _cache_folders():
        for flags in ((*FLAGS, "-fopenmp"), FLAGS):
            opened = _opened(ffi, folder, names, compiler, flags)
            if opened is not None:
                return ffi, opened
    return None


def _compiler() -> tuple[str, ...] | None:
    import shlex
    import shutil

    asked = os.environ.get("SPARSETUNE_CC")
    for candidate in [asked] if asked else ["gcc", "clang", "cc"]:
        command = shlex.split(candidate)
        found = shutil.which(command[0]) if command else None
        if found:
            return (found, *command[1:])
    return None


def _declarations(header: Path) -> str:
    """Return what a header declares between its two marks, which is all that cffi can read of it."""
    text = header.read_text()
    return text[text.index("/* cdef */") : text.index("/* end */")]


def _cache_folders() -> list[Path]:
    """Return where compiled helpers may be kept, best first; the last is private to this process's user."""
    import tempfile

    import platformdirs

    asked = os.environ.get("SPARSETUNE_CACHE")
    first = Path(asked) if asked else Path(platformdirs.user_cache_dir("sparsetune")) / "kernels"
    return [first, Path(tempfile.gettempdir()) / f"sparsetune-{os.getuid() if hasattr(os, 'getuid') else 'helpers'}"]


def _opened(ffi: Any, folder: Path, names: tuple[str, ...], compiler: tuple[str, ...], flags: tuple[str, ...]) -> Any:
    path = folder / f"{names[0]}-{_key(compiler, flags)}.so"
    if folder.exists() and not _trusted(folder):
        log.info("%s belongs to another user and is not used", folder)
        return None
    for _ in range(2):
        if not path.exists() and not _compiled(path, names, compiler, flags):
            return None
        try:
            return ffi.dlopen(str(path))
        except OSError as error:
            log.info("%s cannot be loaded (%s) and is built again", path, error)
            path.unlink(missing_ok=True)
    return None


def _trusted(folder: Path) -> bool:
    """Return whether nobody but this user and root can have put a library into a folder."""
    return not hasattr(os, "getuid") or folder.stat().st_uid in (os.getuid(), 0)


def _key(compiler: tuple[str, ...], flags: tuple[str, ...]) -> str:
    """Return a hash of everything the library depends on: sources, flags, compiler, kind of machine."""
    import hashlib
    import platform

    program = os.stat(os.path.realpath(compiler[0]))
    parts = [*compiler, *flags, str(program.st_mtime_ns), str(program.st_size), platform.system(), platform.machine()]
    digest = hashlib.sha256("\0".join(parts).encode())
    for path in sorted(SOURCES.glob("st_*")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _compiled(path: Path, names: tuple[str, ...], compiler: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    """Compile into a temporary file and move it into place, so that another process never sees half a library."""
    import shlex
    import subprocess
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            target = Path(scratch) / path.name
            command = [*compiler, *flags, *(str(SOURCES / f"{name}.c") for name in names), "-o", str(target), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
            if done.returncode:
                log.info("%s failed: %s", shlex.join(command), done.stderr[:2000])
                return False
            os.replace(target, path)
    except (OSError, subprocess.TimeoutExpired) as error:
        log.info("native helpers cannot be built in %s: %s", path.parent, error)
        return False
    return True
