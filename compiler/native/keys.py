"""Keys of entries of the cache: digests of all that determines what is compiled."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_GENERATOR = ("build", "codegen", "native", "targets")
"""The folders of the compiler whose sources determine how an object is made, called and stored."""


def key_of(*parts: str | bytes) -> str:
    """Return a digest of texts and bytes, which differs if they are divided differently."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


@cache
def generator_digest(include: Path) -> str:
    """Return a digest of the code of this package that affects objects beside their source, so that changed code makes new entries."""
    compiler = Path(__file__).resolve().parents[1]
    return key_of(sources_digest(include), *(content for folder in _GENERATOR for content in _contents(compiler / folder, ".py")))


@cache
def sources_digest(include: Path) -> str:
    """Return a digest of the C files that are compiled or included."""
    return key_of(*_contents(include, ".c", ".h"))


def _contents(folder: Path, *ends: str) -> Iterator[bytes]:
    """Yield the bytes of the files of a folder with these endings. They are not decoded, which would take most of the time."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(ends):
            with open(os.path.join(folder, name), "rb", buffering=0) as file:
                yield file.readall()
