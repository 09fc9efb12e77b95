"""Text files, plain or gzip, as bytes in memory, with errors that name file and line."""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from ..compiler.errors import DataError

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class TextFile:
    """The whole text of a file.

    Args:
        path: as the user named it, for messages.
        data: the text, unpacked.
    """

    path: str
    data: bytes

    def line_of(self, place: int) -> int:
        """Return the number, from 1 on, of the line that holds a place."""
        return self.data.count(b"\n", 0, place) + 1

    def line_at(self, place: int) -> str:
        """Return the text of the line that holds a place."""
        begin = self.data.rfind(b"\n", 0, place) + 1
        end = self.data.find(b"\n", place)
        return self.data[begin : end if end >= 0 else len(self.data)].decode("utf-8", "replace").strip()

    def error(self, message: str, place: int | None = None) -> DataError:
        """Return an error that names the file, and the line of a place."""
        where = self.path if place is None else f"{self.path}:{self.line_of(place)}"
        return DataError(f"{where}: {message}")

    def next_line(self, place: int) -> int:
        """Return where the line after the one that holds a place begins, or the end of the text."""
        end = self.data.find(b"\n", place)
        return end + 1 if end >= 0 else len(self.data)


def read_text(path: str | os.PathLike[str]) -> TextFile:
    """Return the text of a file; gzip is told by its first bytes.

    Raises:
        DataError: the file is missing or unreadable, is named .gz and is not gzip, or its gzip stream is broken.
    """
    shown = os.fspath(path)
    data = read_bytes(path)
    if data[:2] == _GZIP_MAGIC:
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{shown}: the gzip stream is broken ({str(error).rstrip('.')}); fetch or copy the file again") from None
    elif shown.endswith(".gz"):
        hint = "it looks like a web page" if data.lstrip()[:1] == b"<" else "remove .gz from its name if it is plain text"
        raise DataError(f"{shown}: not a gzip file; {hint}")
    return TextFile(shown, data)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file.

    Raises:
        DataError: it is missing, a folder, or cannot be read.
    """
    shown = os.fspath(path)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{shown}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{shown}: is a folder; name a file in it") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{shown}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
