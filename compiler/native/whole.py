"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(place: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file in an existing folder for writing. Whatever happens, it is afterwards the old one or the new one, each whole.

    Links are followed. What is there and no plain file, such as /dev/null or a pipe, is written itself: a file in its place would end it.

    Args:
        mode: the file's permissions; by default those of any new file.

    Raises:
        OSError: it cannot be written.
    """
    import tempfile

    if _is_special(place):
        with place.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(place))
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(part, 0o666 & ~_umask() if mode is None else mode)
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _is_special(place: Path) -> bool:
    try:
        return not stat.S_ISREG(place.stat().st_mode)
    except OSError:
        return False


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
