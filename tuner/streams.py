"""The standard streams of a command: open, able to show every name, and clear about what becomes of a message that they cannot take."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING

from ..compiler.errors import DataError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_SHOWN = "sparsetune.shown"


def make_ready() -> None:
    """Put standard streams in place that are open, and take every text.

    Where the caller has closed a stream, the next file that is opened, such as the database, would get its number, and messages would end
    up in that file. Results that cannot be written are a ``DataError``; without messages a command goes on.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    codecs.register_error(_SHOWN, _shown)
    sys.stdout = _text(sys.stdout, _Results(1, "w", closefd=False), _SHOWN, False)
    sys.stderr = _text(sys.stderr, _Messages(2, "w", closefd=False), "backslashreplace", True)


def silence(number: int) -> None:
    """Drop what a standard stream still gets: Python writes what is left in it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


class _Results(io.FileIO):
    """Standard output."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            silence(self.fileno())
            raise DataError(f"standard output cannot be written: {error.strerror or error}") from None


class _Messages(io.FileIO):
    """Standard error."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            silence(self.fileno())
            return memoryview(data).nbytes


def _text(before: object, file: io.FileIO, errors: str, by_line: bool) -> io.TextIOWrapper:
    """Return a stream of text into a file, encoded as the one before was."""
    encoding = before.encoding if isinstance(before, io.TextIOWrapper) else "utf-8"
    by_line = by_line or (isinstance(before, io.TextIOWrapper) and (before.line_buffering or before.write_through))
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, errors, line_buffering=by_line)


def _shown(error: UnicodeError) -> tuple[bytes, int]:
    """Return the bytes of a file's name as they are, and characters that the encoding lacks by their numbers."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    try:
        return part.encode(error.encoding, "surrogateescape"), error.end
    except UnicodeEncodeError:
        return part.encode("ascii", "backslashreplace"), error.end
