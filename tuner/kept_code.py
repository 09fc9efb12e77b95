"""The compiled code of this package's modules in one file, so that a process that needs many of them imports them quickly.

Python finds, opens and checks a file of its own for each module, which takes longer than running most of them, and the first lookup of a
process imports two hundred. A process that had to find many modules adds the code of all that it imported when it ends; later ones take it
from there. As with the files that Python keeps, code is used only while its source has the same size and time of change. Wherever
something is amiss, Python finds the module as usual.
"""

from __future__ import annotations

import atexit
import hashlib
import marshal
import mmap
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..compiler.native.folders import cache_folder
from ..compiler.native.trust import flaw, make_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import CodeType, ModuleType

MANY = 16
"""So many modules whose code is not kept as it is now are worth writing the file anew."""

_PACKAGE = __name__.rpartition(".tuner.")[0]
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_HEAD = 8  # bytes that hold the length of the index
_DAMAGED = (EOFError, TypeError, ValueError)  # what ``marshal`` raises for a part of a file

_About: TypeAlias = tuple[str, str | None, bool, tuple[int, int]]
"""Path of a source, path of Python's own file of its code, whether it is a package, size and time of change of the source."""


class KeptCode:
    """What a file holds, for ``sys.meta_path``.

    Args:
        index: of every module that is kept: what is known of it, and where its code begins and ends.
        content: the file.
        start: where the code of all modules begins in it.
    """

    def __init__(self, index: Mapping[str, tuple[_About, int, int]], content: mmap.mmap | bytes = b"", start: int = 0) -> None:
        self._index, self._content, self._start = index, content, start

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how to load a module; None where its code is not kept as it is now."""
        if not self.has(name):
            return None
        source, cached, is_package, _ = self.about(name)
        spec = ModuleSpec(name, _Loader(name, source, self), origin=source, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(source)]
        spec.has_location, spec.cached = True, cached
        return spec

    @property
    def names(self) -> Iterable[str]:
        """The modules whose code is kept, as it is now or was."""
        return self._index

    def has(self, name: str) -> bool:
        """Whether the code of a module is kept as it is now."""
        return name in self._index and _state(self.about(name)[0]) == self.about(name)[3]

    def about(self, name: str) -> _About:
        """Return what is known of a module whose code is kept."""
        return self._index[name][0]

    def text(self, name: str) -> bytes:
        """Return the code of a module that is kept, in the form of ``marshal``."""
        _, begin, end = self._index[name]
        return self._content[self._start + begin : self._start + end]


class _Loader(SourceFileLoader):
    """Loads a module from kept code."""

    def __init__(self, name: str, source: str, kept: KeptCode) -> None:
        super().__init__(name, source)
        self._kept = kept

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            return marshal.loads(self._kept.text(fullname))
        except _DAMAGED:
            return super().get_code(fullname)


@cache
def use_kept_code() -> None:
    """Import this package's modules from the file of this Python, where there is one, from now on."""
    place = _place()
    kept = read(place)
    sys.meta_path.insert(0, kept)
    if not sys.dont_write_bytecode:
        atexit.register(_add_imported, place, kept)


def _place() -> Path:
    """Return the path of the file, which depends on the version of Python, its level of optimization, and the folder of this package."""
    told = hashlib.blake2b(repr((MAGIC_NUMBER, sys.flags.optimize, _ROOT)).encode(), digest_size=8).hexdigest()
    return cache_folder().parent / "code" / f"{sys.implementation.cache_tag}-{told}.bin"


def read(place: Path) -> KeptCode:
    """Return what a file holds: nothing where there is none, it is damaged, or others than this user could have written it."""
    try:
        if flaw(place.parent) is None:
            with place.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            start = _HEAD + int.from_bytes(content[:_HEAD], "little")
            index = marshal.loads(content[_HEAD:start])
            return KeptCode(index if isinstance(index, dict) else {}, content, start)
    except (OSError, *_DAMAGED):
        pass
    return KeptCode({})


def add(place: Path, kept: KeptCode, modules: Iterable[ModuleType]) -> None:
    """Write the code of modules into a file, after what is kept, if ``MANY`` of them are not kept as they are now. Raises ``OSError``."""
    from .written import write_whole

    specs = (module.__spec__ for module in modules)
    new = [spec for spec in specs if spec is not None and isinstance(spec.loader, SourceFileLoader) and not kept.has(spec.name)]
    if len(new) < MANY:
        return
    parts = [(name, kept.about(name), kept.text(name)) for name in kept.names if kept.has(name)]
    for spec in new:
        if spec.origin is not None and (state := _state(spec.origin)) is not None:
            about = spec.origin, spec.cached, spec.submodule_search_locations is not None, state
            parts.append((spec.name, about, marshal.dumps(SourceFileLoader(spec.name, spec.origin).get_code(spec.name))))
    ends = list(accumulate(len(text) for *_, text in parts))
    index = marshal.dumps({name: (about, end - len(text), end) for (name, about, text), end in zip(parts, ends, strict=True)})
    make_private(place.parent)
    write_whole(place, b"".join((len(index).to_bytes(_HEAD, "little"), index, *(text for *_, text in parts))), 0o600)


def _add_imported(place: Path, kept: KeptCode) -> None:
    with suppress(OSError):
        add(place, kept, [module for name, module in sys.modules.items() if name.startswith(f"{_PACKAGE}.")])


def _state(source: str) -> tuple[int, int] | None:
    """Return size and time of change of a source; None where there is no such file."""
    try:
        status = os.stat(source)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
