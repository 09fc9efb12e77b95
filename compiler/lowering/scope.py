"""The scope at one place of the loop nest that is being lowered: values, ranges, places of operands, workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from ..frozen import frozen
from ..ir.nodes import Value
from ..levels.level import Place
from ..notation.nodes import Access
from ..units import UNITS, Member
from ..workspaces.held import HeldWorkspace
from .assembly import Assembly


@frozen
class Parents:
    """The parents of positions [low, high) of a level: positions [first, past) in every level above, outermost first."""

    low: Value
    high: Value
    levels: tuple[tuple[Value, Value], ...]


@frozen
class Window:
    """The half-open range of an index at a place of the nest; ``width`` is its length if that is a compile-time constant.

    ``fibres``: for a part of a merge path and its positions, the fibres in which the part begins and ends.
    """

    low: Value
    high: Value
    width: int | None = None
    fibres: tuple[Value, Value] | None = None


@frozen
class Clip:
    """The window ``[low, high)`` of a collapsed loop over rows of ``extent`` iterations, from which the range in each row follows."""

    outer: str
    low: Value
    high: Value
    extent: Value


@frozen
class CopyNames:
    """The names in generated code of what belongs to the private copies of one tensor (``privatize.PrivateCopies``).

    ``indices`` are those by which the loop writes it; none if it does so by several accesses, which may differ in them.
    """

    indices: tuple[str, ...]
    share: str
    stride: str
    array: str
    spans: str
    begin: str
    first: str


@frozen
class ParallelLoop:
    """A parallel loop around, the scope outside it, its race strategy, and its unit.

    ``runs``: whether each share is a run of consecutive iterations. ``part``: if known, whether the written components belong to iterations
    of the same share, or of earlier ones. ``copies``: names for private copies of what the loop writes, by tensor and by whether they
    cover only what earlier shares own.
    """

    index: str
    outside: Scope
    race: str | None
    unit: str
    runs: bool = False
    part: Literal["own", "earlier"] | None = None
    copies: Mapping[tuple[str, bool], CopyNames] = field(default_factory=dict)

    @property
    def member(self) -> Member | None:
        """The group inside which a GPU distributes iterations; None for threads of the processor."""
        return UNITS[self.unit].member


@frozen
class OpenWorkspace:
    """A workspace inside its ``where``.

    Attributes:
        held: the workspace in generated code.
        outside: how many parallel loops are around the ``where``.
        filled: whether all its writers are done, so that it can be read.
    """

    held: HeldWorkspace
    outside: int
    filled: bool = False


@frozen
class Scope:
    """What is known at one place of the nest. It is immutable; inner places get changed copies.

    Attributes:
        coordinates: the value of every index, original or derived, that has one.
        windows: the ranges of indices that tiles have narrowed.
        parents: for positions whose range tiles have narrowed, the parents of the positions in the tile, which bound searches.
        clips: for the inner index of a collapsed loop that a tile cuts, the window of the collapsed index.
        bases: for the inner index of a split, the beginning of its tile in the parent's space.
        places: how far each access is resolved.
        absent: accesses that are known to hold the fill value here.
        doubtful: accesses that are stored here only if a variable is true; otherwise they have the fill value.
        loops: indices of the loops around.
        guards: how many conditions and sparse loops are around; 0 if every coordinate is reached.
        shared: how many of these guards are steps through the operand whose pattern the result shares.
        parallel: the parallel loops around.
        workspaces: those whose ``where`` is around, by name.
        assembly: how a sparse result is assembled here that shares no pattern.
    """

    coordinates: Mapping[str, Value] = field(default_factory=dict)
    windows: Mapping[str, Window] = field(default_factory=dict)
    parents: Mapping[str, Parents] = field(default_factory=dict)
    clips: Mapping[str, Clip] = field(default_factory=dict)
    bases: Mapping[str, Value] = field(default_factory=dict)
    places: Mapping[Access, Place] = field(default_factory=dict)
    absent: frozenset[Access] = frozenset()
    doubtful: Mapping[Access, Value] = field(default_factory=dict)
    loops: tuple[str, ...] = ()
    guards: int = 0
    shared: int = 0
    parallel: tuple[ParallelLoop, ...] = ()
    workspaces: Mapping[str, OpenWorkspace] = field(default_factory=dict)
    assembly: Assembly | None = None

    def _with(self, **changes: object) -> Scope:
        """Return a copy with other fields; ``dataclasses.replace`` takes three times as long."""
        made = object.__new__(Scope)
        made.__dict__.update(self.__dict__, **changes)
        return made

    def know(self, index: str, value: Value) -> Scope:
        """Return the scope in which an index has a value."""
        return self._with(coordinates={**self.coordinates, index: value})

    def narrow(self, index: str, window: Window) -> Scope:
        """Return the scope in which a tile limits an index to a window."""
        return self._with(windows={**self.windows, index: window})

    def widen(self, index: str) -> Scope:
        """Remove the window of an index, since its loop already runs through exactly that."""
        return self._with(windows={name: window for name, window in self.windows.items() if name != index})

    def lie_below(self, index: str, parents: Parents) -> Scope:
        """Return the scope in which the positions that an index counts are known to lie below these parents."""
        return self._with(parents={**self.parents, index: parents})

    def clip(self, index: str, clip: Clip) -> Scope:
        """Return the scope in which a tile cuts the collapsed loop that an index is the inner index of."""
        return self._with(clips={**self.clips, index: clip})

    def unclipped(self, index: str) -> Scope:
        """Return the scope without the clip of an index, for a loop whose window already follows from the clip."""
        return self._with(clips={name: clip for name, clip in self.clips.items() if name != index})

    def base(self, index: str, value: Value) -> Scope:
        """Return the scope in which the tile of a split, whose inner index is given, begins at a value."""
        return self._with(bases={**self.bases, index: value})

    def at(self, access: Access, place: Place) -> Scope:
        """Return the scope in which an access is resolved as far as a place."""
        return self._with(places={**self.places, access: place})

    def found(self, access: Access, place: Place | None = None) -> Scope:
        """Return the scope in which an access is known to be stored, at a new place if one is given."""
        return self.at(access, place or self.place(access))._with(doubtful=self._doubts_without(frozenset({access})))

    def doubt(self, access: Access, place: Place, present: Value) -> Scope:
        """Return the scope in which an access is stored at a place if ``present`` holds, and is absent otherwise."""
        return self.at(access, place)._with(doubtful={**self.doubtful, access: present})

    def without(self, accesses: frozenset[Access]) -> Scope:
        """Return the scope in which some accesses are known to hold the fill value."""
        return self._with(absent=self.absent | accesses, doubtful=self._doubts_without(accesses))

    def _doubts_without(self, accesses: frozenset[Access]) -> Mapping[Access, Value]:
        if not accesses & self.doubtful.keys():
            return self.doubtful
        return {access: present for access, present in self.doubtful.items() if access not in accesses}

    def inside(self, index: str) -> Scope:
        """Return the scope in the body of a loop over an index."""
        return self._with(loops=(*self.loops, index))

    def guarded(self) -> Scope:
        """Return the scope inside one more condition or sparse loop, so that not every coordinate is reached."""
        return self._with(guards=self.guards + 1)

    def stepping_shared(self) -> Scope:
        """Return the scope inside a step through the operand whose pattern the result shares; every entry of the result is reached."""
        return self._with(guards=self.guards + 1, shared=self.shared + 1)

    def threaded(self, loop: ParallelLoop) -> Scope:
        """Return the scope inside one more parallel loop."""
        return self._with(parallel=(*self.parallel, loop))

    def open(self, name: str, held: HeldWorkspace) -> Scope:
        """Return the scope inside the ``where`` of a workspace."""
        return self._with(workspaces={**self.workspaces, name: OpenWorkspace(held, len(self.parallel))})

    def filled(self, name: str) -> Scope:
        """Return the scope in which a workspace can be read."""
        return self._with(workspaces={**self.workspaces, name: replace(self.workspaces[name], filled=True)})

    def held(self, tensor: str) -> HeldWorkspace | None:
        """Return the workspace of a name in generated code; None if the tensor is no workspace."""
        found = self.workspaces.get(tensor)
        return None if found is None else found.held

    def around(self, tensor: str) -> tuple[ParallelLoop, ...]:
        """Return the parallel loops whose threads share a tensor: all around, but for a workspace only those inside its ``where``."""
        found = self.workspaces.get(tensor)
        return self.parallel if found is None else self.parallel[found.outside :]

    def part(self, part: Literal["own", "earlier"]) -> Scope:
        """Return the scope in which written components belong to the own share, or to earlier ones, of the innermost parallel loop."""
        *outer, loop = self.parallel
        return self._with(parallel=(*outer, replace(loop, part=part)))

    def place(self, access: Access) -> Place:
        """Return how far an access is resolved; where nothing is known, no level is."""
        return self.places.get(access, Place())
