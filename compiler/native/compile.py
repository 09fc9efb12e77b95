"""One run of the C compiler, out of process and with a limit on its time."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

from ..errors import BuildError
from .toolchain import REQUIRED_FLAGS, Compiler

_ERROR = re.compile(r"\berror:|\bundefined reference\b|\bcannot find\b")


def compile_shared(
    sources: tuple[Path, ...], target: Path, compiler: Compiler, flags: tuple[str, ...], include: Path, timeout: float
) -> None:
    """Compile C files into one shared object.

    Raises:
        BuildError: the compiler reports an error (its first one stands in the message), cannot be run, or takes longer
            than ``timeout`` seconds.
    """
    units = map(str, sources)
    _run((*compiler.command, *REQUIRED_FLAGS, "-shared", *flags, "-I", str(include), *units, "-o", str(target)), compiler, timeout)
    if not target.is_file():
        raise BuildError(f"the C compiler {compiler.name} reported success but wrote no object; check SPARSETUNE_CC")


def _run(command: tuple[str, ...], compiler: Compiler, timeout: float) -> None:
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise BuildError(f"the C compiler {compiler.name} cannot be run: {error.strerror or error}; check SPARSETUNE_CC") from None
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        message = f"the C compiler {compiler.name} took longer than {timeout:g} s and was stopped; try another compiler or flags"
        raise BuildError(message) from None
    except BaseException:
        _end(process)
        raise
    if process.returncode != 0:
        first = _first_error(output, process.returncode)
        raise BuildError(f"the C compiler {compiler.name} failed: {first}\ncommand: {' '.join(command)}\n{output}")


def _end(process: subprocess.Popen[str]) -> None:
    """End the compiler with the programs that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _first_error(output: str, status: int) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if _ERROR.search(line):
            return line
    if lines:
        return lines[0]
    return f"exit status {status} without a message" if status > 0 else f"ended by signal {-status}"
