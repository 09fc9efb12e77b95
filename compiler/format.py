"""Storage formats: a tensor is a tree of levels, one for each mode, stored in a chosen order of the modes.

A ``Format`` is a value: ``Format("dense, compressed")`` is CSR, with ``order=(1, 0)`` it is CSC. The kind of a level says what it stores
and can do (``levels``; Chou et al., "Format abstraction for sparse tensor algebra compilers"). ``Format("dense, symmetric")`` is CSR with
only the half up to the diagonal stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

from .errors import FormatError
from .frozen import frozen
from .kept import Kept
from .levels import COMPRESSED, DENSE, SINGLETON, LevelKind, level_kind, level_kinds
from .levels.registry import are_letters
from .shown import shown
from .source import nearest, quoted

if TYPE_CHECKING:
    from .notation.nodes import Affine

MOST_EXTENT = 2**63 - 1
"""The largest extent of a mode: coordinates have at most 64 bits."""


_ANY_ORDER = ("coo", "csf")
_MATRIX_NAMES = {
    "csr": ("dense, compressed", (0, 1)),
    "csc": ("dense, compressed", (1, 0)),
    "dcsr": ("compressed, compressed", (0, 1)),
    "dcsc": ("compressed, compressed", (1, 0)),
}


@frozen
class Format:
    """Level kinds, outermost first, and the mode that each level stores.

    Args:
        levels: level kinds separated by commas, or a tuple of them; their letters without commas (d, s, c, n, t, q, h, b, p, l, m), and
            the names of matrix formats, csr, csc, dcsr and dcsc, work too.
        order: ``order[l]`` is the mode that level ``l`` stores; None for 0, 1, 2, ...

    Raises:
        FormatError: a kind is unknown or cannot stand where it does, or the order is no permutation.
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
        modes = tuple(range(len(kinds))) if order is None else _modes(order)
        if sorted(modes) != list(range(len(kinds))):
            raise FormatError(f"order {modes} is not a permutation of the modes 0 to {len(kinds) - 1} of a format of {len(kinds)} levels")
        for above, kind in zip((None, *kinds), kinds, strict=False):
            if fault := kind.misplaced(above):
                raise FormatError(fault)
            if kind.mirrors and len(kinds) != 2:
                raise FormatError(f"a {kind} level is of matrices, 'dense, {kind}', not of tensors of {len(kinds)} modes")
        object.__setattr__(self, "levels", kinds)
        object.__setattr__(self, "order", modes)

    def __len__(self) -> int:
        """Return the order of the tensors that the format stores."""
        return len(self.levels)

    def __str__(self) -> str:
        """Return text that ``parse_format`` takes, such as ``dense, compressed`` or ``dense, compressed; 1, 0``."""
        kinds = ", ".join(self.levels)
        return kinds if self.order == tuple(range(len(self))) else f"{kinds}; {', '.join(map(str, self.order))}"

    @Kept
    def is_dense(self) -> bool:
        """Whether every level has all coordinates, so that none is stored."""
        return all(kind.full for kind in self.levels)

    @property
    def stored_modes(self) -> tuple[tuple[tuple[int, ...], bool], ...]:
        """For each level in memory: the modes whose indices together give its coordinates, and whether it stores coordinates."""
        return tuple(((mode,), not kind.full) for mode, kind in zip(self.order, self.levels, strict=True))

    @property
    def modes_in_memory(self) -> dict[int, tuple[int, ...]]:
        """For each mode in memory: the modes whose indices together give its coordinates."""
        return {mode: modes for mode, (modes, _) in zip(self.in_memory.order, self.stored_modes, strict=True)}

    @Kept
    def mirrors(self) -> bool:
        """Whether only half of a symmetric matrix is stored."""
        return any(kind.mirrors for kind in self.levels)

    @property
    def whole(self) -> Format:
        """The format that stores all of a symmetric matrix."""
        return self.plain if self.mirrors else self

    @property
    def plain(self) -> Format:
        """The format with the plain kind of every level (``LevelKind.plain``): compressed for narrow, patterned and symmetric ones."""
        plain = tuple(kind.plain for kind in self.levels)
        return self if plain == self.levels else Format(plain, self.order)

    def unique(self, level: int) -> bool:
        """Return whether a level holds each coordinate once below one parent. Sorted levels above a singleton may not."""
        shared = level + 1 < len(self.levels) and self.levels[level + 1].shares_positions
        return not (shared and self.levels[level].repeats)

    def level_of(self, mode: int) -> int:
        """Return the level that stores a mode."""
        return self.order.index(mode)

    @property
    def in_memory(self) -> Format:
        """The format of the tensor in memory: this one, or for a view the format of the tensor behind it (``views``)."""
        return self

    def read_from(self, stored: Format) -> Format:
        """Return the format in which this is read from a tensor that is stored in another format."""
        return stored

    @property
    def plain_modes(self) -> tuple[int | None, ...]:
        """For each mode in memory the mode of this format that is the same; None if a compound subscript reads it."""
        return tuple(range(len(self)))

    def stored_level(self, level: int) -> int:
        """Return the level in memory that a level reads."""
        return level

    def compound_subscripts(self, indices: Sequence[str]) -> dict[int, Affine]:
        """Return, by mode in memory, the compound subscripts at which it is read, given the indices of the view's modes."""
        return {}

    def following(self, places: Sequence[int]) -> Format:
        """Return the like format whose levels are in the order of the loops; ``places`` has the place of each mode's loop. Modes with
        equal places keep their order.

        Hashed and singleton levels become compressed.
        """
        modes = tuple(sorted(self.order, key=lambda mode: (places[mode], mode)))
        if modes == self.order:
            return self
        kinds = [kind if kind.full else COMPRESSED for kind in self.levels]
        if self.levels[-1].full and COMPRESSED in kinds:
            kinds = [COMPRESSED] * len(kinds)
        return Format(tuple(kinds), modes)

    def sorted_levels(self) -> Format:
        """Return the format with compressed levels for those that store coordinates."""
        return Format(tuple(COMPRESSED if not kind.full else kind for kind in self.levels), self.order)


