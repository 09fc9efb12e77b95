"""Subsections with many parents: for a subscript with an open index below levels whose subscripts have open indices too.

Case (c) of Liu et al., "Compiler support for sparse tensor convolutions", sections 5.2.1 and 5.2.2. For example, a subsection of rows i to
i + 2 begins at the same offset in the columns of each row. A buffer holds, for every parent, the first position in the subsection or behind
it. The next offset is the least one that any parent reaches. The buffer has a place for each parent that loops can meet at once (O(i) in
section 6.3.2). Loops inside, which visit one parent after another, begin at the positions in the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, every, integer, maximum, minimum, multiply
from ..ir.nodes import I64, Const, Declare, For, If, Select, SetVar, Step, Steps, Store, Value, Var, While
from ..levels.affine import AffineLevel
from ..levels.level import Begins, Level, Place
from ..levels.subsection import SubsectionLevel
from ..notation.nodes import Access
from .context import Context
from .recovery import coordinate
from .requests import allocated_once
from .scope import Scope

CROWDED = 2
"""If the offsets that the parents' entries reach, times this, are at least all offsets, hardly any offset is empty."""

Visit = Callable[[Place], list[Step]]


@frozen
class _Ancestor:
    """A stored level above whose subscript is open: the known indices allow its coordinates in [low, high).

    ``start`` is the position of the first of them, for an outermost level that stores coordinates.
    """

    level: Level
    low: Value
    high: Value
    start: Value | None


@frozen
class Across:
    """The parents of a subsection, and where it begins below each of them.

    Attributes:
        ancestors: the open levels above, the outermost first.
        above: the place above the first of them.
        present: the condition that this place exists; None: it does.
        level: the level of the offsets.
        begins: the buffer. It is used only if the parents' entries leave enough offsets empty; else all offsets are visited, which costs
            less than searching.
    """

    context: Context
    ancestors: tuple[_Ancestor, ...]
    above: Place
    present: Value | None
    level: SubsectionLevel
    begins: Begins

    def advance(self, position: Var, offset: Value, end: Value, *, first: bool) -> Step:
        """Go to the first offset, from ``offset`` on, at which something is stored below any parent.

        Args:
            position: the variable that gets the offset.
            offset: the first offset that is considered.
            end: the end of the offsets.
            first: whether this is the first search; else the buffer holds where the last subsection began.
        """
        names = self.context.names
        with names.block():
            least = Var(names.local("least"), I64)

            def visit(place: Place) -> list[Step]:
                found = Var(names.local("first"), I64)
                level, low, high = self.level.below_parent(place)
                slot = self.begins.slot(place.parent)
                begin = level.sought_first(low, high, position) if first else level.entered(slot, low, high, position)
                kept = Store(slot.array, slot.index, found)
                return [Declare(found, begin), kept, SetVar(least, level.following(found, high, position, end), "min")]

            loops = self._each(0, self.above, visit)
            looked = Steps((Declare(least, end), *loops, SetVar(position, least)))
        return Steps((SetVar(position, offset), If(self.begins.known, looked)))

    def _each(self, depth: int, above: Place, visit: Visit) -> list[Step]:
        """Return the loops over the parents below a place of one of the open levels."""
        if depth == len(self.ancestors):
            return visit(above)
        ancestor, names = self.ancestors[depth], self.context.names
        level, low, high = ancestor.level.below(above), ancestor.low, ancestor.high
        present = self.present if depth == 0 else None
        with names.block():
            position = Var(names.local(f"r_{level.index}"), I64)
            if level.kind.full:
                below = Place((add(multiply(above.parent, level.extent), position),))
                last = high if present is None else Select(present, high, low, I64)
                return [For(position, low, last, Steps(tuple(self._each(depth + 1, below, visit))))]
            begin, last = level.bounds(above)
            if present is not None:
                begin, last = (Select(present, value, ZERO, I64) for value in (begin, last))
            start = ancestor.start or (begin if low == ZERO else level.search(begin, last, low))
            inside = every([compare("<", position, last), compare("<", level.coordinate(position), high)])
            if level.unique:
                body = [*self._each(depth + 1, Place((position,)), visit), SetVar(position, ONE, "+")]
                return [Declare(position, start), While(inside, Steps(tuple(body)))]
            end = Var(names.local(f"q_{level.index}"), I64)
            same = every([compare("<", end, last), compare("==", level.coordinate(end), level.coordinate(position))])
            body = [
                Declare(end, add(position, ONE)), While(same, Steps((SetVar(end, ONE, "+"),))),
                *self._each(depth + 1, Place((position,), end), visit), SetVar(position, end),
            ]  # fmt: skip
            return [Declare(position, start), While(inside, Steps(tuple(body)))]


