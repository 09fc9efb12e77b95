"""Checksums of what was downloaded: remembered the first time, compared every time after.

The collections publish no checksums, so the first download is trusted. Later ones from the same address have to be the same file, and a
file of the data folder must not change. ``checksums.json`` in the data folder holds the checksums by address and by path.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..compiler.errors import DataError
from ..compiler.native.whole import whole_file
from .catalogue import data_folder

NAME = "checksums.json"
_CHUNK = 1 << 20


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            found.update(block)
    return found.hexdigest()


def remembered(key: str) -> str | None:
    """Return the checksum that is remembered for an address or a path below the data folder; None where there is none."""
    entry = _read().get(key)
    found = entry.get("sha256") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else None


def remember(key: str, digest: str) -> None:
    """Remember a checksum; one that is there already stays. Where the folder cannot be written, nothing is remembered."""
    import filelock

    place = data_folder() / NAME
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{place}.lock"):
            known = _read()
            if key not in known:
                known[key] = {"sha256": digest, "since": datetime.now(UTC).date().isoformat()}
                _write(place, known)
    except OSError:
        return


def remember_file(path: Path) -> None:
    """Remember the checksum of a file of the data folder."""
    remember(_key(path), digest_of(path))


def check_file(path: Path) -> str:
    """Compare a file of the data folder with its checksum.

    Returns:
        "as downloaded", or "not checked" where no checksum is remembered.

    Raises:
        DataError: the file has another checksum.
    """
    expected = remembered(_key(path))
    if expected is None:
        return "not checked"
    if digest_of(path) != expected:
        raise DataError(f"{path} is not what was downloaded: it was changed or damaged since; remove it to fetch it again")
    return "as downloaded"


def _key(path: Path) -> str:
    try:
        return path.relative_to(data_folder()).as_posix()
    except ValueError:
        return str(path)


def _read() -> dict[str, Any]:
    """Return what is remembered; nothing where the file is missing or no JSON object."""
    try:
        found = json.loads((data_folder() / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(place: Path, content: dict[str, Any]) -> None:
    with whole_file(place) as file:
        file.write(json.dumps(content, indent=1, sort_keys=True).encode())
