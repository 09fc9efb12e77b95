"""Finds out in a child process whether a shared object can be loaded: a damaged one may end the process that loads it.

A program of five lines, compiled once for a cache, answers in a millisecond. If it does not succeed, a child of this Python interpreter
decides (seven milliseconds): it searches for libraries as this process does, and the program itself may be damaged.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .supervised import Outcome, run_program

SECONDS = 60.0

PROGRAM = """#include <dlfcn.h>
int main(int count, char **names) {
    void *object = dlopen(names[1], RTLD_NOW);
    for (int name = 2; object && name < count; name++)
        if (!dlsym(object, names[name])) return 1;
    return !object;
}
"""
"""It is called with a file and the names that it must define; without arguments it succeeds."""

_SCRIPT = """import ctypes, sys
try:
    library = ctypes.CDLL(sys.argv[1], 2)
    for name in sys.argv[2:]:
        getattr(library, name)
except (OSError, AttributeError) as error:
    sys.exit(str(error))
"""


def works(program: Path) -> bool:
    """Return whether the compiled program runs."""
    ended = _run((str(program),))
    return ended is not None and ended.status == 0


def refusal(path: Path, symbols: tuple[str, ...], program: Path | None) -> str | None:
    """Return why an object cannot be loaded or which symbol it lacks; None if all is well.

    Args:
        program: the compiled ``PROGRAM``, if there is one.
    """
    ended = None if program is None else _run((str(program), str(path), *symbols))
    is_interpreter = sys.executable and not hasattr(sys, "frozen")
    if (ended is None or ended.status) and is_interpreter:
        ended = _run((sys.executable, "-I", "-S", "-c", _SCRIPT, str(path), *symbols))
    return "no process can be started to load it" if ended is None else _reason(ended)


def _run(command: tuple[str, ...]) -> Outcome | None:
    try:
        return run_program(command, SECONDS)
    except OSError:
        return None


def _reason(ended: Outcome) -> str | None:
    if ended.status == 0:
        return None
    if ended.status is None:
        return f"loading it took longer than {SECONDS:g} s"
    if ended.status > 128:
        return f"loading it ends a process with signal {ended.status - 128}"
    return (ended.output.strip().splitlines() or ["the system's loader refuses it"])[-1][:300]