def across(context: Context, scope: Scope, access: Access, level: SubsectionLevel, steps: list[Step]) -> Across:
    """Return the parents of a subsection at a place of the nest; what is read of them once is added to ``steps``."""
    storage, form, place = context.tensors.storage(scope, access), context.tensors.format_of(access), scope.place(access)
    assert form is not None
    own = form.stored_level(place.depth)
    resolving = {form.stored_level(number): number for number in range(len(storage.levels))}
    opened = [resolving[number] for number in range(own) if resolving[number] >= place.depth]
    ancestors, room = list[_Ancestor](), integer(1)
    lowest, size = place, integer(1)

    def positions(number: int) -> Value:
        """Return how many positions a stored level of the operand has."""
        if number < 0:
            return ONE
        found = storage.levels[resolving[number]]
        if found.kind.full:
            return multiply(positions(number - 1), (found.inner if isinstance(found, AffineLevel) else found).extent)
        return context.tensors.stored_length(storage.name, resolving[number])

    for number in opened:
        found = storage.levels[number]
        stored, low, high, span = _window(context, scope, found, steps)
        stored = replace(stored, unique=form.unique(number))
        size = span if not ancestors else multiply(size, stored.extent)
        room = multiply(room, span)
        start: Value | None = None
        if stored.kind.full:
            begin = add(multiply(lowest.parent, stored.extent), low)
        else:
            size = context.tensors.stored_length(storage.name, number)
            room = minimum(room, size)
            begin = stored.below(lowest).bounds(lowest)[0]
            if not ancestors:
                start = begin = _kept(context, f"start_{stored.index}", _start(stored, place, low, scope.doubtful.get(access)), steps)
        ancestors.append(_Ancestor(stored, low, high, start))
        lowest = Place((begin if number == opened[-1] else minimum(begin, positions(form.stored_level(number))),))
    entries = multiply(positions(own), maximum(multiply(integer(CROWDED), level.reach), ONE))
    offsets = multiply(context.size(level.index), positions(own - 1))
    narrow = compare("<", multiply(entries, room), offsets)
    buffer = context.names.permanent(f"first_{level.index}")
    steps.append(allocated_once(buffer, I64, Select(narrow, size, ZERO, I64), zero=False))
    origin = _kept(context, f"origin_{level.index}", lowest.parent, steps)
    begins = Begins(buffer, origin, resolving[own], _kept(context, f"narrow_{level.index}", narrow, steps))
    return Across(context, tuple(ancestors), place, scope.doubtful.get(access), level, begins)


def _start(level: Level, above: Place, low: Value, present: Value | None) -> Value:
    """Return the first position of a level below a place with a coordinate of at least ``low``; ``present``: whether the place exists."""
    begin, last = (value if present is None else Select(present, value, ZERO, I64) for value in level.below(above).bounds(above))
    return begin if low == ZERO else level.below(above).search(begin, last, low)


def _kept(context: Context, wish: str, value: Value, steps: list[Step]) -> Value:
    if isinstance(value, (Var, Const)):
        return value
    kept = Var(context.names.permanent(wish), value.type)
    steps.append(Declare(kept, value))
    return kept


def _window(context: Context, scope: Scope, level: Level, steps: list[Step]) -> tuple[Level, Value, Value, Value]:
    """Return the stored level of an open subscript, the range [low, high) of its coordinates that are possible, and its largest length."""
    if not isinstance(level, AffineLevel):
        return level, ZERO, level.extent, level.extent
    stored, left = level.inner, level.subscript.window(lambda index: coordinate(context, scope, index))
    low, high, span = left.least, add(left.most, ONE), add(left.reach, ONE)
    begin, end = (Var(context.names.permanent(f"{wish}_{level.index}"), I64) for wish in ("from", "to"))
    steps += [Declare(begin, maximum(low, ZERO)), Declare(end, minimum(high, stored.extent))]
    return stored, begin, end, minimum(span, stored.extent)
