"""Compiled objects in a cache folder of a test's own."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from sparsetune.compiler.native import entries
from sparsetune.compiler.native.cache import cached_object
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.native.toolchain import find_compiler

NUMBERS = itertools.count(int(time.time() * 1000) % 10**9)

DECLARED = "int answer(void);"


def fresh_source() -> tuple[str, int]:
    """Return a source that no cache has, and the answer that it gives."""
    number = next(NUMBERS)
    return f"int answer(void) {{ return {number}; }}\n", number


def made(source: str) -> Path:
    return cached_object(source, find_compiler(), ("-O0",), CSRC, symbols=("answer",))


def leftovers(folder: Path) -> list[Path]:
    return [*folder.glob(".*"), *folder.glob("*/.*")]


def seal(path: Path) -> None:
    """Write the checksum that the cache itself would have written for a file that nothing was done to."""
    (path.parent / "sha256").write_text(entries._seal(path.parent.name, path).partition(" ")[0] + " as it was")
