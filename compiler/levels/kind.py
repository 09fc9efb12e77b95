"""What every kind of level is asked, and which kinds there are (Chou et al., "Format abstraction for sparse tensor algebra compilers").

A kind is one file beside this one: a class and one object of it that is registered. What the class does not say is as it is for
compressed levels, whose coordinates stand sorted in ``crd``. Nothing outside this folder asks which kind a level is of: it asks what the
kind can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..ir.arithmetic import ONE, add, compare, every
from ..ir.intrinsics import Intrinsic, define, forget
from ..ir.nodes import I64, Call, Step, Type, Value

if TYPE_CHECKING:
    from ..storage.level_arrays import LevelArrays
    from .level import Level, Listed, NewVariable, Subscript
    from .traversal import Claimed, Column, Frontier, Walk

Parts = Mapping[str, NDArray[Any]]


class Multiplied(Protocol):
    """What sizes are given in: numbers, or ``space.forests.posynomial.Posynomial``."""

    def __mul__(self, other: Any, /) -> Any: ...


Size = TypeVar("Size", bound=Multiplied)


class LevelKind(str):
    """How one level stores the coordinates of its mode, below each position of the level above: a name, and what is done under it.

    Attributes:
        letters: the short names, the first of which is used in generated names.
        full: every coordinate is present and nothing is stored: position = parent position * extent + coordinate.
        passes: looking a coordinate up tells nothing yet: it leaves a place where it was, for a level below to go on from.
        ordered: positions below one parent have increasing coordinates.
        steps: loops step through the positions; where that is False, they run over the range and look coordinates up.
        merges: several operands can be stepped through side by side: sorted, and nothing but coordinates up to where they end.
        holes: there are positions that hold nothing (``occupied``); what stands below them is never reached.
        located: finding a coordinate takes no search, so that a schedule that says nothing looks it up.
        shares_positions: one coordinate per parent, under the parent's own number.
        repeats: above a level that shares positions, a coordinate stands once per entry (COO).
        has_segments: an array ``pos`` delimits the children of each parent.
        mirrors: only the half of a symmetric matrix up to the diagonal is stored; all but products read the whole, made of it before.
        stride: how far the positions of one parent stand apart; those of other parents stand between. No loop goes through all
            positions of a level where that is not 1 (``pos``).
        relative: what is stored for an entry gives its coordinate only together with the parent's position.
        appends: results are assembled in it by appending: the next coordinate below a parent goes behind the last one, into ``crd``.
        inserts: results are written into it at any place: a position is the parent's times the extent, plus the coordinate (``insert``).
        places: results are listed first; how many positions a parent takes, and which are whose, is known once entries are counted
            (``slots``, ``vacant``, ``place``).
        intrinsics: the functions that its generated code calls and that are not known without it, by name.
    """

    letters: str = ""
    full = False
    passes = False
    ordered = True
    steps = True
    merges = True
    holes = False
    located = False
    shares_positions = False
    repeats = False
    has_segments = False
    mirrors = False
    stride: int = 1
    relative = False
    appends = False
    inserts = False
    places = False
    intrinsics: Mapping[str, Intrinsic] = MappingProxyType({})

    def __reduce__(self) -> tuple[Any, ...]:
        return level_kind, (str(self),)

    @property
    def stores_coordinates(self) -> bool:
        """Whether the level says which coordinates are present."""
        return not self.full

    @property
    def steps_in_order(self) -> bool:
        """Whether stored coordinates can only be stepped through in order, and otherwise be searched for."""
        return self.steps and self.ordered

    @property
    def has_fibres(self) -> bool:
        """Whether a ``pos`` array delimits sorted children of each parent."""
        return self.has_segments and self.ordered

    @property
    def searchable(self) -> bool:
        """Whether the children of one parent can be searched for a coordinate, where a schedule says so."""
        return self.steps_in_order and not self.shares_positions

    @property
    def plain(self) -> LevelKind:
        """The kind that this one is another encoding of, such as one of fewer bytes; itself where it is none."""
        return self

    def misplaced(self, above: LevelKind | None) -> str | None:
        """Return why a level cannot stand below one of a kind, None for the first level; None where it can."""
        return None

    # Memory

    def types(self, width: Type) -> dict[str, Type]:
        """Return the names of the arrays and the types of their elements; ``width`` is the type of positions and coordinates."""
        raise NotImplementedError

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        """Return how many positions a level has below all its parents, of which there are ``parents``."""
        return len(parts["crd"])

    def size(self, parents: Size, extent: Size, stored: Size) -> Size:
        """Return how many positions loops go through, in numbers or in symbols, for the cost models.

        Args:
            parents: positions of the level above.
            extent: of the level's mode.
            stored: what is stored in the level.
        """
        return stored

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        """Return the least (bytes, positions) that packing a level takes for some number of parents and of children below all of them."""
        return self.plain.bytes(parents, children, extent)

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        """Return the arrays that store a column of coordinates below a frontier, and the frontier below.

        Raises:
            FormatError: the level cannot hold them.
        """
        arrays, below = self.plain.pack(frontier, column)
        return self.encoded(arrays, column.extent, column.refusal), below

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        """Return a walk that has reached a level one further; encodings are made plain before."""
        raise NotImplementedError

    def check(self, claimed: Claimed) -> int:
        """Return how many positions arrays of somebody else make, all of whose elements are looked at.

        Raises:
            DataError: they are none of this kind.
        """
        raise NotImplementedError

    def encoded(self, arrays: LevelArrays, extent: int, refusal: str) -> LevelArrays:
        """Return arrays of the ``plain`` kind in this one.

        Raises:
            FormatError: it cannot hold them; the message begins with ``refusal``, and what the level is follows.
        """
        return arrays

    def decoded(self, arrays: LevelArrays, extent: int) -> LevelArrays:
        """Return arrays of this kind in the ``plain`` one."""
        return arrays

    def sampled(self, parts: Parts, places: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
        """Return the coordinates at some positions; anything where they hold none."""
        return parts["crd"][places].astype(np.int64)

    # Generated code

    def seen(self, level: Level, subscript: Callable[[], Subscript]) -> Level:
        """Return a level of this kind as generated code sees it; ``subscript`` gives the compound subscript of the level's index."""
        return level

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        """Return a level as it is seen below a parent, which may not be ``present``; ``Level.origin`` and ``Level.shift`` may keep
        what is read once for it."""
        return level

    def begin(self, level: Level, parent: Value) -> Value:
        """Return the first position below a parent, or below all parents that come before it, where it has none."""
        return level.load("pos", parent)

    def bounds(self, level: Level, parent: Value, end: Value | None) -> tuple[Value, Value]:
        """Return the positions below a parent, half open, or below all parents up to ``end``, which hold one coordinate."""
        return self.begin(level, parent), self.begin(level, add(parent, ONE))

    def filled(self, level: Level, low: Value, high: Value) -> Value:
        """Return where the positions end that hold something, of those in [low, high) below one parent; for kinds that merge."""
        return high

    def coordinate(self, level: Level, position: Value) -> Value:
        """Return the coordinate at a position."""
        return level.load("crd", position)

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        """Return what a function of the loop IR finds among sorted coordinates: see ``Level.search``."""
        return Call(function, (level.reference("crd"), low, high, coordinate, *more), I64)

    def locate(self, level: Level, low: Value, high: Value, coordinate: Value) -> Value:
        """Return the position of a coordinate among those of one parent; ``hit`` tells whether it is there."""
        return level.search(low, high, coordinate)

    def hit(self, level: Level, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        """Return whether what ``locate`` gave holds the coordinate."""
        return every([compare("<", position, high), compare("==", level.coordinate(position), coordinate)])

    def occupied(self, level: Level, position: Value, coordinate: Value) -> Value | None:
        """Return the condition that a position holds its coordinate, for kinds with ``holes``."""
        return None

    def within(self, level: Level, coordinate: Value) -> Value:
        """Return a coordinate read at a position ahead, which may be another parent's, made safe to compute an address from."""
        return coordinate

    def readable(self, level: Level, position: Value) -> Value:
        """Return a position ahead, which may be another parent's, made one that the level below the present parent has a coordinate for."""
        return position

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        """Return which of the ``parents`` parents a position stands below."""
        raise NotImplementedError

    # Generated code that writes results

    def room(self, level: Level, positions: Value) -> dict[str, Value]:
        """Return how many elements, 0 at first, each array has for a number of positions; for kinds that insert."""
        return {}

    def insert(self, level: Level, position: Value) -> list[Step]:
        """Return the steps that note that something stands at a position, which threads may do at once; for kinds that insert."""
        return []

    def slots(self, level: Level, listed: Listed, variable: NewVariable) -> tuple[list[Step], dict[str, Value]]:
        """Return the steps that make the arrays for what is listed, but for ``crd``, and how many elements each has; for kinds that place.

        ``crd`` has one for every position.
        """
        raise NotImplementedError

    def vacant(self, level: Level) -> Value:
        """Return what ``crd`` holds at positions where nothing stands; for kinds that place."""
        raise NotImplementedError

    def place(self, level: Level, listed: Listed, parent: Value, entry: Value, coordinate: Value) -> Value:
        """Return the position where a listed entry of a parent goes, which is vacant; for kinds that place."""
        raise NotImplementedError


_known: dict[str, LevelKind] = {}
_letters: dict[str, LevelKind] = {}


_OWN, _UNLESS_ENCODED = ("types", "check", "parent"), ("bytes", "pack", "unpack")
"""Methods that every kind must have of its own; and those that it must have unless it is another encoding of a ``plain`` kind."""
_READING_CRD = ("positions", "sampled", "coordinate")
"""Methods that read ``crd`` in ``LevelKind``, so that a kind without that array must have its own; ``search`` is one more."""


def register(kind: LevelKind) -> LevelKind:
    """Make a kind known under its name and its letters, and return it.

    Raises:
        FormatError: a name is taken, or the kind does not say what every kind has to.
    """
    for method in _asked(kind):
        if getattr(type(kind), method) is getattr(LevelKind, method):
            raise FormatError(f"the level kind '{kind}' does not say '{method}'")
    for name in (str(kind), *kind.letters):
        if name in _known or name in _letters:
            raise FormatError(f"there is a level kind '{name}' already; choose another name")
    for name, intrinsic in kind.intrinsics.items():
        define(name, intrinsic)
    _known[str(kind)] = kind
    _letters.update(dict.fromkeys(kind.letters, kind))
    return kind


def _asked(kind: LevelKind) -> Iterator[str]:
    """Yield the methods that a kind has to have of its own."""
    yield from _OWN
    if kind.plain is kind:
        yield from _UNLESS_ENCODED
    if kind.stores_coordinates and "crd" not in kind.types(I64):
        yield from _READING_CRD
        if kind.searchable:
            yield "search"


def unregister(kind: LevelKind) -> None:
    """Make a kind unknown again, for those who define one for a while; tensors that have such levels must be gone."""
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
    """Whether every letter of a text, which is no kind's name, is that of a kind."""
    return text not in _known and all(letter in _letters for letter in text)
