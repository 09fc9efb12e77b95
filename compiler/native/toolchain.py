"""C compilers on this machine and the flags that kernels are compiled with."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from functools import cache
from pathlib import Path

from ..errors import BuildError
from ..frozen import frozen
from .machine import this_machine

CANDIDATES = ("gcc", "clang", "cc")
"""The compilers that are tried, in this order, after $SPARSETUNE_CC."""

MISSING = "no C compiler was found: install one (Debian, Ubuntu: apt install gcc) or name it in SPARSETUNE_CC"

REQUIRED_FLAGS = ("-std=gnu11", "-fPIC", "-fopenmp-simd")
"""The flags that every object needs, whatever flags a schedule gives. Of OpenMP only ``simd`` is used, which needs no library."""

WRAPPING_FLAG = "-fwrapv"
"""Signed integers wrap around on overflow, as NumPy's do; without this flag C leaves that undefined."""

_VECTOR_WIDTH = r"-mprefer-vector-width=(128|256|512)"  # compiled at first use: lookups seldom need it
_FAST_MATH = frozenset(("-Ofast", "-ffast-math", "-funsafe-math-optimizations", "-fassociative-math", "-ffinite-math-only"))


@frozen
class Compiler:
    """A compiler, with the command that runs it.

    Attributes:
        command: the program's absolute path and leading arguments (``SPARSETUNE_CC="ccache gcc"``).
        identity: real path, size and time of change, so that it changes when the program is replaced.
    """

    command: tuple[str, ...]
    identity: str

    @property
    def name(self) -> str:
        """The program's name without its folder, such as ``gcc``."""
        return " ".join((Path(self.command[0]).name, *self.command[1:]))

    @property
    def version(self) -> str:
        """The first line that ``--version`` prints; "unknown" if it prints none."""
        return _version(self)


def find_compiler(name: str | None = None) -> Compiler:
    """Return a compiler: the named one, or $SPARSETUNE_CC, or the first of gcc, clang and cc.

    Args:
        name: the name of a program on the search path, without arguments.

    Raises:
        BuildError: there is none, the name is not that of a program, or $SPARSETUNE_CC has flags that break IEEE arithmetic.
    """
    if name is not None:
        compiler = _resolve(name)
        if compiler is None:
            raise BuildError(f"the C compiler '{name}' that the schedule's build directive names is not installed; install it or use auto")
        return compiler
    if command := os.environ.get("SPARSETUNE_CC"):
        return _commanded(command)
    for candidate in CANDIDATES:
        if compiler := _resolve(candidate):
            return compiler
    raise BuildError(MISSING)


def available_compilers() -> tuple[Compiler, ...]:
    """Return every usable compiler, the default first. A program with two names is returned once."""
    found: dict[str, Compiler] = {}
    if command := os.environ.get("SPARSETUNE_CC"):
        with contextlib.suppress(BuildError):
            chosen = _commanded(command)
            found[chosen.identity] = chosen
    for name in CANDIDATES:
        if compiler := _resolve(name):
            found.setdefault(compiler.identity, compiler)
    return tuple(found.values())


def default_flags() -> tuple[str, ...]:
    """Return the flags for generated code.

    They allow contraction to fused multiply-add, and exclude errno and trapping. None of these changes NaN, inf or signed zeros, or
    reorders a sum (vectorized reductions are explicit in the source). -ffast-math must not be used: linked into a shared object, it
    switches the whole process to flush-to-zero.
    """
    return ("-O3", *machine_flags(), "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")


def possible_flags(asked: str | None, dtype: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all flags with which short code, and those with which long code is compiled.

    Args:
        asked: the flags of the schedule; None: the usual ones.
        dtype: the dtype of the result.
    """
    wrapping = (WRAPPING_FLAG,) if dtype.startswith(("int", "uint")) else ()
    if asked is not None:
        same = (*asked.split(), *wrapping)
        return same, same
    flags = (*default_flags(), *wrapping)
    return flags, tuple("-O2" if flag == "-O3" else flag for flag in flags)


def machine_flags() -> tuple[str, ...]:
    """Return the flags for code that runs on this machine only, with its widest vectors."""
    if platform.machine().lower() in ("x86_64", "amd64", "i686"):
        return ("-march=native", f"-mprefer-vector-width={8 * this_machine().vector_bytes}")
    return ("-mcpu=native",)


def vector_bytes(flags: tuple[str, ...]) -> int:
    """Return the width of vectors under some flags: the last preferred width among them, or the machine's."""
    widest = this_machine().vector_bytes
    asked = [int(found[1]) // 8 for flag in flags if (found := re.fullmatch(_VECTOR_WIDTH, flag))]
    return min(asked[-1], widest) if asked else widest


def _commanded(command: str) -> Compiler:
    """Return the compiler that $SPARSETUNE_CC names, with its arguments. Raises ``BuildError``."""
    import shlex

    try:
        program, *arguments = shlex.split(command)
    except ValueError:
        program, arguments = "", []
    if broken := _FAST_MATH.intersection(arguments):
        raise BuildError(f"SPARSETUNE_CC asks for {min(broken)}, which breaks NaN and infinity, in this whole process; leave it out")
    compiler = _resolve(program, tuple(arguments))
    if compiler is None:
        raise BuildError(f"the C compiler '{command}' that SPARSETUNE_CC names is not an executable program; install it or name another")
    return compiler


def _resolve(program: str, arguments: tuple[str, ...] = ()) -> Compiler | None:
    path = find_program(program)
    if path is None:
        return None
    real = os.path.realpath(path)
    status = os.stat(real)
    return Compiler((os.path.abspath(path), *arguments), f"{real} {' '.join(arguments)} {status.st_size} {status.st_mtime_ns}")


def find_program(name: str) -> str | None:
    """Return the path of a program, None where there is none, as ``shutil.which`` does, whose import loads all formats of archives."""
    if os.path.dirname(name):
        return name if _runs(name) else None
    folders = os.environ.get("PATH", os.defpath)
    places = (os.path.join(folder, name) for folder in folders.split(os.pathsep)) if folders else ()
    return next(filter(_runs, places), None)


def _runs(path: str) -> bool:
    return os.access(path, os.X_OK) and not os.path.isdir(path)


@cache
def _version(compiler: Compiler) -> str:
    from .supervised import run_program  # imported late: printing the source of a kernel does not need it

    try:
        ended = run_program((*compiler.command, "--version"), seconds=10)
    except OSError:
        return "unknown"
    lines = ended.output.strip().splitlines() if ended.status == 0 else []
    return lines[0][:200] if lines else "unknown"
