"""The sums of a block's rows, whose terms stand in an array one row after the other (``batches``).

A row by itself: as many terms as most rows have at most, without asking how many there are, then the others. Rows side by side: each in a
lane of a vector, its first term, its second and so on, as many as the longest row has; lanes whose row has ended add nothing. No lanes are
added to one another then, and a row's terms are added one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.nodes import BOOL, I64, Binary, Call, Const, Declare, For, If, Load, Select, SetVar, Step, Steps, Store, Value, Var, Vector
from ..ir.rewrite import pairwise, substitute
from .forms import gathered_bytes
from .simplify import simplify_expression


@frozen
class Placed:
    """The terms of one sum of a block's rows.

    Attributes:
        loop: the loop over the elements of a row.
        total: the scalar to which they are added.
        begin: where the elements of a row begin, in terms of the row.
        room: the array of terms.
        first: where the elements of the block begin: the first term stands at 0.
        at_once: how many terms are added without asking, where a row is added by itself.
    """

    loop: For
    total: Var
    begin: Value
    room: str
    first: Value
    at_once: Var


def row_length(begin: Value, row: Var) -> Value:
    """Return how many elements a row has, in terms of which ``begin`` says where they begin."""
    return _minus(substitute(begin, {row.name: _plus(row, Const(1, I64))}), begin)


def row_sum(sums: Placed, together: int, lanes: int, fresh: Callable[[str], str]) -> Step:
    """Return the sum of a row by itself: of the first ``together`` terms, or twice as many, without asking how many there are."""
    total, name, room, at_once = sums.total, sums.loop.variable.name, sums.room, sums.at_once
    at, count = Var(fresh(f"{name}_at"), I64), Var(fresh(f"{name}_count"), I64)
    whole = total.type.vector(min(lanes, together))
    added, place = Var(fresh(f"{total.name}_lanes"), whole), Var(fresh(name), I64)

    def first_terms(begin: int) -> Value:
        firsts = range(begin, begin + together, whole.lanes)
        loads = [Load(room, _plus(at, Const(first, I64)), whole) for first in firsts]
        kept = [Call("keep_lanes", (load, _minus(count, Const(first, I64))), whole) for load, first in zip(loads, firsts, strict=True)]
        return pairwise(list[Value](kept), "+")

    others = For(place, _plus(at, at_once), _plus(at, count), SetVar(total, Load(room, place, total.type), "+"), Vector(vectors=1))
    return Steps((
        Declare(at, _minus(sums.loop.low, sums.first)),
        Declare(count, _minus(sums.loop.high, sums.loop.low)),
        Declare(added, first_terms(0)),
        If(Binary("<", Const(together, I64), at_once, BOOL), SetVar(added, first_terms(together), "+")),
        SetVar(total, Call("sum_lanes", (added,), total.type), "+"),
        If(Call("seldom", (Binary("<", at_once, count, BOOL),), BOOL), others),
    ))  # fmt: skip


def lane_sums(
    sums: Placed, rows: Callable[[Step], For], first_row: Value, behind: Value, longest: Var, lanes: int, fresh: Callable[[str], str]
) -> tuple[For, Step] | None:
    """Return the loop that adds the terms of all rows side by side, and what a row does in place of its own sum; None: no such vectors.

    Args:
        rows: makes the loop over the rows of a block of its body.
        first_row: the first of them.
        behind: where the sums go in the array of terms.
        longest: how many elements the longest row has.
    """
    total, name = sums.total, sums.loop.variable.name
    at, count, turn = (Var(fresh(f"{name}_{part}"), I64) for part in ("begin", "count", "turn"))
    added, over = Var(fresh(f"{total.name}_lanes"), total.type), rows(Steps(()))
    term = Load(sums.room, _plus(turn, at), total.type)
    if_any = Select(Binary("<", turn, count, BOOL), term, Const(0.0, total.type), total.type)
    place = _plus(behind, _minus(over.variable, first_row))
    body = Steps((
        Declare(at, _minus(sums.begin, sums.first)),
        Declare(count, row_length(sums.begin, over.variable)),
        Declare(added, Const(0.0, total.type)),
        For(turn, Const(0, I64), longest, SetVar(added, if_any, "+")),
        Store(sums.room, place, added),
    ))  # fmt: skip
    loop = replace(rows(body), tag=Vector(vectors=1))
    if not gathered_bytes(loop, lanes):
        return None
    return loop, SetVar(total, Load(sums.room, place, total.type), "+")


def _minus(left: Value, right: Value) -> Value:
    return simplify_expression(Binary("-", left, right, I64))


def _plus(left: Value, right: Value) -> Value:
    return simplify_expression(Binary("+", left, right, I64))
