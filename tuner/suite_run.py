"""When a suite's last run was begun: what ``suite --resume`` counts as done already, and what a run without it measures anew."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from ..compiler.native.cache import cache_folder
from .records import digest, now


def begin(suite: str, database: str) -> str:
    """Return the moment from which on what is measured belongs to this run, and remember it for ``resume``."""
    moment, place = now(), _place(suite, database)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"begun": moment}, file)
        os.replace(scratch, place)
    except OSError:  # then a resumed run counts whatever the database holds
        place.unlink(missing_ok=True)
    return moment


def resume(suite: str, database: str) -> str:
    """Return when the last run was begun; where that is not known the empty text, before which nothing was."""
    try:
        found = json.loads(_place(suite, database).read_text(encoding="utf-8"))["begun"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


def _place(suite: str, database: str) -> Path:
    return cache_folder().parent / "suites" / f"{digest(suite, database)}.json"
