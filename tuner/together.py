"""Modules of this package that are imported together, from one file that has the code of all of them.

Python looks for each module by itself, and reads its compiled code from a file of its own. For modules as small as ours that takes longer
than making their functions and classes. So the code of what chooses schedules is kept in one file of the user's cache, made of what
Python compiled, and is taken from there where source files have the size and the time of change that they had then. It is read whole, but
only the code of what is imported is made of it: which modules a question needs depends on its kernel.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from binascii import crc32
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeAlias

from ..compiler.native.folders import cache_folder
from ..compiler.native.trust import flaw, make_private
from ..compiler.uncollected import uncollected

_INSIDE = f"{__name__.partition('.')[0]}."  # how the names of this package's modules begin
_NUMBER = 4  # bytes of a number; a file begins with the length of its table and a checksum of that

_Kept: TypeAlias = dict[str, tuple[str, str | None, int, int, bool, int, bytes | memoryview]]
"""By name of a module: its source file and where Python keeps its code, the time of change and the size of the source, whether it is a
package, and its code as ``marshal`` writes it, behind a checksum of that."""

_NONE = "", None, 0, 0, False, 0, b""


@contextmanager
def together(name: str) -> Iterator[None]:
    """Import what a block imports of this package from one file, without collecting garbage, and add to the file what is not there yet.

    Args:
        name: of the file.
    """
    finder = _Finder(_place(name))
    sys.meta_path.insert(0, finder)
    try:
        with uncollected():
            yield
    finally:
        sys.meta_path.remove(finder)
    new = [sys.modules[name] for name in sorted(finder.missed) if name in sys.modules]
    if new and not sys.dont_write_bytecode:
        _write(finder.place, {**finder.kept, **_codes(new)})


class _Loader(SourceFileLoader):
    """Loads a module whose code is at hand; all else it does as usual."""

    def __init__(self, name: str, path: str, code: bytes | memoryview) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:
        code, self._code = self._code, b""  # of which a process has no use later
        return marshal.loads(code) if code else super().get_code(fullname)


class _Finder:
    """Finds modules whose code is in a file, which is read once one of this package is imported."""

    def __init__(self, place: Path) -> None:
        self.place, self.missed = place, set[str]()

    @cached_property
    def kept(self) -> _Kept:
        return _read(self.place)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how to load a module; None where its code is not at hand, damaged, or another one than its source says."""
        if not name.startswith(_INSIDE):
            return None
        file, cached, changed, size, is_package, checksum, code = self.kept.get(name, _NONE)
        if not code or _state(file) != (changed, size) or crc32(code) != checksum:
            self.missed.add(name)
            return None
        spec = ModuleSpec(name, _Loader(name, file, code), origin=file)
        spec.submodule_search_locations = [os.path.dirname(file)] if is_package else None
        spec.cached, spec.has_location = cached, True  # what ``spec_from_file_location`` finds out anew, in a fifth of an import's time
        return spec


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
                content = marshal.dumps(code)
                found[spec.name] = (spec.origin, spec.cached, *state, spec.submodule_search_locations is not None, crc32(content), content)
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
    """Return what a file holds, nothing where its table is damaged or others can write it."""
    found: _Kept = {}
    with suppress(OSError, ValueError, EOFError, TypeError):
        if flaw(place.parent) is None:
            content = memoryview(place.read_bytes())
            length, checksum = (int.from_bytes(content[begin : begin + _NUMBER], "little") for begin in (0, _NUMBER))
            begin = 2 * _NUMBER + length
            table = content[2 * _NUMBER : begin]
            if crc32(table) == checksum:
                for name, file, cached, changed, size, is_package, checksum, length in marshal.loads(table):
                    found[name] = (file, cached, changed, size, is_package, checksum, content[begin : begin + length])
                    begin += length
    return found


def _write(place: Path, kept: _Kept) -> None:
    from .written import write_whole  # imported here: mostly nothing is new

    table = marshal.dumps([(name, *state, len(code)) for name, (*state, code) in kept.items()])
    numbers = (number.to_bytes(_NUMBER, "little") for number in (len(table), crc32(table)))
    with suppress(OSError):
        make_private(place.parent)
        write_whole(place, b"".join((*numbers, table, *(code for *_, code in kept.values()))), 0o600)
