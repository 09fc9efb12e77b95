"""Modules of this package that are imported together, from one file that has the code of all of them.

Python looks for each module by itself, and reads its compiled code from a file of its own. For modules as small as ours that takes longer
than making their functions and classes. So the code of what chooses schedules is kept in one file of the user's cache, made of what
Python compiled, and is taken from there where source files have the size and the time of change that they had then.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from binascii import crc32
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeAlias

from ..compiler.native.folders import cache_folder
from ..compiler.native.trust import flaw, make_private

_PACKAGE = __name__.partition(".")[0]
_CHECKED = 4  # bytes of the checksum at the beginning of a file

_Kept: TypeAlias = dict[str, tuple[str, int, int, bool, CodeType]]
"""By name of a module: its source file, the time of change and the size of that, whether it is a package, and its code."""


@contextmanager
def together(name: str) -> Iterator[None]:
    """Import what a block imports of this package from one file, and add to the file what is not there yet.

    Args:
        name: of the file.
    """
    place = _place(name)
    finder = _Finder(_read(place))
    before = set(sys.modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
    new = [name for name in sys.modules.keys() - before - finder.served if name.startswith(f"{_PACKAGE}.")]
    if new and not sys.dont_write_bytecode:
        _write(place, {**finder.kept, **_codes([sys.modules[name] for name in new])})


class _Loader(SourceFileLoader):
    """Loads a module whose code is at hand; all else it does as usual."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class _Finder:
    """Finds modules whose code is at hand."""

    def __init__(self, kept: _Kept) -> None:
        self.kept, self.served = kept, set[str]()

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how to load a module; None where its code is not at hand, or another one than its source says."""
        if name not in self.kept:
            return None
        file, changed, size, is_package, code = self.kept[name]
        if _state(file) != (changed, size):
            return None
        self.served.add(name)
        folders = [os.path.dirname(file)] if is_package else None
        return spec_from_file_location(name, file, loader=_Loader(name, file, code), submodule_search_locations=folders)


def _codes(modules: Sequence[ModuleType]) -> _Kept:
    """Return the code of modules that Python found in source files."""
    found: _Kept = {}
    for module in modules:
        spec = module.__spec__
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.origin is None:
            continue
        with suppress(OSError, ImportError):
            state, code = _state(spec.origin), spec.loader.get_code(spec.name)
            if state is not None and code is not None and state == _state(spec.origin):
                found[spec.name] = (spec.origin, *state, spec.submodule_search_locations is not None, code)
    return found


def _state(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _place(name: str) -> Path:
    """Return the file for this package, which may be installed more than once, and for this Python."""
    where = hashlib.blake2b(__file__.encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return cache_folder().parent / "code" / f"{name}-{where}-{sys.implementation.cache_tag}-{sys.flags.optimize}"


def _read(place: Path) -> _Kept:
    """Return what a file holds, nothing where it is damaged or others can write it."""
    with suppress(OSError, ValueError, EOFError, TypeError):
        if flaw(place.parent) is None:
            content = place.read_bytes()
            if int.from_bytes(content[:_CHECKED], "little") == crc32(memoryview(content)[_CHECKED:]):
                return marshal.loads(memoryview(content)[_CHECKED:])
    return {}


def _write(place: Path, kept: Mapping[str, object]) -> None:
    from .written import write_whole  # imported here: mostly nothing is new

    content = marshal.dumps(dict(kept))
    with suppress(OSError):
        make_private(place.parent)
        write_whole(place, crc32(content).to_bytes(_CHECKED, "little") + content, 0o600)
