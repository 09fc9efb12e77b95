"""Sums of rows whose places a GPU thread holds in registers: one pass over the places, which stops where rows end.

``while at < high: end = min(pos[i + 1], high); for p in at .. end: s += t[p - low]; y[i] += s; at = end; i = ...`` goes from row to row.
``t`` is in registers only if its indices are constants, so that every row would go through all places of ``t``, and ask of each whether it
is one of its own. One pass over the places adds each to the sum of its row, and asks whether the row ends there: then the steps behind the
row's loop follow, the next row is found, and the steps before its loop. The sums are the same, in the same order. Where loops over rows
are nested, an outer row ends where the last row inside it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, every, integer, subtract
from ..ir.nodes import BOOL, I32, I64, Binary, Call, Cast, Const, Declare, For, If, Load, SetVar, Step, Steps, Unroll, Value, Var, While
from ..ir.rewrite import block, leaves, nodes_of

L = TypeVar("L", For, While)
Along = Callable[[For], tuple[Value, int] | None]
"""Returns where the places begin along which a loop runs, and how many the thread holds; None for a loop along none."""
Placed = Callable[[Step, Var, Value, Var], Step]
"""Returns the body of a loop with this variable along places that begin at this value, for a place."""


@frozen
class _Level:
    """A loop over rows.

    Attributes:
        past: the condition that none is left; None for the outermost, which goes on as long as there are places.
        opening: declares what the steps of a row use.
        closing: the steps at the end of a row.
        later: finds the next row.
    """

    past: Value | None
    opening: tuple[Declare, ...]
    closing: tuple[Step, ...]
    later: SetVar


@frozen
class _Rows:
    """Loops over rows around one over the places of a row.

    Attributes:
        levels: the loops over rows, outermost first.
        at, end: the first place of a row, and the end of its places.
        high: the end of all places.
        inside: the loop over the places of a row.
        begin, length: where the places begin that the thread holds, and how many these are.
    """

    levels: tuple[_Level, ...]
    at: Var
    end: Var
    high: Value
    inside: For
    begin: Value
    length: int

    @property
    def narrow_end(self) -> Value:
        """The end of the row at hand, which may lie beyond the end of all places if its distance from the begin fits into 32 bits."""
        value = next(step.value for step in self.levels[-1].opening if step.variable == self.end)
        match value:
            case Binary("min", Cast(Load(type=kind)) as end, _) if kind.bytes < I64.bytes:
                return end
        return value


@frozen
class _Around(Generic[L]):
    """The steps around a loop that runs whenever they do."""

    before: tuple[Declare, ...]
    loop: L
    after: tuple[Step, ...]


def in_one_pass(loop: While, along: Along, placed: Placed, fresh: Callable[[str], str]) -> Step | None:
    """Return one pass over the places of the rows that a loop goes through; None for other loops."""
    rows = _rows(loop, loop.condition, (), along)
    return None if rows is None else _one_pass(rows, placed, fresh)


def _rows(loop: While, left: Value, around: tuple[_Level, ...], along: Along) -> _Rows | None:
    """Return the loops over rows from one on; ``left`` is the condition that there is a place."""
    past = _past(loop.condition, left) if around else None
    match left, leaves(loop.body):
        case Binary("<", Var() as at, high), [*steps, If(condition, then, None)] if condition == left:
            (later, *others) = leaves(then)
        case _:
            return None
    if not isinstance(later, SetVar) or others or bool(around) != (past is not None):
        return None
    if (outer := _around(steps, While)) is not None:
        return _rows(outer.loop, left, (*around, _Level(past, outer.before, outer.after, later)), along)
    found = _around(steps, For)
    held = None if found is None else along(found.loop)
    if found is None or held is None or not found.after:
        return None
    *closing, last = found.after
    values: dict[Value, Value] = {step.variable: step.value for step in found.before}
    low, end = (values.get(bound, bound) if isinstance(values.get(bound), Var) else bound for bound in (found.loop.low, found.loop.high))
    match last, values.get(end):
        case SetVar(place, to, ""), Binary("min", _, limit) if (place, to, low, limit) == (at, end, at, high) and isinstance(end, Var):
            return _Rows((*around, _Level(past, found.before, tuple(closing), later)), at, end, high, found.loop, *held)
    return None


def _past(condition: Value, left: Value) -> Value | None:
    """Return the condition that a loop over the rows inside another has none left; None if it is no such loop."""
    match condition:
        case Binary("and", places, Binary("<", row, past)) if places == left:
            return compare("<=", past, row)
    return None


def _around(steps: Sequence[Step], kind: type[L]) -> _Around[L] | None:
    """Return the steps around the only loop of a kind; None if there are more, or if steps before it do more than declare."""
    place = next((place for place, step in enumerate(steps) if nodes_of(step, kind)), len(steps))
    before, after = [step for step in steps[:place] if isinstance(step, Declare)], tuple(steps[place + 1 :])
    if place == len(steps) or len(before) < place or any(nodes_of(step, kind) for step in after):
        return None
    step = steps[place]
    if isinstance(step, kind):
        found = _Around[L]((), step, ())
    elif isinstance(step, If) and step.otherwise is None and (inner := _around(leaves(step.then), kind)) is not None:
        loop = inner.loop
        if step.condition != (compare("<", loop.low, loop.high) if isinstance(loop, For) else loop.condition):
            return None
        found = inner
    else:
        return None
    before += found.before
    once = len({declared.variable.name for declared in before}) == len(before)
    return _Around((*before,), found.loop, (*found.after, *after)) if once else None


def _one_pass(rows: _Rows, placed: Placed, fresh: Callable[[str], str]) -> Step:
    """Return the pass over all places that the thread holds; those in the range of the loops belong to rows."""
    place, places, stop = Var(fresh(rows.inside.variable.name), I64), Var(fresh("places"), I64), Var(fresh("row_end"), I32)
    stops = Declare(stop, Cast(subtract(rows.narrow_end, rows.begin), I32))
    there = Call("has_place", (places, place), BOOL)
    ends = every([there, compare("==", Cast(place, I32), stop)])
    turn = block([*_found(rows, place, stops), *_turned(rows.levels)])
    inside = placed(rows.inside.body, rows.inside.variable, rows.begin, place)
    body = block([If(ends, block([block(rows.levels[-1].closing), turn])), If(there, inside)])
    through = replace(rows.inside, variable=place, low=ZERO, high=integer(rows.length), body=body, tag=Unroll(rows.length))
    inner, *outer = (block(level.closing) for level in reversed(rows.levels))
    last = block([inner, SetVar(rows.at, rows.end), *outer])
    within = Declare(places, Call("places", (rows.begin, rows.at, rows.high), I64))
    opening = (declared for level in rows.levels for declared in level.opening)
    return If(compare("<", rows.at, rows.high), block([within, *opening, stops, through, last]))


def _found(rows: _Rows, place: Var, stops: Declare) -> list[Step]:
    """Return the steps that find the row of a place at which another one ends, and where it ends itself.

    Most often it is the next one, which takes one load.
    """
    later, there = rows.levels[-1].later, SetVar(rows.at, add(rows.begin, place))
    stop = SetVar(stops.variable, stops.value)
    match later.value:
        case Binary("-", Call("gallop", (pos, Binary("+", row, Const(2)), *rest)) as search, Const(1)) if row == later.variable:
            beyond = replace(later.value, left=replace(search, arguments=(pos, add(row, ONE), *rest)))
            further = Steps((replace(later, value=beyond), stop))
            return [there, SetVar(later.variable, add(row, ONE)), stop, If(compare("<=", stop.variable, Cast(place, I32)), further)]
    return [there, later, stop]


def _turned(levels: Sequence[_Level]) -> list[Step]:
    """Return the steps that begin a row of the last level, and those around it that end and begin rows of the others."""
    *outer, level = levels
    again = [SetVar(declared.variable, declared.value) for declared in level.opening]
    if level.past is None:
        return [*again]
    around = block([block(outer[-1].closing), outer[-1].later, *_turned(outer)])
    return [If(level.past, around), *again]
