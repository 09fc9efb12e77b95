"""Multiplies rows first that stay the same in most loops: ``t[r] += a[p] * B[j*16 + r] * C[k*16 + r] * D[l[p]*16 + r]`` in a loop over p
multiplies ``B`` and ``C`` with one another again for every p. Where they come first, their product is a row that stays the same in that
loop, and is held in registers (``held``).

The C compiler may not do that, since it keeps the order of multiplications. Of two factors the one that changes seldom comes first; where
a single row stays the same, nothing is saved, and the order is kept.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ..ir.nodes import Binary, Declare, For, Function, Load, SetVar, Step, Store, Var
from ..ir.rewrite import as_steps, has, mentions, nodes_of, transform_loops, transform_steps
from .factors import factors_of
from .held import always_inside, is_consecutive, is_row_loop
from .manager import Setting


def multiply_still_rows_first(function: Function, setting: Setting) -> Function:
    """Return a kernel whose products of rows begin with those that change least often."""
    lanes = setting.lanes
    return function if lanes == 1 else replace(function, body=as_steps(transform_loops(function.body, lambda loop: _ordered(loop, lanes))))


def _ordered(loop: For, lanes: int) -> For:
    """Return a loop whose products of rows begin with those that it does not change."""
    rows = {inner for inner in always_inside(loop.body) if is_row_loop(inner, lanes)}
    if not rows or not has(loop.body, Binary):
        return loop
    bound = {loop.variable.name, *(node.variable.name for node in nodes_of(loop.body, Declare, SetVar, For))}

    def changed(inner: Step) -> Step:
        if not isinstance(inner, For) or inner not in rows:
            return inner
        return replace(inner, body=transform_steps(inner.body, lambda step: _with_order(step, inner.variable, bound)))

    return replace(loop, body=transform_steps(loop.body, changed))


def _with_order(step: Step, variable: Var, bound: set[str]) -> Step:
    if not isinstance(step, Store | SetVar):
        return step
    factors, moved = list(factors_of(step.value)), bound - {variable.name}
    rows = [factor for factor in factors if isinstance(factor, Load) and is_consecutive(factor, variable)]
    still = [row for row in rows if not mentions(row.index, moved)]
    first = len(still) > 1 or (bool(still) and factors[:2] == rows[:2])
    others = [factor for factor in factors if factor not in still]
    if not first or factors == [*still, *others]:
        return step
    return replace(step, value=reduce(lambda one, other: Binary("*", one, other, one.type), [*still, *others]))
