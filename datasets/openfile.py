"""Opening files that a user names: only regular files that fit into memory."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from ..compiler.errors import DataError
from ..compiler.native.memory import claim

_KINDS = (
    (stat.S_ISDIR, "is a folder; name a file in it"),
    (stat.S_ISFIFO, "is a pipe, not a file; write what it gives into a file first"),
    (stat.S_ISSOCK, "is a socket, not a file"),
    (stat.S_ISCHR, "is a device, not a file"),
    (stat.S_ISBLK, "is a device, not a file"),
)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to read its bytes.

    Only regular files are taken, since reading another kind may block or never end. The file is checked again once it is open, since its
    name may mean another file by then.

    Raises:
        DataError: it is missing, cannot be read, or is no regular file.
        ResourceError: it does not fit into memory.
    """
    shown = os.fspath(path)
    try:
        _refuse_others(shown, os.stat(path))  # even opening has effects on some devices
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{shown}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{shown}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    file = open(handle, "rb")  # noqa: SIM115 the caller closes it
    try:
        opened = os.fstat(handle)
        _refuse_others(shown, opened)
        claim(opened.st_size, f"{shown}: the file")
    except BaseException:
        file.close()
        raise
    return file


def _refuse_others(shown: str, found: os.stat_result) -> None:
    for is_kind, message in _KINDS:
        if is_kind(found.st_mode):
            raise DataError(f"{shown}: {message}")
    if not stat.S_ISREG(found.st_mode):
        raise DataError(f"{shown}: is no regular file")
