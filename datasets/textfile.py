"""Text files, plain or gzip, as bytes in memory, with errors that name file and line."""

from __future__ import annotations

import io
import os
import zlib
from dataclasses import dataclass

from ..compiler.errors import DataError
from ..compiler.native.memory import claim
from .openfile import open_file

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE, _STEP = 1 << 16, 1 << 26
_HEAD = 1 << 16


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
    """Return the text of a file; gzip is recognised by its first bytes.

    Raises:
        DataError: the file is missing, unreadable or no regular one, is named .gz and is not gzip, or its gzip stream is broken.
        ResourceError: it does not fit into memory.
    """
    shown = os.fspath(path)
    with open_file(path) as file:
        try:
            data = file.read()
        except OSError as error:
            raise DataError(f"{shown}: cannot be read: {error.strerror or error}") from None
    if data[:2] == _GZIP_MAGIC:
        try:
            data = _unpacked(data, shown)
        except (EOFError, zlib.error) as error:
            raise DataError(f"{shown}: the gzip stream is broken ({str(error).rstrip('.')}); fetch or copy the file again") from None
    elif shown.endswith(".gz"):
        hint = "it looks like a web page" if data.lstrip()[:1] == b"<" else "remove .gz from its name if it is plain text"
        raise DataError(f"{shown}: not a gzip file; {hint}")
    return TextFile(shown, data)


def read_head(path: str | os.PathLike[str]) -> TextFile:
    """Return the beginning of a file's text, some thousand lines, the last of which may be cut. gzip is recognised by its first bytes.

    Raises:
        DataError: the file is missing, unreadable or no regular one, or its gzip stream is broken at once.
    """
    shown = os.fspath(path)
    with open_file(path) as file:
        try:
            data = file.read(_HEAD)
            if data[:2] == _GZIP_MAGIC:
                data = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS).decompress(data, _HEAD)
        except (OSError, zlib.error) as error:
            raise DataError(f"{shown}: cannot be read: {error}") from None
    return TextFile(shown, data)


def _unpacked(packed: bytes, shown: str) -> bytes:
    """Return the unpacked members of a gzip file, one after the other; padding of zeros may follow (RFC 1952).

    It is unpacked piece by piece. A piece gives at most some 1,000 times its own size, so a file whose text would fill memory is noticed
    in time.
    """
    text, claimed, place = io.BytesIO(), 0, 0
    while place < len(packed):
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        while not member.eof:
            if place >= len(packed):
                raise EOFError("it ends before its end is marked")
            text.write(member.decompress(packed[place : place + _PIECE]))
            place = min(place + _PIECE, len(packed)) - len(member.unused_data)
            if text.tell() > claimed:
                claimed = text.tell() + _STEP
                claim(claimed, f"{shown}: the unpacked text")
        if packed[place : place + 1] == b"\0":
            place = len(packed) - len(packed[place:].lstrip(b"\0"))
    return text.getvalue()
