"""Shared objects by content: the same source, flags, compiler and machine are compiled once, for all processes.

An entry is a folder ``<key>/`` with the object, its source and a seal. It is made beside its place, loaded in a child process and
renamed, so that a reader sees all of it or nothing. The seal is a digest of key and object, so that an object that was cut off,
damaged, or made for something else is made again, and says in which state of the file it was loaded: one that has changed since is
loaded in a child again before it is believed. This is a guard against accidents. Whoever can write the folder can run code as its
user, so a folder that others can write is not used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from ..errors import BuildError
from ..frozen import frozen
from ..warn import warn
from .compile import TookTooLong, compile_object, compile_program, compile_shared
from .folders import cache_folder
from .machine import this_machine
from .scratch import Scratch, new_scratch, sweep
from .toolchain import Compiler, default_flags
from .trial_load import PROGRAM, refusal, works
from .trust import flaw, make_private

_OBJECT, _LOADER, _CALLED, _INTERFACE, _SOURCE, _SEAL = "kernel.so", "loader", "called.o", "interface.py", "kernel.c", "sha256"
_MAKING, _PRIVATE = ".making-", "sparsetune-kernels-"
_ROOM = 1 << 20  # bytes that a folder has room for where a compiler does not fail for want of it

_LOADER_SECONDS = 30.0
"""For a compiler to make a program of five lines."""

_TRIES = 3  # to put an entry into a place where others put theirs

_GENERATOR = ("build", "codegen", "native", "targets")
"""The folders of the compiler whose sources say how an object is made, called and stored."""


def cached_object(
    source: str,
    compiler: Compiler,
    flags: tuple[str, ...],
    include: Path,
    timeout: float = 120.0,
    files: tuple[str, ...] = (),
    symbols: tuple[str, ...] = (),
    is_linked: bool = False,
) -> Path:
    """Return the shared object of a C source, compiling it if no sound entry is in the cache.

    Args:
        source: the whole translation unit.
        flags: every flag but those that name files.
        include: folder of what the source may include; its content is part of the key.
        timeout: seconds that the compiler may take.
        files: names of C files in the folder ``include`` that are compiled along, each a translation unit.
        symbols: what the object must define.
        is_linked: whether the functions that the source calls are compiled once for all such objects (csrc/st_called.h).

    Raises:
        BuildError: the compiler fails or takes too long, the object cannot be loaded or lacks a symbol, or no folder can be written.
    """

    seconds = min(timeout, _LOADER_SECONDS)

    def make(workplace: Path) -> None:
        if isinstance(hung := _loader(workplace.parent, compiler, seconds), TookTooLong):
            raise BuildError(str(hung))
        sources = (workplace / _SOURCE, *(include / name for name in files))
        if is_linked:
            sources = (*sources, _called(workplace.parent, compiler, flags, include, timeout))
        compile_shared(sources, workplace / _OBJECT, compiler, (*flags, *linking), include, timeout)

    linking = ("-DST_LINKED",) if is_linked else ()
    key = _key(source, compiler.identity, *flags, *linking, *files, *symbols, this_machine().features, _generator(include))
    return _kept(lambda folder: _Recipe(key, source, _OBJECT, make, _Check(folder, compiler, symbols, seconds)))


def cached_interface(declarations: str, parser: str, parse: Callable[[Path], None]) -> Path:
    """Return the file of what C declarations come to, which is made if no sound entry is in the cache.

    Args:
        declarations: C, of functions, types and variables.
        parser: what is parsed with, its version included.
        parse: writes the file.

    Raises:
        BuildError: no folder can be written.
    """

    def make(workplace: Path) -> None:
        parse(workplace / _INTERFACE)

    recipe = _Recipe(_key(_INTERFACE, parser, declarations), declarations, _INTERFACE, make, lambda _: None)
    return _kept(lambda _: recipe)


def _kept(recipe: Callable[[Path], _Recipe]) -> Path:
    """Return the file of an entry in the first folder that can be used. Raises ``BuildError``: there is none, or it cannot be made."""
    for folder in _folders():
        try:
            _sweep(folder)
            return _sound(folder, recipe(folder))
        except _Untrusted as error:
            _warn_untrusted(str(folder), str(error))
        except OSError as error:
            _warn_unwritable(str(folder), error.strerror or str(error))
    places = f"neither {cache_folder()} nor a temporary folder can be written by this user alone"
    raise BuildError(f"compiled kernels can be stored nowhere: {places}; set SPARSETUNE_CACHE to a folder of your own")


@frozen
class _Recipe:
    """How an entry comes to be.

    Attributes:
        name: of the file that it holds beside its source and its seal.
        make: called with a folder where the source lies; makes the file there, or raises ``BuildError``.
        check: returns why a file cannot be used, or None.
    """

    key: str
    source: str
    name: str
    make: Callable[[Path], None]
    check: Callable[[Path], str | None]


@frozen
class _Check:
    """Loads objects in a child, by a program that is made when it is first needed in a folder."""

    folder: Path
    compiler: Compiler
    symbols: tuple[str, ...]
    seconds: float

    def __call__(self, path: Path) -> str | None:
        loader = _loader(self.folder, self.compiler, self.seconds)
        return refusal(path, self.symbols, loader if isinstance(loader, Path) else None)


@cache
def _loader(folder: Path, compiler: Compiler, seconds: float) -> Path | TookTooLong | None:
    """Return the program that loads objects, None where this compiler makes none that runs.

    It is the first thing that a compiler makes in a folder, and a small one: a compiler that takes too long for it hangs, and is not
    waited for again and again.
    """

    def make(workplace: Path) -> None:
        compile_program(workplace / _SOURCE, workplace / _LOADER, compiler, seconds)

    def check(path: Path) -> str | None:
        return None if works(path) else "it does not run"

    key = _key(PROGRAM, compiler.identity, this_machine().features)
    try:
        return _sound(folder, _Recipe(key, PROGRAM, _LOADER, make, check))
    except TookTooLong as hung:
        return hung
    except (BuildError, OSError):
        return None


def _called(folder: Path, compiler: Compiler, flags: tuple[str, ...], include: Path, timeout: float) -> Path:
    """Return the object of the functions that kernels call: made with the usual flags, whatever those of a kernel are; sanitized as it is.

    Raises:
        OSError, BuildError: it cannot be made.
    """
    chosen = (*default_flags(), *(flag for flag in flags if flag.startswith("-fsanitize")))
    source = include / "st_called.c"

    def make(workplace: Path) -> None:
        compile_object(source, workplace / _CALLED, compiler, chosen, timeout)

    key = _key(_CALLED, compiler.identity, *chosen, this_machine().features, _generator(include))
    return _sound(folder, _Recipe(key, "", _CALLED, make, lambda _: None))


def _sound(folder: Path, recipe: _Recipe) -> Path:
    """Return the file of an entry, made if there is none that can be used. Raises ``OSError``, ``BuildError``."""
    entry = folder / recipe.key[:2] / recipe.key
    if found := flaw(folder) or flaw(entry):
        raise _Untrusted(found)
    if not _is_sound(entry, recipe):
        _make(folder, entry, recipe)
    return entry / recipe.name


def _make(folder: Path, entry: Path, recipe: _Recipe) -> None:
    make_private(folder)
    with Scratch(folder, _MAKING) as workplace:
        (workplace / _SOURCE).write_text(recipe.source)
        made = workplace / recipe.name
        try:
            recipe.make(workplace)
            if refused := recipe.check(made):
                raise BuildError(f"the compiled object cannot be loaded: {refused}; check that the compiler fits this Python")
        except BuildError:
            _require_room(workplace)
            raise
        (workplace / _SEAL).write_text(_seal(recipe.key, made))
        make_private(entry.parent)
        _publish(folder, workplace, entry, recipe)


def _is_sound(entry: Path, recipe: _Recipe) -> bool:
    """Return whether an entry holds what was written into it, and what a child could load."""
    made = entry / recipe.name
    try:
        found, sealed = _seal(recipe.key, made), (entry / _SEAL).read_text()
    except (OSError, UnicodeDecodeError):
        return False
    if sealed == found:
        return True
    if sealed.partition(" ")[0] != found.partition(" ")[0] or recipe.check(made) is not None:
        return False
    with contextlib.suppress(OSError), Scratch(entry.parents[1], _MAKING) as workplace:  # copied here, perhaps: as good as made here
        (workplace / _SEAL).write_text(found)
        os.replace(workplace / _SEAL, entry / _SEAL)
    return True


def _publish(folder: Path, workplace: Path, entry: Path, recipe: _Recipe) -> None:
    """Put a finished entry into its place; another process's sound one may stand there already and is as good."""
    for tries_left in reversed(range(_TRIES)):
        try:
            os.rename(workplace, entry)
            return
        except OSError:
            if _is_sound(entry, recipe):
                return
            if not tries_left:
                raise
        with Scratch(folder, _MAKING) as broken, contextlib.suppress(FileNotFoundError):  # another process moved it away first
            os.rename(entry, broken / "entry")


