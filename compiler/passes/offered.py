"""Loops without a vector form: those that the C compiler may vectorize get the tag ``Simd``, all others lose the tag ``Vector``.

The C compiler vectorizes loops that only read, store, and reduce scalars by operators of OpenMP, and that allocate no memory. Untagged
loops get the tag too if they compute functions and have enough iterations: the compiler would not gather their arguments by itself, and
functions of vectors take a fraction of the time.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import (
    BOOL,
    I64,
    Binary,
    Call,
    Const,
    Declare,
    For,
    Function,
    If,
    Load,
    Prefetch,
    SetVar,
    Simd,
    Step,
    Store,
    Value,
    Var,
    Vector,
    While,
)
from ..ir.rewrite import as_steps, has, may_fail, mentions, nodes_of, transform_loops
from .folding import simplify_expression
from .forms import are_apart
from .manager import Setting
from .sums import only_adds

OF_VECTORS = frozenset(("exp", "log", "tanh", "pow"))
"""Functions for which libraries have versions for vectors."""

OF_SUMS = 2
"""The least number of vectors for which a loop that sums runs in lanes, since the lanes must be added after it."""


def offer_vectors(function: Function, setting: Setting) -> Function:
    """Return a kernel in which no loop is tagged ``Vector``: remaining ones are tagged ``Simd`` or lose their tag."""

    def change(node: For) -> Step:
        if node.tag is None and computes_functions(node):
            return _offered_if_long(node, setting.lanes)
        if not isinstance(node.tag, Vector):
            return node
        reductions = None if may_fail(node.body) else scalar_reductions(node)
        return replace(node, tag=None if reductions is None else Simd(reductions))

    return replace(function, body=as_steps(transform_loops(function.body, change)))


def computes_functions(loop: For) -> bool:
    """Return whether a loop has no inner loop and computes functions with versions for vectors (``csrc/st_math.h``)."""
    plain = not has(loop.body, For, While, If, Prefetch)
    return plain and any(call.function in OF_VECTORS for call in nodes_of(loop.body, Call))


def _offered_if_long(loop: For, lanes: int) -> Step:
    """Return a loop that runs in lanes if it has enough iterations, and if its iterations store at different places or only add."""
    sums = only_adds(loop)
    reductions = scalar_reductions(loop) if sums else () if _stores_apart(loop) else None
    if lanes == 1 or loop.step != 1 or reductions is None:
        return loop
    enough = Binary("<=", Const(lanes * (OF_SUMS if sums else 1), I64), Binary("-", loop.high, loop.low, I64), BOOL)
    enough = simplify_expression(enough)
    if isinstance(enough, Const):
        return replace(loop, tag=Simd(reductions)) if enough.value else loop
    return If(enough, replace(loop, tag=Simd(reductions)), loop)


def _stores_apart(loop: For) -> bool:
    """Whether iterations store at different places, and gather: loops that do not gather are vectorized by the compiler itself."""
    inside = {*loop.body.declared, loop.variable.name}
    stored = all(_follows(store.index, loop.variable, inside) for store in nodes_of(loop.body, Store))
    gathers = any(mentions(load.index, inside) and not _follows(load.index, loop.variable, inside) for load in nodes_of(loop.body, Load))
    return stored and gathers and are_apart(loop)


def _follows(index: Value, variable: Var, inside: set[str]) -> bool:
    """Return whether a place advances by one element in each iteration of a loop."""
    match index:
        case Binary("+", left, right):
            return (left == variable and not mentions(right, inside)) or (right == variable and not mentions(left, inside))
        case _:
            return index == variable


def undecided(function: Function) -> str | None:
    """Return a fault: a loop that is still tagged ``Vector``; None if there is none."""
    loops = (node for node in nodes_of(function.body, For) if isinstance(node.tag, Vector))
    return next((f"the loop over {loop.variable.name} is tagged" for loop in loops), None)


def scalar_reductions(loop: For) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """Return the scalars into which a loop reduces, by operator; None if one is a vector, or the operator is min, max, and, or."""
    inside = {node.variable.name for node in nodes_of(loop.body, Declare)}
    inside |= {node.variable.name for node in nodes_of(loop, For)}
    found: dict[str, set[str]] = {}
    for node in nodes_of(loop.body, SetVar):
        if node.variable.name not in inside:
            if node.op not in ("+", "-", "*") or node.variable.type.lanes > 1:
                return None
            found.setdefault("+" if node.op == "-" else node.op, set()).add(node.variable.name)
    return tuple((op, tuple(sorted(names))) for op, names in sorted(found.items()))
