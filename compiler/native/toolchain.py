"""C compilers on this machine and the flags that kernels are compiled with."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import BuildError
from .machine import this_machine

CANDIDATES = ("gcc", "clang", "cc")
"""Tried in this order after $SPARSETUNE_CC."""

MISSING = "no C compiler was found: install one (Debian, Ubuntu: apt install gcc) or name it in SPARSETUNE_CC"

REQUIRED_FLAGS = ("-std=gnu11", "-fPIC")
"""What every object needs, whatever flags a schedule asks for."""

_VECTOR_WIDTH = re.compile(r"-mprefer-vector-width=(128|256|512)")
_FAST_MATH = re.compile(r"-Ofast|-ffast-math|-funsafe-math-optimizations")


@dataclass(frozen=True)
class Compiler:
    """A compiler as it is called.

    Attributes:
        command: the program's absolute path and leading arguments (``SPARSETUNE_CC="ccache gcc"``).
        identity: changes when the program is replaced: real path, size and time of change.
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
    """Return a compiler: the one named, or $SPARSETUNE_CC, or the first of gcc, clang and cc.

    Raises:
        BuildError: there is none, or the named one is not a program.
    """
    wanted = name or os.environ.get("SPARSETUNE_CC")
    if wanted:
        compiler = _resolve(wanted)
        if compiler is None:
            where = "the schedule's build directive" if name else "SPARSETUNE_CC"
            raise BuildError(f"the C compiler '{wanted}' that {where} names is not an executable program; install it or name another")
        return compiler
    for candidate in CANDIDATES:
        if compiler := _resolve(candidate):
            return compiler
    raise BuildError(MISSING)


def available_compilers() -> tuple[Compiler, ...]:
    """Return every compiler that could be used, the default first; the same program under two names once."""
    names = [os.environ.get("SPARSETUNE_CC") or "", *CANDIDATES]
    found: dict[str, Compiler] = {}
    for name in names:
        if name and (compiler := _resolve(name)):
            found.setdefault(compiler.identity, compiler)
    return tuple(found.values())


def default_flags() -> tuple[str, ...]:
    """Return the flags for generated code.

    Contraction to fused multiply-add, no errno and no trapping: none changes what NaN, inf or signed zeros do, and none
    reorders a sum (vectorized reductions are explicit in the source). Never -ffast-math: linked into a shared object it
    switches the whole process to flush-to-zero.
    """
    return ("-O3", *machine_flags(), "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")


def machine_flags() -> tuple[str, ...]:
    """Return the flags for code that runs on this machine only, with vectors as wide as it has."""
    if platform.machine().lower() in ("x86_64", "amd64", "i686"):
        return ("-march=native", f"-mprefer-vector-width={8 * this_machine().vector_bytes}")
    return ("-mcpu=native",)


def vector_bytes(flags: tuple[str, ...]) -> int:
    """Return how wide vectors are to be with some flags: as the last of them prefers, or as wide as the machine's."""
    widest = this_machine().vector_bytes
    asked = [int(found[1]) // 8 for flag in flags if (found := _VECTOR_WIDTH.fullmatch(flag))]
    return min(asked[-1], widest) if asked else widest


def link_separately(flags: tuple[str, ...]) -> bool:
    """Return whether these flags must not reach the linker, lest the object change the process's floating-point mode."""
    return any(_FAST_MATH.match(flag) for flag in flags)


def parse_flags(text: str) -> tuple[str, ...]:
    """Split the flags of a ``build`` directive as a shell does.

    Raises:
        BuildError: a quotation is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BuildError(f"cannot read the compiler flags {text!r}: {error}") from None


def _resolve(name: str) -> Compiler | None:
    try:
        program, *arguments = shlex.split(name)
    except ValueError:
        return None
    path = shutil.which(program)
    if path is None:
        return None
    real = os.path.realpath(path)
    status = os.stat(real)
    return Compiler((os.path.abspath(path), *arguments), f"{real} {' '.join(arguments)} {status.st_size} {status.st_mtime_ns}")


@cache
def _version(compiler: Compiler) -> str:
    try:
        shown = subprocess.run([*compiler.command, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (shown.stdout.strip().splitlines() or ["unknown"])[0]
