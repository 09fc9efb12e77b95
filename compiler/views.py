"""Formats of views: a tensor of one mode per term of the affine subscripts at which another, stored one is read.

``B(i + j, 3*k)`` is read as a tensor of the modes i, j and k, whose levels are those of B, seen through the subscripts (``levels.affine``).
A view has no arrays of its own, so its modes may come in any order in which the stored levels are resolved one below the other; where
loops ask for another order, the stored tensor is converted as any other is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .format import Format
from .frozen import frozen
from .levels import LevelKind
from .levels.affine import PART, Resolving
from .levels.subsection import Subsection
from .notation.nodes import Affine


@frozen
class Subscript:
    """How one mode of the stored tensor is indexed.

    Attributes:
        terms: (mode of the view, coefficient), one at least, no mode twice; a constant has one mode that is always 0.
        constant: what is added.
        wraps, inside: see ``levels.affine.Resolving``.
        is_plain: whether it is one index.
        covering: the mode of the view that resolves the subscript for every stored coordinate, whatever the others are; None: no one does.
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
        levels, order: as of every format; ``order`` is that of the modes of the view.
        stored: the format of the tensor that is read.
        subscripts: of each of its modes.
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
        """The stored mode whose subscript has each mode of the view."""
        return {mode: number for number, subscript in enumerate(self.subscripts) for mode, _ in subscript.terms}

    def _resolves(self, level: int) -> bool:
        """Whether a level resolves its subscript: no later one has a term of it."""
        stored_mode = self._stored_modes[self.order[level]]
        return all(self._stored_modes[mode] != stored_mode for mode in self.order[level + 1 :])

    def _has_parent(self, level: int, place: int) -> bool:
        """Whether the position above a stored level is known where a level of the view stands."""
        above = {self.stored.order[number] for number in range(place)}
        return not above.intersection(self._stored_modes[mode] for mode in self.order[level:])

    def _parents_follow(self, level: int, place: int) -> bool:
        """Whether the parents of a stored level that subscripts leave open can be gone through where a level of the view stands."""
        later = {self._stored_modes[mode] for mode in self.order[level:]}
        between = [number for number in range(place) if self.stored.order[number] in later]
        kinds = [self.stored.levels[number] for number in between]
        walked = all(kind.full or (kind.steps_in_order and kind.stride == 1) for kind in kinds)
        modes = {self.stored.order[number] for number in (*between, place)}
        return walked and not any(self.subscripts[mode].wraps for mode in modes)

    def parents_open(self, level: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return for each stored level above a subsection whose subscript is open there its unknown terms: (mode of the view, how far it
        reaches from one value to the next). Nothing for other levels."""
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
        """Whether the values at one value after another of these modes of the view stand side by side in memory."""
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
