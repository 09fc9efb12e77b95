"""Formats of views. A view shows a stored tensor with one mode for each term of the affine subscripts at which it is read.

``B(i + j, 3*k)`` is read as a tensor with modes i, j and k. Its levels are those of B, seen through the subscripts (``levels.affine``).
A view has no arrays of its own. Its modes may come in any order in which the stored levels are resolved one below the other. If loops
need another order, the stored tensor is converted like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .format import Format
from .frozen import frozen
from .levels import LevelKind
from .levels.affine import PART, POINT, Resolving
from .levels.subsection import Subsection
from .notation.nodes import Affine


@frozen
class Subscript:
    """How one mode of the stored tensor is indexed.

    Attributes:
        terms: (mode of the view, coefficient); at least one, no mode twice. A constant subscript has one mode that is always 0.
        constant: what is added.
        wraps, inside: as in ``levels.affine.Resolving``.
        is_plain: whether it is one index.
        covering: the mode of the view that reaches every stored coordinate, whatever the values of the other modes are; None: no mode.
    """

    terms: tuple[tuple[int, int], ...]
    constant: int = 0
    wraps: bool = False
    inside: bool = False
    covering: int | None = None
    is_plain: bool = False


@frozen
class View(Format):
    """The format of a view.

    Attributes:
        levels, order: as in every format; ``order`` is the order of the view's modes.
        stored: the format of the tensor that is read.
        subscripts: the subscript of each mode of that tensor.
    """

    stored: Format
    subscripts: tuple[Subscript, ...]

    def __init__(self, stored: Format, subscripts: tuple[Subscript, ...], order: tuple[int, ...] | None = None) -> None:
        object.__setattr__(self, "stored", stored)
        object.__setattr__(self, "subscripts", subscripts)
        own = tuple(mode for stored_mode in stored.order for mode, _ in subscripts[stored_mode].terms)
        object.__setattr__(self, "order", own if order is None else order)
        object.__setattr__(self, "levels", tuple(self._kind(level) for level in range(len(self.order))))

    def __str__(self) -> str:
        return f"{self.stored} in the order {', '.join(map(str, self.order))} of {len(self.order)} terms"

    @cached_property
    def _stored_modes(self) -> dict[int, int]:
        """For each mode of the view, the stored mode whose subscript contains it."""
        return {mode: number for number, subscript in enumerate(self.subscripts) for mode, _ in subscript.terms}

    def _resolves(self, level: int) -> bool:
        """Whether a level resolves its subscript: no later one has a term of it."""
        stored_mode = self._stored_modes[self.order[level]]
        return all(self._stored_modes[mode] != stored_mode for mode in self.order[level + 1 :])

    def _has_parent(self, level: int, place: int) -> bool:
        """Whether the position in the level above a stored level is known at a level of the view."""
        above = {self.stored.order[number] for number in range(place)}
        return not above.intersection(self._stored_modes[mode] for mode in self.order[level:])

    def _parents_follow(self, level: int, place: int) -> bool:
        """Whether loops can run over the parents of a stored level at a level of the view, although subscripts above are still open."""
        later = {self._stored_modes[mode] for mode in self.order[level:]}
        between = [number for number in range(place) if self.stored.order[number] in later]
        kinds = [self.stored.levels[number] for number in between]
        walked = all(kind.full or (kind.steps_in_order and kind.stride == 1) for kind in kinds)
        modes = {self.stored.order[number] for number in (*between, place)}
        return walked and not any(self.subscripts[mode].wraps for mode in modes)

    def parents_open(self, level: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return, for each stored level above a subsection, the terms of its subscript that are not known there: (mode of the view, how
        far it reaches from one value to the next). Empty for other levels."""
        kind = self.levels[level]
        if not isinstance(kind, Subsection) or not kind.across:
            return ()
        later = self.order[level:]
        above = [dict(self.subscripts[self.stored.order[number]].terms) for number in range(self.stored_level(level))]
        return tuple(
            tuple((mode, abs(terms[mode])) for mode in later if mode in terms) for terms in above if not terms.keys().isdisjoint(later)
        )

    def _kind(self, level: int) -> LevelKind:
        mode = self.order[level]
        stored_mode = self._stored_modes[mode]
        subscript, place = self.subscripts[stored_mode], self.stored.level_of(stored_mode)
        inner = self.stored.levels[place]
        if subscript.is_plain:
            return inner
        coefficient = dict(subscript.terms)[mode]
        if not self._resolves(level):
            across = not self._has_parent(level, place)
            if not inner.steps_in_order or coefficient < 0 or (across and not self._parents_follow(level, place)):
                return PART
            return Subsection(inner, coefficient, subscript.wraps, across)
        return Resolving(inner, coefficient, subscript.wraps, subscript.inside, subscript.covering == mode, self.stored.unique(place))

    @property
    def is_point(self) -> bool:
        """Whether it is 1 where its subscript is 0, and has no other entries."""
        return self.stored.levels == (POINT,)

    @property
    def plain(self) -> Format:
        return self

    def unique(self, level: int) -> bool:
        return not self._resolves(level) or self.stored.unique(self.stored_level(level))

    def stored_level(self, level: int) -> int:
        return self.stored.level_of(self._stored_modes[self.order[level]])

    def compound_subscripts(self, indices: Sequence[str]) -> dict[int, Affine]:
        return {
            mode: Affine(tuple((indices[own], factor) for own, factor in subscript.terms), subscript.constant)
            for mode, subscript in enumerate(self.subscripts) if not subscript.is_plain
        }  # fmt: skip

    def steps_along(self, modes: Sequence[int]) -> bool:
        """Whether neighbouring values along these modes of the view are neighbours in memory."""
        last = self.subscripts[self.stored.order[-1]]
        factors = dict(last.terms)
        return len(modes) == 1 and factors.get(modes[0]) == 1 and self.stored.levels[-1].full and not last.wraps

    @property
    def stored_modes(self) -> tuple[tuple[tuple[int, ...], bool], ...]:
        found = []
        for (stored_mode,), is_stored in self.stored.stored_modes:
            subscript = self.subscripts[stored_mode]
            found.append((tuple(mode for mode, _ in subscript.terms), is_stored or not (subscript.is_plain or subscript.inside)))
        return tuple(found)

    @property
    def in_memory(self) -> Format:
        return self.stored

    def read_from(self, stored: Format) -> Format:
        return View(stored, self.subscripts)

    @property
    def plain_modes(self) -> tuple[int | None, ...]:
        return tuple(subscript.terms[0][0] if subscript.is_plain else None for subscript in self.subscripts)

    def following(self, places: Sequence[int]) -> Format:
        last = [max(places[mode] for mode, _ in subscript.terms) for subscript in self.subscripts]
        stored = self.stored.following(last)
        order = sorted(range(len(self.order)), key=lambda mode: (places[mode], stored.level_of(self._stored_modes[mode]), mode))
        return View(stored, self.subscripts, tuple(order))

    def sorted_levels(self) -> Format:
        return View(self.stored.sorted_levels(), self.subscripts, self.order)
