"""The environment of a measurement, in words and numbers that go into its record."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler.native.folders import cache_folder
from ..compiler.native.machine import available_cores, this_machine
from ..compiler.native.toolchain import available_compilers
from ..compiler.native.trust import flaw
from . import sources
from .written import write_json

_ROOT = sources.ROOT


def describe_environment(settings: dict[str, str]) -> dict[str, Any]:
    """Return machine, compilers, versions and the settings of the measuring process; everything that does not change by the second."""
    machine = this_machine()
    return {
        "processor": machine.model,
        "system": machine.system,
        "kernel": platform.release(),
        "cores": machine.cores,
        "available_cores": available_cores(),
        "caches": [[cache.level, cache.bytes, cache.shared_by] for cache in machine.caches],
        "vector_bytes": machine.vector_bytes,
        "compilers": {compiler.name: compiler.version for compiler in available_compilers()},
        "programs": {f"{compiler.name}: {compiler.version}": compiler.identity for compiler in available_compilers()},
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "settings": settings,
    }


def load_per_core() -> float | None:
    """Return the load average of the last minute over the cores; None where the system does not say."""
    try:
        return round(os.getloadavg()[0] / max(1, available_cores()), 3)
    except OSError:
        return None


@cache
def code_version() -> str:
    """Return the version of sparsetune with a digest of its compiler's sources: other code may make other kernels.

    Reading the sources takes ten milliseconds, which the first lookup of a process would wait for, so the digest is remembered beside
    the compiled kernels as long as no source has another size or time of change.
    """
    stamp, place = sources.stamp(_ROOT), cache_folder().parent / "versions.json"
    try:
        known = json.loads(place.read_text(encoding="utf-8")) if flaw(place.parent) is None else {}
        if isinstance(found := known.get(stamp), str):
            return found
    except (OSError, ValueError, AttributeError):
        pass
    found = version_of(_ROOT)
    write_json(place, {stamp: found})
    return found


def version_of(root: Path) -> str:
    """Return the ``code_version`` of another copy of the package, of the same release."""
    found = hashlib.blake2b(digest_size=4)
    for path in sorted([*(root / "compiler").rglob("*.py"), *(root / "csrc").glob("*.[ch]")]):
        found.update(path.read_bytes())
    return f"{release()}+{found.hexdigest()}"


@cache
def commit() -> str:
    """Return the commit of the checkout that runs, in twelve digits, with "+" where files differ from it; empty where there is none."""
    if _git("rev-parse", "--show-toplevel") != str(_ROOT):
        return ""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "compiler", "csrc", "tuner", "datasets")
    return (_git("rev-parse", "--short=12", "HEAD") or "") + ("+" if changed else "")


def _git(*arguments: str) -> str | None:
    """Return the output of a git command in the folder of this package; None where it fails."""
    try:
        done = subprocess.run(("git", *arguments), cwd=_ROOT, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def release() -> str:
    """Return the version of the installed package; "0" where it runs from a folder that is not installed."""
    try:
        return metadata.version("sparsetune")
    except metadata.PackageNotFoundError:
        return "0"
