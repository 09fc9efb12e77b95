"""Loads shared objects with cffi. Equal declarations share one interface, and objects stay loaded."""

from __future__ import annotations

import ctypes
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..errors import BuildError
from .toolchain import Compiler, default_flags, find_compiler

CSRC = Path(__file__).resolve().parents[2] / "csrc"
"""The C headers and helpers that ship with the package."""


class NotLoaded(BuildError):
    """A compiled object cannot be loaded here, although a child process could load it."""


def load_source(
    source: str,
    declarations: str,
    compiler: str | None = None,
    flags: tuple[str, ...] | None = None,
    timeout: float = 120.0,
    files: tuple[str, ...] = (),
    symbols: tuple[str, ...] | None = None,
) -> Any:
    """Compile a C source (or take it from the cache) and load it.

    Args:
        source: the translation unit; ``#include "st_*.h"`` finds the headers of csrc/.
        declarations: the functions that are called, in the form of cffi's ``cdef``.
        compiler: a compiler's name; None for the default one.
        flags: flags in place of the default ones.
        files: C files of csrc/ that are compiled along, such as ``st_pack.c``.
        symbols: the declared names that the object defines; None: all.

    Returns:
        The cffi library; its functions are attributes. The object stays loaded as long as the process lives.

    Raises:
        BuildError: no compiler, a failing one, or an object that cannot be loaded.
    """
    chosen = find_compiler(compiler)
    wanted = default_flags() if flags is None else flags
    return load_compiled(source, declarations, chosen, wanted, timeout, files, symbols)


def load_compiled(
    source: str,
    declarations: str,
    compiler: Compiler,
    flags: tuple[str, ...],
    timeout: float = 120.0,
    files: tuple[str, ...] = (),
    symbols: tuple[str, ...] | None = None,
    is_linked: bool = False,
) -> Any:
    """Compile a C source with these flags alone (or take it from the cache) and load it; see ``load_source`` and ``cached_object``."""
    from .cache import cached_object  # imported late: it loads all that runs compilers

    wanted = declared(declarations) if symbols is None else symbols
    try:
        return open_object(cached_object(source, compiler, flags, CSRC, timeout, files, wanted, is_linked), declarations)
    except NotLoaded:  # perhaps the cache was cleared just now
        return open_object(cached_object(source, compiler, flags, CSRC, timeout, files, wanted, is_linked), declarations)


@cache
def declared(declarations: str) -> tuple[str, ...]:
    """Return the names of the declared functions and variables, without constants of enumerations, which objects do not define."""
    interface = foreign_interface(declarations)
    program = interface.dlopen(None)

    def is_constant(name: str) -> bool:
        try:
            return isinstance(getattr(program, name), int)
        except interface.error:  # cffi raises it for functions and variables that this process does not define
            return False

    return tuple(sorted(name for name in dir(program) if not is_constant(name)))


@cache
def open_object(path: Path, declarations: str) -> Any:
    """Load a shared object for the rest of the process: memory that its functions made may be released until the interpreter ends.

    An interface of parsed declarations, unlike cffi's parser, keeps no reference to the library. RTLD_NODELETE keeps it loaded nonetheless.

    Raises:
        NotLoaded: the system's loader refuses it.
    """
    try:
        interface = foreign_interface(declarations)
        mode = interface.RTLD_NOW | getattr(interface, "RTLD_NODELETE", 0)
        try:
            return interface.dlopen(str(path), mode)
        except UnicodeEncodeError:  # cffi takes no names with bytes that are no text in this locale
            return interface.dlopen(interface.cast("void *", ctypes.CDLL(str(path), mode)._handle))
    except OSError as error:
        advice = "remove the file, or check that the compiler fits this Python"
        raise NotLoaded(f"the compiled object {path} cannot be loaded here: {error}; {advice}") from None


def declared_in(header: Path) -> str:
    """Return the part of a header of csrc/ between its two marks, which is all that cffi can parse."""
    text = header.read_text()
    return text[text.index("/* cdef */") : text.index("/* end */")]


@cache
def foreign_interface(declarations: str) -> Any:
    """Return the cffi interface of some declarations, one for all libraries that share them.

    They are parsed once for all processes, and kept beside compiled objects in a form that cffi reads without its parser: importing the
    parser would take longer than a whole first lookup.

    Raises:
        BuildError: no folder can be written.
    """
    from _cffi_backend import __version__ as parser

    from .cache import cached_interface  # imported late: needed only when an object is loaded

    try:
        text = cached_interface(declarations, parser, partial(_parse, declarations)).read_text()
    except OSError:  # perhaps the cache was cleared just now
        text = cached_interface(declarations, parser, partial(_parse, declarations)).read_text()
    made: dict[str, Any] = {}
    exec(compile(text, "<declarations>", "exec"), made)
    return made["ffi"]


def _parse(declarations: str, place: Path) -> None:
    """Parse declarations, and write them as Python code that cffi reads without parsing."""
    import cffi

    interface = cffi.FFI()
    interface.cdef(declarations)
    interface.set_source("declarations", None, compiler_verbose=0)  # 1 prints
    interface.emit_python_code(str(place))
