"""Files that are written whole or not at all; small ones of JSON are remembered from process to process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..compiler.native.trust import make_private
from ..compiler.native.whole import whole_file


def write_whole(place: Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file into an existing folder, as ``whole_file`` does.

    Args:
        content: text is written as UTF-8, its line ends as they are.
        mode: the file's permissions; by default those of any new file.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(place, mode) as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def write_json(place: Path, content: Mapping[str, object]) -> bool:
    """Write a file, and the folders that it lies in; return whether that was possible. If not, the old file stays."""
    try:
        make_private(place.parent)
        write_whole(place, json.dumps(content), 0o600)
    except OSError:
        return False
    return True
