"""Small files of JSON that are remembered from process to process, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..compiler.native.trust import make_private


def write_json(place: Path, content: Mapping[str, object]) -> bool:
    """Write a file, and the folders that it lies in; return whether that was possible: else what was there before stays."""
    import tempfile

    part = None
    try:
        make_private(place.parent)
        handle, part = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(part, place)
    except OSError:
        if part is not None:
            with suppress(OSError):
                os.unlink(part)
        return False
    return True
