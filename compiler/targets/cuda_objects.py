"""Objects compiled from generated CUDA C++, kept in the cache: cubins by NVRTC, shared objects by nvcc and C++ compilers.

The key of an object says what it is made of and for, but not by which compiler: an object that was compiled on one machine can be used on
others of the same kind that have no compiler.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import BuildError
from ..native.folders import cache_folder
from ..native.library import CSRC
from ..native.nvrtc import compile_cubin
from ..native.scratch import new_scratch
from ..native.supervised import run_program

HEADERS = (*sorted(path.name for kind in ("cuda", "executor") for path in CSRC.glob(f"st_{kind}*.h")), "st_driver.h")
"""The headers that generated CUDA C++ includes."""

_HOST_FLAGS = ("-O2", "-std=gnu++17", "-DST_DRIVER", "-w", "-fwrapv", "-fvisibility=hidden", "-shared", "-fPIC")


def cubin_of(source: str, arch: str) -> bytes:
    """Return the kernels of a source compiled for an architecture, such as "sm_90". Raises ``BuildError`` where NVRTC fails."""

    def make(folder: Path) -> Path:
        made = folder / "kernel.cubin"
        made.write_bytes(compile_cubin(source, arch, CSRC))
        return made

    return _kept(("cubin", arch), source, ".cubin", make).read_bytes()


def host_object(source: str, timeout: float) -> Path:
    """Return the host code of a source as a shared object. Raises ``BuildError`` if there is no C++ compiler, or it fails."""

    def make(folder: Path) -> Path:
        names = (os.environ.get("CXX"), "g++", "clang++", "c++")
        compiler = next((found for name in names if name and (found := shutil.which(name))), None)
        if compiler is None:
            raise BuildError("no C++ compiler was found (g++), which compiles what launches kernels for GPUs; name one in CXX")
        return _compile(folder, source, compiler, _HOST_FLAGS, ".cpp", timeout, ("-ldl",))

    return _kept(("host", platform.machine(), *_HOST_FLAGS), source, ".so", make)


def shared_object(source: str, compiler: str, flags: tuple[str, ...], suffix: str, timeout: float) -> Path:
    """Return all of a source as a shared object. Raises ``BuildError`` where the compiler fails."""
    return _kept((compiler, *flags, suffix), source, ".so", lambda folder: _compile(folder, source, compiler, flags, suffix, timeout))


def object_of(source: str, compiler: str, flags: tuple[str, ...], timeout: float) -> Path:
    """Return C++ as an object to be linked with others. Raises ``BuildError`` where the compiler fails."""
    return _kept((compiler, *flags), source, ".o", lambda folder: _compile(folder, source, compiler, flags, ".cpp", timeout))


def _kept(made_for: tuple[Any, ...], source: str, ending: str, make: Callable[[Path], Path]) -> Path:
    """Return an object from the cache, made if it is not there. It is made under another name and renamed; readers see all or none."""
    parts = [*made_for, source, *((CSRC / name).read_text() for name in HEADERS)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    target = cache_folder() / f"cuda-{key[:40]}{ending}"
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_scratch(target.parent, ".making-") as workplace:
            os.replace(make(workplace), target)
    except OSError as error:
        raise BuildError(f"no kernel can be kept in {target.parent}: {error.strerror or error}") from None
    return target


def _compile(
    folder: Path, source: str, compiler: str, flags: tuple[str, ...], suffix: str, timeout: float, libraries: tuple[str, ...] = ()
) -> Path:
    text, made = folder / f"kernel{suffix}", folder / "kernel.so"
    text.write_text(source)
    ended = run_program((compiler, *flags, "-I", str(CSRC), str(text), "-o", str(made), *libraries), timeout, {"LC_ALL": "C"})
    if ended.status is None:
        raise BuildError(f"{compiler} took longer than {timeout:g} s and was stopped")
    if ended.status:
        lines = [line for line in ended.output.splitlines() if line.strip()]
        failure = BuildError(f"{compiler} failed: {next((line for line in lines if 'error' in line), 'without a message')}")
        failure.add_note("\n".join(lines[:40]))
        raise failure
    return made