def _modes(order: Any) -> tuple[int, ...]:
    if not isinstance(order, (tuple, list)) or not all(isinstance(mode, Integral) for mode in order):
        raise FormatError(f"the order of a format is a tuple of modes such as (1, 0), not {shown(order)}")
    return tuple(map(int, order))


def _parse_levels(levels: str | tuple[LevelKind | str, ...] | list[str]) -> tuple[LevelKind, ...]:
    if isinstance(levels, str):
        text = levels.strip().lower()
        if text and "," not in text and are_letters(text):
            levels = list(text)
        else:
            levels = [part.strip() for part in text.split(",")] if text else []
    elif not isinstance(levels, (tuple, list)):
        raise FormatError(f"level kinds are a text such as 'dense, compressed' or a tuple of them, not {type(levels).__name__}")
    kinds = []
    for place, name in enumerate(levels):
        if isinstance(name, LevelKind):
            kinds.append(name)
            continue
        word = name.strip().lower() if isinstance(name, str) else shown(name)
        try:
            kinds.append(level_kind(word))
        except FormatError as error:
            known = tuple(map(str, level_kinds()))
            meant = nearest(word, (*_MATRIX_NAMES, *_ANY_ORDER, *known) if len(levels) == 1 else known)
            raise FormatError(f"level {place + 1} {error}{meant}") from None
    return tuple(kinds)


def dense_format(order: int) -> Format:
    """Return the row-major dense format of a tensor of some order."""
    return Format((DENSE,) * order)


def coo_format(order: int) -> Format:
    """Return the coordinate format: one compressed level above singletons."""
    return Format((COMPRESSED,) + (SINGLETON,) * (order - 1)) if order else Format()


def csf_format(order: int) -> Format:
    """Return the format of compressed levels throughout, in mode order."""
    return Format((COMPRESSED,) * order)


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
        raise FormatError(f"unknown format {quoted(text, 60)}: {error}") from None


def _parse_modes(text: str, whole: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise FormatError(f"unknown format {quoted(whole, 60)}: after the semicolon stand mode numbers, such as '1, 0'") from None
