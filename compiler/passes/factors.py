"""Moves loop-invariant factors out of sums: in ``for k: t += a * u[k] * v[k]`` the sum of the rest is multiplied by ``a`` once.

The C compiler may not do that, since it keeps the order of multiplications. Only sums in vectors are changed, whose terms are added in
another order anyway, and only in loops that certainly run: an empty sum must be zero, even if the factor is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir.nodes import Binary, Const, Declare, For, Function, SetVar, Step, Steps, Value, Vector
from ..ir.rewrite import as_steps, is_pure, mentions, nodes_of, transform_loops, transform_steps
from .manager import Setting
from .sums import only_adds


def take_out_factors(function: Function, setting: Setting) -> Function:
    """Return a kernel whose sums in vectors multiply by loop-invariant factors once, after their loop."""
    body = transform_loops(function.body, lambda loop: _without(loop, setting))
    return replace(function, body=as_steps(body))


def _without(loop: For, setting: Setting) -> Step:
    """Return a loop without its invariant factors, and the multiplications after it."""
    if not isinstance(loop.tag, Vector) or not _surely_runs(loop) or not only_adds(loop):
        return loop
    steps = nodes_of(loop.body, Declare, SetVar)
    sums = frozenset(step.variable.name for step in steps if isinstance(step, SetVar))
    if any(mentions(step.value, sums) for step in steps):
        return loop
    own = sums.union((loop.variable.name,), (step.variable.name for step in steps))
    before: list[Step] = []
    after: list[Step] = []

    def change(step: Step) -> Step:
        if not isinstance(step, SetVar) or step.op not in ("+", "-") or not is_pure(step.value):
            return step
        factors = list(factors_of(step.value))
        moving = [factor for factor in factors if mentions(factor, own)]
        still = [factor for factor in factors if not mentions(factor, own)]
        if not still or len(moving) < 2:  # a single varying factor is multiplied and added in one instruction
            return step
        part = replace(step.variable, name=setting.fresh(f"{step.variable.name}_part"))
        before.append(Declare(part, Const(0.0, part.type)))
        after.append(replace(step, value=_product([*still, part])))
        return SetVar(part, _product(moving), "+")

    changed = replace(loop, body=transform_steps(loop.body, change))
    return Steps((*before, changed, *after)) if before else loop


def _surely_runs(loop: For) -> bool:
    return isinstance(loop.low, Const) and isinstance(loop.high, Const) and loop.low.value < loop.high.value


def factors_of(value: Value) -> Iterator[Value]:
    """Yield the factors of a product of floats."""
    if isinstance(value, Binary) and value.op == "*" and value.type.is_float:
        yield from factors_of(value.left)
        yield from factors_of(value.right)
    else:
        yield value


def _product(factors: list[Value]) -> Value:
    product, *others = factors
    for factor in others:
        product = Binary("*", product, factor, product.type)
    return product
