"""The sums of a block's rows, whose terms are in an array, row after row (``batches``).

A single row: a fixed number of terms is added without a loop, which is enough for most rows, then the remaining terms in a loop. Several
rows at once: for each row as many terms are added as the longest row of the block may have, in vectors in which lanes of other rows are set
to 0; the lanes of the vectors of several rows are then added together, which takes as few additions as for one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from ..ir.nodes import BOOL, I64, Binary, Call, Const, Declare, For, If, Load, SetVar, Step, Steps, Store, Type, Value, Var, Vector
from ..ir.rewrite import pairwise, substitute
from .folding import simplify_expression


@frozen
class Placed:
    """The terms of one sum of a block's rows.

    Attributes:
        loop: the loop over the elements of a row.
        total: the scalar to which they are added.
        begin: where the elements of a row begin, as an expression of the row.
        room: the array of terms.
        first: where the elements of the block begin, whose first term is at 0.
        at_once: how many terms of a single row are added without a loop.
    """

    loop: For
    total: Var
    begin: Value
    room: str
    first: Value
    at_once: Var


def row_length(begin: Value, row: Var) -> Value:
    """Return how many elements a row has; ``begin`` says where they begin, as an expression of the row."""
    return _minus(substitute(begin, {row.name: _plus(row, Const(1, I64))}), begin)


def row_sum(sums: Placed, together: int, lanes: int, fresh: Callable[[str], str]) -> Step:
    """Return the sum of a single row: the first ``together`` terms, or twice as many, are added without a loop."""
    total, name, room, at_once = sums.total, sums.loop.variable.name, sums.room, sums.at_once
    at, count = Var(fresh(f"{name}_at"), I64), Var(fresh(f"{name}_count"), I64)
    whole = total.type.vector(min(lanes, together))
    added, place = Var(fresh(f"{total.name}_lanes"), whole), Var(fresh(name), I64)

    def first_terms(begin: int) -> Value:
        return _first_terms(room, at, count, range(begin, begin + together, whole.lanes), whole)

    others = For(place, _plus(at, at_once), _plus(at, count), SetVar(total, Load(room, place, total.type), "+"), Vector(vectors=1))
    return Steps((
        Declare(at, _minus(sums.loop.low, sums.first)),
        Declare(count, _minus(sums.loop.high, sums.loop.low)),
        Declare(added, first_terms(0)),
        If(Binary("<", Const(together, I64), at_once, BOOL), SetVar(added, first_terms(together), "+")),
        SetVar(total, Call("sum_lanes", (added,), total.type), "+"),
        If(Call("seldom", (Binary("<", at_once, count, BOOL),), BOOL), others),
    ))  # fmt: skip


def _first_terms(room: str, at: Value, count: Value, firsts: range, whole: Type) -> Value:
    """Return the sum of vectors of a row's terms that begin at the numbers ``firsts``; terms behind the row's ``count`` are left out."""
    loads = [Load(room, _plus(at, Const(first, I64)), whole) for first in firsts]
    kept = [Call("keep_lanes", (load, _minus(count, Const(first, I64))), whole) for load, first in zip(loads, firsts, strict=True)]
    return pairwise(list[Value](kept), "+")


def sums_beside(sums: Placed, rows: For, first_row: Value, behind: Value, together: int, lanes: int, fresh: Callable[[str], str]) -> For:
    """Return the loop that sums several rows at once, as many as one step has, and puts the sums into the array of terms.

    Args:
        rows: the loop over these rows; its body is replaced.
        first_row: the first row of the block.
        behind: the place of the sums in the array of terms.
        together: the most terms of a row.
        lanes: the lanes of the widest vectors.
    """
    kind, name, row = sums.total.type, sums.loop.variable.name, rows.variable
    whole, steps, vectors = kind.vector(min(lanes, together)), list[Step](), list[Value]()
    for further in range(rows.step):
        here = {row.name: _plus(row, Const(further, I64))}
        at, count = Var(fresh(f"{name}_at"), I64), Var(fresh(f"{name}_count"), I64)
        added = Var(fresh(f"{sums.total.name}_lanes"), whole)
        begin, length = (simplify_expression(substitute(value, here)) for value in (sums.begin, row_length(sums.begin, row)))
        terms = _first_terms(sums.room, at, count, range(0, together, whole.lanes), whole)
        steps += [Declare(at, _minus(begin, sums.first)), Declare(count, length), Declare(added, terms)]
        vectors.append(added)
    several = Call("sums_of_lanes", tuple(vectors), kind.vector(rows.step)) if rows.step > 1 else Call("sum_lanes", tuple(vectors), kind)
    return replace(rows, body=Steps((*steps, Store(sums.room, _plus(behind, _minus(row, first_row)), several))))


def summed_beside(sums: Placed, row: Var, first_row: Value, behind: Value) -> SetVar:
    """Return the step that reads a row's sum from the array of terms, in place of computing it."""
    return SetVar(sums.total, Load(sums.room, _plus(behind, _minus(row, first_row)), sums.total.type), "+")


def _minus(left: Value, right: Value) -> Value:
    return simplify_expression(Binary("-", left, right, I64))


def _plus(left: Value, right: Value) -> Value:
    return simplify_expression(Binary("+", left, right, I64))
