"""Storage formats: a tensor is a tree of levels, one level a mode, stored in a chosen order of the modes.

A ``Format`` is a value: ``Format("dense, compressed")`` is CSR, with ``order=(1, 0)`` it is CSC. What a level can do
(iterate in order, locate, append, insert) is a property of its kind; a new kind is one more entry here, one packer in
``storage`` and one iterator in ``lowering`` (Chou et al., "Format abstraction for sparse tensor algebra compilers").
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from .errors import FormatError
from .source import nearest

MOST_EXTENT = 2**63 - 1
"""Coordinates have 64 bits at most."""


class LevelKind(StrEnum):
    """How one level stores the coordinates of its mode, below each position of the level above.

    - dense: every coordinate, nothing stored; position = parent position * extent + coordinate.
    - compressed: ``pos`` (parents + 1) delimits each parent's segment of ``crd``, sorted; unique unless the next level
      is a singleton (COO).
    - narrow: compressed in fewer bytes: ``crd`` holds 16-bit distances from the first coordinate of each parent's
      segment, which ``base`` holds; for fibres that reach no further than 65,536 coordinates.
    - singleton: one coordinate a parent, ``crd[parent position]``.
    - hashed: ``pos`` delimits each parent's table of ``crd`` slots (a power of two of them, or none), -1 where a slot
      is free; position = slot; coordinates come unsorted and are found by hashing.
    """

    DENSE = "dense"
    COMPRESSED = "compressed"
    NARROW = "narrow"
    SINGLETON = "singleton"
    HASHED = "hashed"

    @property
    def stores_coordinates(self) -> bool:
        return self is not LevelKind.DENSE

    @property
    def has_segments(self) -> bool:
        """Whether a ``pos`` array delimits the children of each parent."""
        return self in (LevelKind.COMPRESSED, LevelKind.NARROW, LevelKind.HASHED)

    @property
    def has_fibres(self) -> bool:
        """Whether a ``pos`` array delimits sorted children of each parent."""
        return self.has_segments and self.ordered

    @property
    def steps_in_order(self) -> bool:
        """Whether stored coordinates can only be stepped through in order, and otherwise be searched for."""
        return self.stores_coordinates and self.ordered

    @property
    def ordered(self) -> bool:
        """Whether iteration yields increasing coordinates."""
        return self is not LevelKind.HASHED

    @property
    def full(self) -> bool:
        """Whether every coordinate is present."""
        return self is LevelKind.DENSE


_KINDS = frozenset(kind.value for kind in LevelKind)
_LETTERS = {"d": "dense", "s": "compressed", "c": "compressed", "n": "narrow", "q": "singleton", "h": "hashed"}
_ANY_ORDER = ("coo", "csf")
_MATRIX_NAMES = {
    "csr": ("dense, compressed", (0, 1)),
    "csc": ("dense, compressed", (1, 0)),
    "dcsr": ("compressed, compressed", (0, 1)),
    "dcsc": ("compressed, compressed", (1, 0)),
}


@dataclass(frozen=True, init=False)
class Format:
    """Level kinds, outermost first, and the mode that each level stores.

    Args:
        levels: level kinds separated by commas, or a tuple of them; letters d, s, c, n, q, h without commas, and the names of
            matrix formats, csr, csc, dcsr and dcsc, work too.
        order: ``order[l]`` is the mode that level ``l`` stores; None for 0, 1, 2, ...

    Raises:
        FormatError: a kind is unknown, the order is no permutation, or a singleton level stands first or below a narrow one.
    """

    levels: tuple[LevelKind, ...]
    order: tuple[int, ...]

    def __init__(self, levels: str | tuple[LevelKind | str, ...] | list[str] = (), order: tuple[int, ...] | None = None) -> None:
        name = levels.strip().lower() if isinstance(levels, str) else ""
        if name in _MATRIX_NAMES:
            levels, own_order = _MATRIX_NAMES[name]
            order = own_order if order is None else order
        elif name in _ANY_ORDER:
            raise FormatError(f"{name!r} has as many levels as its tensor has modes: hand over the text itself, or name level kinds")
        kinds = _parse_levels(levels)
        modes = tuple(range(len(kinds))) if order is None else tuple(int(mode) for mode in order)
        if sorted(modes) != list(range(len(kinds))):
            raise FormatError(f"order {modes} is not a permutation of the modes 0 to {len(kinds) - 1} of a format of {len(kinds)} levels")
        if kinds and kinds[0] is LevelKind.SINGLETON:
            raise FormatError("a singleton level cannot stand first: it has one coordinate a position of the level above; use compressed")
        if (LevelKind.NARROW, LevelKind.SINGLETON) in itertools.pairwise(kinds):
            raise FormatError("a singleton level cannot stand below a narrow one, whose coordinates stand once each; use compressed")
        object.__setattr__(self, "levels", kinds)
        object.__setattr__(self, "order", modes)

    def __len__(self) -> int:
        """Return the order of the tensors that the format stores."""
        return len(self.levels)

    def __str__(self) -> str:
        """Return text that ``parse_format`` takes, such as ``dense, compressed`` or ``dense, compressed; 1, 0``."""
        kinds = ", ".join(self.levels)
        return kinds if self.order == tuple(range(len(self))) else f"{kinds}; {', '.join(map(str, self.order))}"

    @property
    def is_dense(self) -> bool:
        return all(kind is LevelKind.DENSE for kind in self.levels)

    @property
    def widened(self) -> Format:
        """The format with compressed levels for the narrow ones."""
        if LevelKind.NARROW not in self.levels:
            return self
        return Format(tuple(LevelKind.COMPRESSED if kind is LevelKind.NARROW else kind for kind in self.levels), self.order)

    def unique(self, level: int) -> bool:
        """Return whether a level holds each coordinate once below one parent: all but sorted ones above a singleton."""
        above_singleton = level + 1 < len(self.levels) and self.levels[level + 1] is LevelKind.SINGLETON
        return not (above_singleton and self.levels[level] in (LevelKind.COMPRESSED, LevelKind.SINGLETON))

    def level_of(self, mode: int) -> int:
        """Return the level that stores a mode."""
        return self.order.index(mode)


def _parse_levels(levels: str | tuple[LevelKind | str, ...] | list[str]) -> tuple[LevelKind, ...]:
    if isinstance(levels, str):
        text = levels.strip().lower()
        if text and "," not in text and text not in _KINDS and all(letter in _LETTERS for letter in text):
            levels = [_LETTERS[letter] for letter in text]
        else:
            levels = [part.strip() for part in text.split(",")] if text else []
    elif not isinstance(levels, (tuple, list)):
        raise FormatError(f"level kinds are a text such as 'dense, compressed' or a tuple of them, not {type(levels).__name__}")
    kinds = []
    for place, name in enumerate(levels):
        word = str(name).strip().lower()
        word = _LETTERS.get(word, word)
        if word not in _KINDS:
            meant = nearest(word, (*_MATRIX_NAMES, *_ANY_ORDER, *_KINDS) if len(levels) == 1 else _KINDS)
            raise FormatError(f"level {place + 1} is {str(name)!r}: a level is dense, compressed, narrow, singleton or hashed{meant}")
        kinds.append(LevelKind(word))
    return tuple(kinds)


def dense_format(order: int) -> Format:
    """Return the row-major dense format of a tensor of some order."""
    return Format((LevelKind.DENSE,) * order)


def coo_format(order: int) -> Format:
    """Return the coordinate format: one compressed level above singletons."""
    return Format((LevelKind.COMPRESSED,) + (LevelKind.SINGLETON,) * (order - 1)) if order else Format()


def csf_format(order: int) -> Format:
    """Return the format of compressed levels throughout, in mode order."""
    return Format((LevelKind.COMPRESSED,) * order)


def parse_format(value: Format | str | None, order: int) -> Format:
    """Turn anything that names a format into the format of a tensor of ``order`` modes.

    Args:
        value: a ``Format``, a name ("csr" "csc" "dcsr" "dcsc" "coo" "csf" "dense"), level kinds, or letters; after a
            semicolon the mode order may follow, ``"csf; 2, 0, 1"``. None is dense.

    Raises:
        FormatError: the format is unknown or has another number of levels than the tensor has modes.
    """
    if value is None:
        return dense_format(order)
    if isinstance(value, Format):
        found = value
    elif isinstance(value, str):
        found = _named(value, order)
    else:
        raise FormatError(f"a format is a Format or a text such as 'csr' or 'dense, compressed', not {type(value).__name__}")
    if len(found) != order:
        raise FormatError(f"format '{value}' has {len(found)} levels, but the tensor has {order} modes")
    return found


@cache
def _named(text: str, order: int) -> Format:
    name, _, modes_text = (part.strip().lower() for part in text.partition(";"))
    modes = _parse_modes(modes_text, text) if modes_text else None
    if name in _MATRIX_NAMES:
        levels, matrix_order = _MATRIX_NAMES[name]
        if order != 2:
            raise FormatError(f"format '{name}' is for matrices, but the tensor has {order} modes; use csf, coo or level kinds")
        return Format(levels, modes or matrix_order)
    families = {"dense": dense_format, "coo": coo_format, "csf": csf_format}
    if name in families and not (name == "dense" and order == 1):
        return Format(families[name](order).levels, modes)
    try:
        return Format(name, modes)
    except FormatError as error:
        raise FormatError(f"unknown format '{text}': {error}") from None


def _parse_modes(text: str, whole: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise FormatError(f"unknown format '{whole}': after the semicolon stand mode numbers, such as '1, 0'") from None
