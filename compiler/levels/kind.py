"""The interface of level kinds (Chou et al., "Format abstraction for sparse tensor algebra compilers").

A kind is one file beside this one: a class, and one object of it that is registered. The defaults of this interface are right for
compressed levels, which have sorted coordinates in ``crd``. Code outside this folder does not ask which kind a level has, but what the
kind can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ..ir.arithmetic import ONE, add, compare, every
from ..ir.intrinsics import Intrinsic
from ..ir.nodes import I64, Call, Step, Type, Value
from ..numpy_later import np
from .registry import level_kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..storage.level_arrays import LevelArrays
    from ..storage.walk import Walk
    from .level import CompoundSubscript, Level, Listed, NewVariable
    from .traversal import Claimed, Column, Frontier

Parts: TypeAlias = "Mapping[str, NDArray[Any]]"


class Multiplied(Protocol):
    """A size: a number, or a ``space.forests.posynomial.Posynomial``."""

    def __mul__(self, other: Any, /) -> Any: ...


Size = TypeVar("Size", bound=Multiplied)


_OWN, _UNLESS_ENCODED = ("types", "check", "parent"), ("bytes", "pack", "unpack")
"""Methods that every kind must define; then those that it must define unless it is another encoding of a ``plain`` kind."""
_READING_CRD = ("positions", "sampled", "coordinate")
"""Methods whose defaults read ``crd``, so that a kind without that array must define them; ``search`` is another one."""


class LevelKind(str):
    """How a level stores the coordinates of its mode below each position of the level above. As a string it is the kind's name.

    Attributes:
        letters: the short names; generated names use the first.
        full: every coordinate is present and nothing is stored: position = parent position * extent + coordinate.
        passes: locating a coordinate does not move: the position stays that of the parent, and a level below goes on from there.
        ordered: positions below one parent have increasing coordinates.
        steps: loops step through the positions; if False, they run over all coordinates and locate each.
        merges: the level can be co-iterated with others: coordinates are sorted, and there are no holes before ``filled``.
        holes: some positions hold nothing (``occupied``); what is stored below them is never reached.
        located: a coordinate is found without a search, so that the default schedule locates it.
        shares_positions: one coordinate for each parent, at the parent's own position.
        repeats: above a level that shares positions, a coordinate is stored once for each entry (COO).
        has_segments: an array ``pos`` delimits the children of each parent.
        mirrors: only the half of a symmetric matrix up to the diagonal is stored. Products read that half; for all else the whole
            matrix is made of it beforehand.
        stride: the distance between positions of one parent, with positions of other parents between. Where it is not 1, no loop
            runs over all positions of the level (``pos``).
        relative: a coordinate is computed from what is stored together with the parent's position.
        appends: results are assembled by appending: the next coordinate below a parent goes behind the last one, into ``crd``.
        inserts: results are written at any place: a position is the parent's times the extent, plus the coordinate (``insert``).
        places: entries of results are listed first; once they are counted, each gets its position (``slots``, ``vacant``, ``place``).
        intrinsics: the functions, by name, that generated code for this kind calls and that only this kind brings along.
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
        """Whether the level stores which coordinates are present."""
        return not self.full

    @property
    def steps_in_order(self) -> bool:
        """Whether stored coordinates are stepped through in order or searched for, and cannot be located directly."""
        return self.steps and self.ordered

    @property
    def has_fibres(self) -> bool:
        """Whether a ``pos`` array delimits sorted children of each parent."""
        return self.has_segments and self.ordered

    @property
    def searchable(self) -> bool:
        """Whether a schedule may have the children of one parent searched for a coordinate."""
        return self.steps_in_order and not self.shares_positions

    @property
    def plain(self) -> LevelKind:
        """The kind of which this one is another encoding, for example with fewer bytes; otherwise the kind itself."""
        return self

    def missing(self) -> Iterator[str]:
        """Yield the methods that a kind must define itself and does not."""
        own = (*_OWN, *(_UNLESS_ENCODED if self.plain is self else ()))
        if self.stores_coordinates and "crd" not in self.types(I64):
            own = (*own, *_READING_CRD, *(("search",) if self.searchable else ()))
        yield from (method for method in own if getattr(type(self), method) is getattr(LevelKind, method))

    def misplaced(self, above: LevelKind | None) -> str | None:
        """Return why a level cannot stand below a level of kind ``above`` (None: as the first level); None if it can."""
        return None

    # Memory

    def types(self, width: Type) -> dict[str, Type]:
        """Return the names of the arrays and the types of their elements; ``width`` is the type of positions and coordinates."""
        raise NotImplementedError

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        """Return how many positions a level has below all its parents; ``parents`` is their number."""
        return len(parts["crd"])

    def size(self, parents: Size, extent: Size, stored: Size) -> Size:
        """Return over how many positions loops run, as a number or a symbolic size, for the cost models.

        Args:
            parents: positions of the level above.
            extent: of the level's mode.
            stored: how many coordinates the level stores.
        """
        return stored

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        """Return the least (bytes, positions) of a packed level, for numbers of parents and of children of all parents together."""
        return self.plain.bytes(parents, children, extent)

    def pack(self, frontier: Frontier, column: Column) -> tuple[LevelArrays, Frontier]:
        """Return the arrays that store a column of coordinates below a frontier, and the frontier below.

        Raises:
            FormatError: the level cannot hold them.
        """
        arrays, below = self.plain.pack(frontier, column)
        return self.encoded(arrays, column.extent, column.refusal), below

    def unpack(self, walk: Walk, parts: Parts, extent: int) -> Walk:
        """Return the walk after one more level. Levels with a ``plain`` kind are decoded before."""
        raise NotImplementedError

    def check(self, claimed: Claimed) -> int:
        """Check all elements of foreign arrays, and return how many positions they have.

        Raises:
            DataError: they are not a level of this kind.
        """
        raise NotImplementedError

    def encoded(self, arrays: LevelArrays, extent: int, refusal: str) -> LevelArrays:
        """Convert arrays of the ``plain`` kind into this kind.

        Raises:
            FormatError: this kind cannot hold them. The message begins with ``refusal`` and goes on with the reason.
        """
        return arrays

    def decoded(self, arrays: LevelArrays, extent: int) -> LevelArrays:
        """Convert arrays of this kind into the ``plain`` kind."""
        return arrays

    def sampled(self, parts: Parts, places: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
        """Return the coordinates at some positions. Positions without a coordinate may give any number."""
        return parts["crd"][places].astype(np.int64)

    # Generated code

    def seen(self, level: Level, subscript: Callable[[], CompoundSubscript]) -> Level:
        """Return a level of this kind for generated code; ``subscript`` returns the compound subscript of the level's index."""
        return level

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        """Return the level for one parent. ``present`` is the condition that the parent exists; None: it does. ``Level.origin`` and
        ``Level.shift`` can keep what is read once for the parent."""
        return level

    def begin(self, level: Level, parent: Value) -> Value:
        """Return the first position below a parent. If the parent has none, return where its positions would begin."""
        return level.load("pos", parent)

    def bounds(self, level: Level, parent: Value, end: Value | None) -> tuple[Value, Value]:
        """Return the half-open range of positions below a parent, or below all parents from it up to ``end``, which all hold one
        coordinate."""
        return self.begin(level, parent), self.begin(level, add(parent, ONE))

    def filled(self, level: Level, low: Value, high: Value) -> Value:
        """Return the end of the positions that hold an entry, among [low, high) below one parent. For kinds that merge."""
        return high

    def coordinate(self, level: Level, position: Value) -> Value:
        """Return the coordinate at a position."""
        return level.load("crd", position)

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        """Return the call of a search function of the loop IR among sorted coordinates; see ``Level.search``.

        Where the parent is absent the range is empty, and the arrays may have no element for a parent: what is read of the parent
        itself is read only if ``low < high``.
        """
        return Call(function, (level.reference("crd"), low, high, coordinate, *more), I64)

    def locate(self, level: Level, low: Value, high: Value, coordinate: Value) -> Value:
        """Return the position of a coordinate below one parent; ``hit`` tells whether the coordinate is stored there."""
        return level.search(low, high, coordinate)

    def hit(self, level: Level, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        """Return the condition that the position from ``locate`` holds the coordinate."""
        return every([compare("<", position, high), compare("==", level.coordinate(position), coordinate)])

    def occupied(self, level: Level, position: Value, coordinate: Value) -> Value | None:
        """Return the condition that a position holds its coordinate, for kinds with ``holes``."""
        return None

    def within(self, level: Level, coordinate: Value) -> Value:
        """Return a coordinate, read at a position ahead that may belong to another parent, made safe for computing an address."""
        return coordinate

    def readable(self, level: Level, position: Value) -> Value:
        """Return a position ahead, which may belong to another parent, limited to positions whose coordinate can be read here."""
        return position

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        """Return the parent of a position; ``parents`` is the number of all parents."""
        raise NotImplementedError

    # Generated code that writes results

    def room(self, level: Level, positions: Value) -> dict[str, Value]:
        """Return the length of each array, which begins as zeros, for a number of positions. For kinds that insert."""
        return {}

    def insert(self, level: Level, position: Value) -> list[Step]:
        """Return the steps that mark a position as stored. Several threads may run them at once. For kinds that insert."""
        return []

    def slots(self, level: Level, listed: Listed, variable: NewVariable) -> tuple[list[Step], dict[str, Value]]:
        """Return the steps that make the arrays for listed entries, except ``crd``, and the length of each. For kinds that place.

        ``crd`` has one element for every position.
        """
        raise NotImplementedError

    def vacant(self, level: Level) -> Value:
        """Return what ``crd`` holds at empty positions. For kinds that place."""
        raise NotImplementedError

    def place(self, level: Level, listed: Listed, parent: Value, entry: Value, coordinate: Value) -> Value:
        """Return the empty position for a listed entry of a parent. For kinds that place."""
        raise NotImplementedError
