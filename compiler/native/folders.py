"""Folders of this user that outlive a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_USUAL = {"cache": ("XDG_CACHE_HOME", "~/.cache"), "data": ("XDG_DATA_HOME", "~/.local/share")}


def user_folder(kind: str) -> Path:
    """Return the platform's folder for what this package keeps.

    On Linux it is the folder of ``platformdirs``, found without importing that package: the import would take as long as a whole lookup.

    Args:
        kind: "cache", for files that can be made again, or "data".
    """
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ:
        variable, usual = _USUAL[kind]
        return Path(os.environ.get(variable, "").strip() or os.path.expanduser(usual)) / "sparsetune"
    import platformdirs

    return Path(platformdirs.user_cache_dir("sparsetune") if kind == "cache" else platformdirs.user_data_dir("sparsetune"))


def cache_folder() -> Path:
    """Return the folder of compiled objects: $SPARSETUNE_CACHE or the platform's user cache."""
    if chosen := os.environ.get("SPARSETUNE_CACHE"):
        return Path(chosen).expanduser()
    return user_folder("cache") / "kernels"
