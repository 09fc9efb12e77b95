"""Runs programs with a time limit. They end together with all that they have started, and never outlive the calling process.

A shell in between leads a process group for the program. It ends the whole group as soon as a pipe is closed that this process holds
open. The system closes the pipe when this process ends in any way, so that
no compiler, nor what it has started, goes on even after kill -9.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO

from ..frozen import frozen

KEPT_OUTPUT = 1 << 16
"""Bytes of a program's output that are kept; later output is read and dropped."""

# The second line waits until the pipe, which is standard input, is closed. The last lines end what the program may have left behind.
_GUARD = """exec 3<&0
{ read -r _; kill -KILL 0; } <&3 &
"$@" </dev/null 3<&-
code=$?
trap '' TERM
kill -TERM 0
wait
exit $code"""


@frozen
class Outcome:
    """How a program ended.

    Attributes:
        status: its exit status; 128 + n if signal n ended it; None if it took too long and was ended.
        output: the beginning of its output, errors included.
    """

    status: int | None
    output: str


def run_program(command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> Outcome:
    """Run a program to its end, for at most ``seconds``.

    Args:
        environment: variables in addition to those of this process.

    Raises:
        OSError: it cannot be started.
    """
    if not os.access(command[0], os.X_OK):  # shells report this in different ways
        os.stat(command[0])
        raise PermissionError(13, os.strerror(13), command[0])
    deadline = time.monotonic() + seconds
    lifeline, held = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "sh", *command],
                stdin=lifeline,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        finally:
            os.close(lifeline)
        with process:
            assert process.stdout is not None
            try:
                output = _read(process.stdout, deadline)
                status = process.wait(max(0.0, deadline - time.monotonic()))
            except (TimeoutError, subprocess.TimeoutExpired):
                _end(process)
                return Outcome(None, "")
            except BaseException:
                _end(process)
                raise
    finally:
        os.close(held)
    return Outcome(128 - status if status < 0 else status, output.decode(errors="replace"))


def _read(stream: IO[bytes], deadline: float) -> bytes:
    """Read all output and return its beginning. Raises ``TimeoutError`` at the deadline."""
    kept = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and selector.select(left):
            part = os.read(stream.fileno(), KEPT_OUTPUT)
            if not part:
                return bytes(kept)
            kept += part[: KEPT_OUTPUT - len(kept)]
    raise TimeoutError


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
