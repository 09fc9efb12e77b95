"""The scope at one place of the loop nest that is being lowered: values, ranges, places of operands, workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from ..frozen import frozen
from ..ir.nodes import Value
from ..levels.level import Place
from ..notation.nodes import Access
from ..workspaces.held import HeldWorkspace
from .assembly import Assembly


@frozen
class Parents:
    """The positions [first, past) of every level above, outermost first, below which the positions [low, high) of a level lie."""

    low: Value
    high: Value
    levels: tuple[tuple[Value, Value], ...]


@frozen
class Window:
    """The half-open range that an index still ranges over; ``width`` where it is a compile-time constant.

    ``fibres``, of a part of a merge path and the positions in it: the fibres in which it begins and ends.
    """

    low: Value
    high: Value
    width: int | None = None
    fibres: tuple[Value, Value] | None = None


@frozen
class Clip:
    """The part of a collapsed loop that its inner part has left in each row: ``[low, high)`` of rows of ``extent``."""

    outer: str
    low: Value
    high: Value
    extent: Value


@frozen
class ParallelLoop:
    """A parallel loop around, the loops around that, its race strategy, and what its iterations go to.

    ``runs``: a share of its iterations is a run of them. ``part``, where that is known: what is written belongs to iterations of the own
    share, or of earlier ones.
    """

    index: str
    around: tuple[str, ...]
    race: str | None
    unit: str = "cpu_thread"
    runs: bool = False
    part: Literal["own", "earlier"] | None = None


@frozen
class OpenWorkspace:
    """A workspace inside its ``where``.

    Attributes:
        held: as generated code has it.
        outside: how many parallel loops stand around the ``where``.
        filled: whether all that writes it is through, so that it can be read.
    """

    held: HeldWorkspace
    outside: int
    filled: bool = False


@frozen
class Scope:
    """Immutable; inner places get changed copies.

    Attributes:
        coordinates: value of every index, original or derived, that is known.
        windows: ranges of indices that outer tile loops have narrowed.
        parents: of positions whose range tiles have narrowed: what those of a tile lie below, among which searches look.
        clips: for the inner index of a collapsed loop that a tile cuts, what is left.
        bases: for the inner index of a split, where its tile begins in the parent's space.
        places: how far each access is resolved.
        absent: accesses that are known to hold the fill value here.
        doubtful: accesses whose place is a position only if a variable says so; else they hold the fill value here.
        loops: indices of the loops around.
        guards: how many conditions and sparse loops stand around; 0 where every coordinate is reached.
        shared: how many of these guards are steps through the operand whose pattern is also the result's.
        parallel: the parallel loops around.
        workspaces: those whose ``where`` is around, by name.
        assembly: how a sparse result that shares no pattern is put together here.
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
        return self._with(coordinates={**self.coordinates, index: value})

    def narrow(self, index: str, window: Window) -> Scope:
        return self._with(windows={**self.windows, index: window})

    def widen(self, index: str) -> Scope:
        """Forget what is left of an index: its loop runs through that alone."""
        return self._with(windows={name: window for name, window in self.windows.items() if name != index})

    def lie_below(self, index: str, parents: Parents) -> Scope:
        return self._with(parents={**self.parents, index: parents})

    def clip(self, index: str, clip: Clip) -> Scope:
        return self._with(clips={**self.clips, index: clip})

    def unclipped(self, index: str) -> Scope:
        return self._with(clips={name: clip for name, clip in self.clips.items() if name != index})

    def base(self, index: str, value: Value) -> Scope:
        return self._with(bases={**self.bases, index: value})

    def at(self, access: Access, place: Place) -> Scope:
        return self._with(places={**self.places, access: place})

    def found(self, access: Access, place: Place | None = None) -> Scope:
        """The access is stored here, at a place that is new where one is given."""
        return self.at(access, place or self.place(access))._with(doubtful=self._doubts_without(frozenset({access})))

    def doubt(self, access: Access, place: Place, present: Value) -> Scope:
        """The access is stored at a place if ``present`` holds, and nowhere here otherwise."""
        return self.at(access, place)._with(doubtful={**self.doubtful, access: present})

    def without(self, accesses: frozenset[Access]) -> Scope:
        return self._with(absent=self.absent | accesses, doubtful=self._doubts_without(accesses))

    def _doubts_without(self, accesses: frozenset[Access]) -> Mapping[Access, Value]:
        if not accesses & self.doubtful.keys():
            return self.doubtful
        return {access: present for access, present in self.doubtful.items() if access not in accesses}

    def inside(self, index: str) -> Scope:
        return self._with(loops=(*self.loops, index))

    def guarded(self) -> Scope:
        return self._with(guards=self.guards + 1)

    def stepping_shared(self) -> Scope:
        """A step through the operand whose pattern the result shares: every entry of the result is reached."""
        return self._with(guards=self.guards + 1, shared=self.shared + 1)

    def threaded(self, loop: ParallelLoop) -> Scope:
        return self._with(parallel=(*self.parallel, loop))

    def open(self, name: str, held: HeldWorkspace) -> Scope:
        """The ``where`` of a workspace begins."""
        return self._with(workspaces={**self.workspaces, name: OpenWorkspace(held, len(self.parallel))})

    def filled(self, name: str) -> Scope:
        """A workspace can be read."""
        return self._with(workspaces={**self.workspaces, name: replace(self.workspaces[name], filled=True)})

    def held(self, tensor: str) -> HeldWorkspace | None:
        """Return what a tensor is held in if it is a workspace."""
        found = self.workspaces.get(tensor)
        return None if found is None else found.held

    def around(self, tensor: str) -> tuple[ParallelLoop, ...]:
        """Return the parallel loops around, inside its ``where`` if a tensor is a workspace: its threads have it in common."""
        found = self.workspaces.get(tensor)
        return self.parallel if found is None else self.parallel[found.outside :]

    def part(self, part: Literal["own", "earlier"]) -> Scope:
        """What is written here belongs to a part of the iterations of the innermost parallel loop."""
        *outer, loop = self.parallel
        return self._with(parallel=(*outer, replace(loop, part=part)))

    def place(self, access: Access) -> Place:
        return self.places.get(access, Place())
