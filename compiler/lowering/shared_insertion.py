"""Inner loops of a sparse result that a GPU distributes: each iteration appends where the one before it ends.

While entries are counted, the counts of iterations are added up. While entries are stored, iterations are counted once more, the running
sums of their counts say where each of them begins, and they store side by side. A loop over the whole GPU has the counts of all its
iterations in memory. A block or warp goes through its iterations in rounds, so that its shared memory has room for the counts of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..concrete.nodes import Forall, targets
from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, integer, maximum, minimum, multiply, subtract
from ..ir.names import Names
from ..ir.nodes import BOOL, I64, Allocate, ArrayRef, Const, Dealt, Declare, For, Free, Load, Run, SetVar, Step, Steps, Store, Value, Var
from .assembled_levels import cursor
from .assembly import COUNT, FILL, Assembly, Phase
from .context import Context
from .scope import Scope
from .threads import Loop, dealt

ROUNDS = {("thread", "block"): 256, ("thread", "warp"): 32, ("warp", "block"): 8}
"""How many iterations the members of a group take in one round: as many as there usually are members."""


@frozen
class _Cursor:
    """The cursor of a level: outside of a loop, the one of an iteration, and the array with the counts of iterations."""

    around: Var
    own: Var
    counts: str


def shares(context: Context, scope: Scope, forall: Forall) -> bool:
    """Whether a GPU distributes a loop whose iterations append to a result that is counted first and then filled."""
    assembly = scope.assembly
    if assembly is None or not assembly.inserted or assembly.phase.grows or forall.tag.member is None:
        return False
    return context.result.tensor in targets(forall) and bool(_appended(assembly, scope))


def shared(context: Context, scope: Scope, forall: Forall, loop_of: Loop) -> list[Step]:
    """Return the steps of such a loop. They move the cursors outside of it behind all that its iterations append."""
    assert scope.assembly is not None
    own, cursors = _owned(scope.assembly, scope, context.names)

    def lowered(phase: Phase) -> _Pass | None:
        return _Pass.of(dealt(context, replace(scope, assembly=replace(own, phase=phase)), forall, loop_of), own)

    counted = lowered(COUNT)
    if counted is None:
        return []
    if scope.assembly.counting and scope.parallel:
        return [*counted.before, _added_up(counted.loop, cursors)]
    filled = None if scope.assembly.counting else lowered(FILL)
    if scope.parallel and filled is not None:
        return [_in_rounds(context.names, counted, filled, cursors)]
    return [_at_once(counted, filled, cursors)]


@frozen
class _Pass:
    """A loop that counts or stores entries, and the steps before it."""

    before: tuple[Step, ...]
    loop: For

    @staticmethod
    def of(steps: list[Step], own: Assembly) -> _Pass | None:
        """Return the pass of a distributed loop, each iteration of which notes for itself whether its block of dense levels is used."""
        if not steps:
            return None
        *before, loop = steps
        assert isinstance(loop, For)
        local = [Declare(own.used, Const(False, BOOL))] if own.last + 1 < len(own.levels) else []
        return _Pass(tuple(before), replace(loop, body=Steps((*local, loop.body))))

    def apart(self, loop: For) -> list[Step]:
        """Return a changed loop with the steps before it: in a block of their own, since the other pass declares the same names."""
        return [Steps((*self.before, loop))] if self.before else [loop]


def _appended(assembly: Assembly, scope: Scope) -> list[int]:
    """Return the levels to which coordinates are appended that are not known at a place."""
    return [place for place, entry in enumerate(assembly.levels) if entry.cursor is not None and entry.index not in scope.coordinates]


def _owned(assembly: Assembly, scope: Scope, names: Names) -> tuple[Assembly, tuple[_Cursor, ...]]:
    """Return the assembly of an iteration, with cursors of its own."""
    levels, cursors = list(assembly.levels), list[_Cursor]()
    for place in _appended(assembly, scope):
        entry = levels[place]
        own = Var(names.permanent(f"own_{cursor(entry).name}"), I64)
        cursors.append(_Cursor(cursor(entry), own, names.permanent(entry.counts)))
        levels[place] = replace(entry, cursor=own)
    return replace(assembly, levels=tuple(levels), used=Var(names.permanent(f"own_{assembly.used.name}"), BOOL)), tuple(cursors)


def _added_up(loop: For, cursors: Sequence[_Cursor]) -> For:
    """Return a loop that counts, and adds the counts of its iterations to the cursors outside."""
    begin = (Declare(each.own, ZERO) for each in cursors)
    return replace(loop, body=Steps((*begin, loop.body, *(SetVar(each.around, each.own, "+") for each in cursors))))


def _noted(loop: For, cursors: Sequence[_Cursor]) -> For:
    """Return a loop that counts, and notes the count of each iteration behind those of the ones before."""
    begin = (Declare(each.own, ZERO) for each in cursors)
    place = add(subtract(loop.variable, loop.low), ONE)
    return replace(loop, body=Steps((*begin, loop.body, *(Store(each.counts, place, each.own) for each in cursors))))


def _placed(loop: For, cursors: Sequence[_Cursor]) -> For:
    """Return a loop that stores, in which each iteration begins behind what the ones before append."""
    before = subtract(loop.variable, loop.low)
    begin = (Declare(each.own, add(each.around, Load(each.counts, before, I64))) for each in cursors)
    return replace(loop, body=Steps((*begin, loop.body)))


def _summed(cursors: Sequence[_Cursor], iterations: Value) -> list[Step]:
    return [Run("scan", (ArrayRef(each.counts, I64), add(iterations, ONE))) for each in cursors]


def _moved(cursors: Sequence[_Cursor], iterations: Value) -> list[Step]:
    return [SetVar(each.around, Load(each.counts, iterations, I64), "+") for each in cursors]


def _at_once(counted: _Pass, filled: _Pass | None, cursors: Sequence[_Cursor]) -> Steps:
    """Return the steps of a loop over the whole GPU; without ``filled`` its entries are only counted."""
    count = maximum(subtract(counted.loop.high, counted.loop.low), ZERO)
    steps: list[Step] = [*counted.before, *(Allocate(each.counts, I64, add(count, ONE), zero=True) for each in cursors)]
    steps += [_noted(counted.loop, cursors), *_summed(cursors, count)]
    if filled is not None:
        steps += filled.apart(_placed(filled.loop, cursors))
    return Steps((*steps, *_moved(cursors, count), *(Free(each.counts) for each in cursors)))


def _in_rounds(names: Names, counted: _Pass, filled: _Pass, cursors: Sequence[_Cursor]) -> Steps:
    """Return the steps by which the members of a block or warp take so many iterations of a loop at once as they have counts for."""
    assert isinstance(filled.loop.tag, Dealt)
    size = integer(ROUNDS[filled.loop.tag.unit, filled.loop.tag.within])
    turn, first, past, low, high = (Var(names.permanent(wish), I64) for wish in ("turn", "first", "past", "low", "high"))
    length = subtract(past, first)
    made = (Allocate(each.counts, I64, add(size, ONE), "registers") for each in cursors)
    body = Steps(
        (
            Declare(first, add(low, multiply(turn, size))),
            Declare(past, minimum(add(first, size), high)),
            *made,
            *(Store(each.counts, ZERO, ZERO) for each in cursors),
            *counted.apart(_noted(replace(counted.loop, low=first, high=past), cursors)),
            *_summed(cursors, length),
            _placed(replace(filled.loop, low=first, high=past), cursors),
            *_moved(cursors, length),
        )
    )
    turns = ceiling_quotient(maximum(subtract(high, low), ZERO), size)
    return Steps((*filled.before, Declare(low, filled.loop.low), Declare(high, filled.loop.high), For(turn, ZERO, turns, body)))