def _seal(key: str, path: Path) -> str:
    """Return a digest of a file made for a key, and one of its state: the system notes when a file was last changed in any way."""
    content = hashlib.sha256(key.encode() + path.read_bytes()).hexdigest()
    status = path.stat()
    return f"{content} {status.st_ino}-{status.st_size}-{status.st_ctime_ns}"


def _require_room(folder: Path) -> None:
    """Raise ``OSError`` where nothing can be written (any more), which is then why a compiler has failed."""
    with (folder / "room").open("wb", buffering=0) as file:
        if file.write(bytes(_ROOM)) < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()


@cache
def _generator(include: Path) -> str:
    """Return a digest of what decides, beside the generated source, what an object is: other code makes other entries."""
    compiler = Path(__file__).resolve().parents[1]
    files = [*include.glob("*.[ch]"), *(path for folder in _GENERATOR for path in (compiler / folder).glob("*.py"))]
    return _key(*(path.read_text() for path in sorted(files)))


class _Untrusted(OSError):
    """Others can write a folder."""


def _folders() -> Iterator[Path]:
    """Yield the shared folder and, only when that one has failed, a folder of this process alone."""
    yield cache_folder()
    if private := _private_folder():
        yield private


@cache
def _sweep(folder: Path) -> None:
    """Remove what killed processes left behind, once a process."""
    sweep(folder, _MAKING)


@cache
def _private_folder() -> Path | None:
    """Return a folder of this process alone, removed at exit, for when the shared one cannot be used; None where none can be made."""
    import atexit

    try:
        folder = new_scratch(Path(tempfile.gettempdir()), _PRIVATE)
    except OSError:
        return None
    owner = os.getpid()
    atexit.register(lambda: folder.remove() if os.getpid() == owner else None)
    return folder.path


@cache
def _warn_unwritable(folder: str, reason: str) -> None:
    warn(f"the cache of compiled kernels {folder} cannot be written ({reason}); set SPARSETUNE_CACHE")


@cache
def _warn_untrusted(folder: str, reason: str) -> None:
    warn(
        f"the cache of compiled kernels {folder} is not used, since {reason}, and whoever writes there runs code as you; kernels are "
        "compiled anew in every process until this is mended or SPARSETUNE_CACHE names a folder of your own"
    )
