"""Native helpers: C files of ``csrc``, compiled at first use into the kernel cache. If that is not possible, NumPy does the work."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import Any

from ..errors import BuildError
from ..native import team
from ..native.library import CSRC, declared, declared_in, foreign_interface, load_source
from ..native.toolchain import machine_flags
from ..warn import inform


def threads_for(work: int) -> int:
    """Return the number of threads for a pass over ``work`` elements: one for short passes."""
    return helper_threads() if work >= 1 << 16 else 1


def helper_threads() -> int:
    """Return the number of threads that helpers use: as many as kernels (``team.thread_count``), at most 255."""
    return min(team.thread_count(None), 255)


class Library:
    """The functions of several C files. Each file is an object of its own, so that a process that is killed while one is compiled does not
    lose the others."""

    def __init__(self, interface: Any, parts: tuple[Any, ...]) -> None:
        self._interface, self._parts = interface, parts

    def __getattr__(self, name: str) -> Any:
        for part in self._parts:
            with suppress(self._interface.error):  # cffi raises it for names that an object does not define
                found = getattr(part, name)
                setattr(self, name, found)
                return found
        raise AttributeError(name)


@cache
def library(*names: str) -> tuple[Any, Any] | None:
    """Return (cffi's ffi, library) of some C files of ``csrc``, whose headers of the same names declare their functions.

    None where no compiler is found or it fails; the reason goes to the log ``sparsetune.native``.
    """
    declarations = "".join(declared_in(CSRC / f"{name}.h") for name in names if (CSRC / f"{name}.h").exists()) + team.DECLARATION
    try:
        interface = foreign_interface(declarations)
        return interface, Library(interface, tuple(_part(name, declarations) for name in names))
    except BuildError as error:
        inform("NumPy does the work of the native helpers: %s", error)
        return None


def _part(name: str, declarations: str) -> Any:
    """Return the object of one C file. It defines those declared functions whose definitions are at the start of a line of the file."""
    called = set(re.findall(r"(\w+)\(", "\n".join(re.findall(r"^\w.*", (CSRC / f"{name}.c").read_text(), re.MULTILINE))))
    defined = tuple(found for found in declared(declarations) if found in called)
    loaded = load_source("", declarations, flags=_flags(), files=(f"{name}.c",), symbols=defined)
    team.join_team(loaded)
    return loaded


def _flags() -> tuple[str, ...]:
    """Return the compiler flags of helpers, without contraction, so that values are read and summed exactly as written."""
    return ("-O3", *machine_flags(), "-fno-math-errno", "-ffp-contract=off")
