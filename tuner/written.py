"""Files that are written whole or not at all; small ones of JSON are remembered from process to process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..compiler.native.trust import make_private


def write_whole(place: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file into an existing folder. Whatever happens, the file is afterwards the old one or the new one, each whole.

    Args:
        content: text is written as UTF-8, its line ends as they are.
        mode: the file's permissions.

    Raises:
        OSError: it cannot be written.
    """
    import tempfile

    handle, part = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(part, mode)
        os.replace(part, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def write_json(place: Path, content: Mapping[str, object]) -> bool:
    """Write a file, and the folders that it lies in; return whether that was possible. If not, the old file stays."""
    try:
        make_private(place.parent)
        write_whole(place, json.dumps(content), 0o600)
    except OSError:
        return False
    return True
