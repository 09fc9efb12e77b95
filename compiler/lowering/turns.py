"""Loops over subscripts that wrap: a loop over turns through the operand; within a turn nothing wraps.

``B(i + j)`` modulo the extent of B is read from coordinate i to the end of B, then from its beginning. A turn is a window of the index j
in which the subscript does not wrap, so that any loop for the lattice can step through the stored entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir.arithmetic import ONE, add, ceiling_quotient, compare, integer, maximum, minimum, subtract
from ..ir.nodes import I64, Declare, SetVar, Step, Steps, Var, While
from ..levels.affine import AffineLevel
from ..notation.nodes import Access
from .context import Context
from .resolve import anchored, named, stepping_level
from .scope import Scope, Window


def turns(context: Context, scope: Scope, access: Access, index: str) -> bool:
    """Whether a loop over an index steps through an operand that wraps there."""
    level = stepping_level(context, scope, access, index)
    return isinstance(level, AffineLevel) and level.affine.wraps


def turn_by_turn(
    context: Context, scope: Scope, index: str, window: Window, access: Access, within: Callable[[Scope, Window], list[Step]]
) -> list[Step]:
    """Return the loop over the turns of an operand in a window; ``within`` returns the loops of one turn."""
    steps: list[Step] = []
    with context.names.block():
        found = stepping_level(context, scope, access, index)
        assert found is not None
        level = anchored(context, found, steps)
        assert isinstance(level, AffineLevel)
        high = named(context, f"{index}_end", window.high, steps)
        begin = Var(context.names.local(f"{index}_begin"), I64)
        steps.append(Declare(begin, window.low))
        with context.names.block():
            stored = Var(context.names.local(f"turn_{index}"), I64)
            past = Var(context.names.local(f"{index}_past"), I64)
            room = ceiling_quotient(subtract(maximum(level.inner.extent, ONE), stored), integer(level.subscript.factor))
            before = [Declare(stored, level.stored(begin)), Declare(past, minimum(high, add(begin, room)))]
            turn = level.known.at(begin, level.subscript.factor, stored)
            turned = scope.at(access, replace(scope.place(access), turn=turn))
            inner = within(turned, Window(begin, past))
        return [*steps, While(compare("<", begin, high), Steps((*before, *inner, SetVar(begin, past))))] if inner else []
