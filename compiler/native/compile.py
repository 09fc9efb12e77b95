"""Runs the C compiler in a process of its own, with limits on its time and its output."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import BuildError
from .supervised import run_program
from .toolchain import REQUIRED_FLAGS, Compiler

_ERROR = re.compile(r"\berror:|\bundefined reference\b|\bcannot find\b")
_LONGEST_LINE = 300
_MOST_LINES = 40


class TookTooLong(BuildError):
    """The compiler did not end in time."""


def compile_shared(
    sources: tuple[Path, ...], target: Path, compiler: Compiler, flags: tuple[str, ...], include: Path, timeout: float
) -> None:
    """Compile C files, and link them with objects among the sources, into one shared object; temporary files are made beside it.

    Raises:
        BuildError: the compiler reports an error (its first one is the message, the others are notes of the exception), cannot be
            run, or takes longer than ``timeout`` seconds.
    """
    _run((*REQUIRED_FLAGS, "-shared", *flags, "-I", str(include), *map(str, sources), "-lm"), target, compiler, timeout)


def compile_object(source: Path, target: Path, compiler: Compiler, flags: tuple[str, ...], timeout: float) -> None:
    """Compile a C file into an object that shared ones are linked with. Raises ``BuildError`` as ``compile_shared`` does."""
    _run((*REQUIRED_FLAGS, "-c", *flags, str(source)), target, compiler, timeout)


def compile_program(source: Path, target: Path, compiler: Compiler, timeout: float) -> None:
    """Compile a C file into a program that may load shared objects. Raises ``BuildError`` as ``compile_shared`` does."""
    _run((str(source), "-ldl"), target, compiler, timeout)


def _run(arguments: tuple[str, ...], target: Path, compiler: Compiler, timeout: float) -> None:
    """Run the compiler. Its temporary files are made beside the target, in a folder that the caller removes."""
    command = (*compiler.command, *arguments, "-o", str(target))
    try:
        ended = run_program(command, timeout, {"LC_ALL": "C", "TMPDIR": str(target.parent)})
    except OSError as error:
        raise BuildError(f"the C compiler {compiler.name} cannot be run: {error.strerror or error}; check SPARSETUNE_CC") from None
    if ended.status is None:
        raise TookTooLong(f"the C compiler {compiler.name} took longer than {timeout:g} s and was stopped; try another compiler or flags")
    if ended.status != 0:
        lines = [_shortened(line) for line in ended.output.splitlines() if line.strip()]
        failure = BuildError(f"the C compiler {compiler.name} failed: {_first_error(lines, ended.status)}")
        failure.add_note("\n".join([f"command: {_shortened(' '.join(command))}", *lines[:_MOST_LINES]]))
        raise failure
    if not target.is_file():
        raise BuildError(f"the C compiler {compiler.name} reported success but wrote no object; check SPARSETUNE_CC")


def _first_error(lines: list[str], status: int) -> str:
    for line in lines:
        if _ERROR.search(line):
            return line
    if lines:
        return lines[0]
    return f"exit status {status} without a message" if status < 128 else f"ended by signal {status - 128}"


def _shortened(line: str) -> str:
    """Return a line shortened for a message: the output of compilers may be long, or not be text."""
    printable = "".join(character if character.isprintable() else " " for character in line[: _LONGEST_LINE + 1]).strip()
    return printable if len(printable) <= _LONGEST_LINE else f"{printable[:_LONGEST_LINE]}..."
