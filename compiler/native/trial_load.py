"""Whether a shared object can be loaded, asked of a child: one that is damaged may end the process that loads it.

A program of five lines, compiled once for a cache, answers in a millisecond. What it refuses is left to a child of this interpreter
(seven milliseconds), which finds libraries where this process does: Python's own folder may have them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .supervised import run_program

SECONDS = 60.0

PROGRAM = """#include <dlfcn.h>
int main(int count, char **names) {
    void *object = dlopen(names[1], RTLD_NOW);
    for (int name = 2; object && name < count; name++)
        if (!dlsym(object, names[name])) return 1;
    return !object;
}
"""
"""Called with a file and the names that it must define; without any it succeeds."""

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
    return _refusal((str(program),)) is None


def refusal(path: Path, symbols: tuple[str, ...], program: Path | None) -> str | None:
    """Return why an object cannot be loaded or lacks a symbol, None where neither is so.

    Args:
        program: the compiled ``PROGRAM``, where there is one.
    """
    if program is not None:
        refused = _refusal((str(program), str(path), *symbols))
        if refused is None or not sys.executable or hasattr(sys, "frozen"):  # then that program is no interpreter
            return refused
    return _refusal((sys.executable, "-I", "-S", "-c", _SCRIPT, str(path), *symbols))


def _refusal(command: tuple[str, ...]) -> str | None:
    try:
        ended = run_program(command, SECONDS)
    except OSError as error:
        return error.strerror or str(error)
    if ended.status == 0:
        return None
    if ended.status is None:
        return f"loading it took longer than {SECONDS:g} s"
    if ended.status > 128:
        return f"loading it ends a process with signal {ended.status - 128}"
    return (ended.output.strip().splitlines() or ["the system's loader refuses it"])[-1][:300]
