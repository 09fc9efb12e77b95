"""The registry of level kinds: by their names, and by the letters that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import FormatError
from ..ir.intrinsics import define, forget

if TYPE_CHECKING:
    from .kind import LevelKind

_known: dict[str, LevelKind] = {}
_letters: dict[str, LevelKind] = {}


def register(kind: LevelKind) -> LevelKind:
    """Make a kind known under its name and its letters, and return it.

    Raises:
        FormatError: a name is taken, or the kind lacks a method that every kind must define.
    """
    if (method := next(kind.missing(), None)) is not None:
        raise FormatError(f"the level kind '{kind}' does not say '{method}'")
    for name in (str(kind), *kind.letters):
        if name in _known or name in _letters:
            raise FormatError(f"there is a level kind '{name}' already; choose another name")
    for name, intrinsic in kind.intrinsics.items():
        define(name, intrinsic)
    _known[str(kind)] = kind
    _letters.update(dict.fromkeys(kind.letters, kind))
    return kind


def unregister(kind: LevelKind) -> None:
    """Remove a kind from the registry. No tensor with such a level may be left."""
    del _known[str(kind)]
    for letter in kind.letters:
        del _letters[letter]
    for name in kind.intrinsics:
        forget(name)


def level_kind(name: str) -> LevelKind:
    """Return the kind of a name or a letter.

    Raises:
        FormatError: there is none.
    """
    found = _known.get(name) or _letters.get(name)
    if found is None:
        *most, last = _known
        raise FormatError(f"is {name!r}: a level is {', '.join(most)} or {last}")
    return found


def level_kinds() -> tuple[LevelKind, ...]:
    """Return all kinds, in the order in which they were registered."""
    return tuple(_known.values())


def are_letters(text: str) -> bool:
    """Whether a text is not the name of a kind, but each of its letters stands for one."""
    return text not in _known and all(letter in _letters for letter in text)
