"""Turns names of the loop IR into C names that hide no keyword, macro or runtime name; different names stay different."""

from __future__ import annotations

import re
from functools import lru_cache

from ..fresh import fresh

_KEYWORDS = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for", "goto",
    "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch",
    "typedef", "union", "unsigned", "void", "volatile", "while", "asm", "typeof", "near", "far", "alignas", "alignof", "constexpr",
    "nullptr", "static_assert", "thread_local", "typeof_unqual",
))  # fmt: skip
_MACROS = frozenset((
    "bool", "true", "false", "linux", "unix", "i386", "alloca", "offsetof", "assert", "errno", "complex", "imaginary", "I", "stdin",
    "stdout", "stderr", "be16toh", "be32toh", "be64toh", "le16toh", "le32toh", "le64toh", "htobe16", "htobe32", "htobe64", "htole16",
    "htole32", "htole64", "major", "minor", "makedev",
))  # fmt: skip
_USED = frozenset((
    "free", "malloc", "realloc", "aligned_alloc", "memset", "memcpy", "main",
))  # fmt: skip
_PREFIXES = ("_", "st_", "ST_")
"""Prefixes of names that the C implementation and the runtime in csrc/ use."""

_PATTERNS = re.compile(
    r"[A-Z][A-Z0-9_]{2,}"  # macros of the system's headers: NULL, SIZE_MAX, BYTE_ORDER
    r"|\w+_t"  # its types
    r"|[fiu]\d+x\d+(_u)?"  # our vector types
)


CUDA_WORDS = frozenset((
    "alignas", "and_eq", "and", "asm", "bitand", "bitor", "catch", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
    "consteval", "constinit", "const_cast", "co_await", "co_return", "co_yield", "decltype", "delete", "dynamic_cast", "explicit", "export",
    "friend", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "operator", "or", "or_eq", "private", "protected", "public",
    "reinterpret_cast", "requires", "static_cast", "template", "this", "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t",
    "xor", "xor_eq", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "half", "printf", "std", "min", "max",
))  # fmt: skip
"""Names that C++ and CUDA reserve in addition to those of C."""


_RESERVED = _KEYWORDS | _MACROS | _USED


@lru_cache(1 << 12)
def is_reserved(name: str) -> bool:
    """Return whether a name means, or may come to mean, something else in generated C."""
    return name.startswith(_PREFIXES) or name in _RESERVED or _PATTERNS.fullmatch(name) is not None


class NameTable(dict[str, str]):
    """The C name of each IR name, chosen when it is first asked for. The same IR name always gets the same C name."""

    def __init__(self, words: frozenset[str] = frozenset()) -> None:
        """Create a table; ``words`` are reserved in addition to the words of C."""
        super().__init__()
        self._words = words
        self._taken: set[str] = set()

    def __missing__(self, name: str) -> str:
        found = self[name] = self.fresh(name)
        return found

    def fresh(self, name: str) -> str:
        """Return a C name like ``name`` that nothing else has."""
        return self.own(next((like for like in (name, f"{name}_") if self._is_free(like)), f"v_{name}_"))

    def _is_free(self, name: str) -> bool:
        return not (is_reserved(name) or name in self._words or name in self._taken)

    def own(self, name: str) -> str:
        """Return a name of the emitter's own, ``st_`` something."""
        chosen = fresh(name, self._taken)
        self._taken.add(chosen)
        return chosen
