"""Loops to be vectorized, and what is asked of their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from loop_runs import function
from short_nodes import K, plus, whole
from sparsetune.compiler.ir.interpret import interpret
from sparsetune.compiler.ir.nodes import (
    F64,
    I64,
    Allocate,
    Binary,
    Const,
    Declare,
    Fill,
    For,
    Function,
    Load,
    Node,
    Step,
    Steps,
    Store,
    Type,
    Value,
    Var,
    Vector,
)
from sparsetune.compiler.ir.rewrite import walk


def element(array: str, index: Value, kind: Type = F64) -> Load:
    return Load(array, index, kind)


def times(left: Value, right: Value, kind: Type = F64) -> Value:
    return Binary("*", left, right, kind)


def loop(high: Value, *body: Step, low: int = 0, tag: Vector | None = None) -> For:
    return For(K, whole(low), high, Steps(body), tag)


ARRAYS = {"x": ("f64", False), "y": ("f64", True), "z": ("f64", True), "f": ("f32", True), "s": ("f64", True)}

SIZE = 700


def buffers() -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.integers(-8, 9, SIZE).astype(kind) for kind in ("f8", "f8", "f8", "f4", "f8")]


def registers(high: Value, tag: Vector | None) -> list[Step]:
    if not isinstance(high, Const) or high.value == 0:
        return []
    p, count = Var("p", I64), whole(int(high.value))
    return [
        Allocate("w", F64, count, "registers", zero=True),
        For(p, whole(0), whole(5), loop(count, Store("w", K, times(element("x", p), element("x", plus(p, K))), "+"), tag=tag)),
        loop(count, Store("y", K, element("w", K)), tag=tag),
        Fill("w", whole(0), count, Const(1.5, F64)),
        loop(count, Store("z", K, times(element("w", K), element("z", K))), tag=tag),
    ]


def outputs(kernel: Function, sizes: Sequence[int]) -> list[np.ndarray]:
    arrays = buffers()
    interpret(kernel, arrays, sizes)
    return arrays


def copied(high: Value) -> Step:
    return loop(high, Store("y", K, element("x", K)))


def vectors_of(node: Node) -> list[Type]:
    return [inner.type for inner in walk(node) if isinstance(inner, Load | Var) and inner.type.lanes > 1]


def widths(made: Function) -> set[int]:
    return {kind.lanes for kind in vectors_of(made.body)}


TOTAL = Var("total", F64)


def with_total(statement: Step) -> Function:
    """Return a kernel in which a statement may sum into ``total``."""
    return function([Declare(TOTAL, Const(0.0, F64)), statement, Store("s", whole(0), TOTAL)], ARRAYS, ["n"])


def updates(place: Value, *others: Step) -> Function:
    """Update a row of ``y`` for every i and p, which ``others`` may disturb."""
    i, p = Var("i", I64), Var("p", I64)
    update = loop(whole(20), Store("y", place, times(element("x", p), element("x", plus(K, p))), "+"))
    inner = For(p, i, plus(i, whole(3)), Steps((update, *others)))
    return function([For(i, whole(0), whole(4), inner)], ARRAYS, ["n"])
