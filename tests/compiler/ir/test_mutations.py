"""Programs as passes leave them with one thing wrong: the verifier refuses every one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F64,
    I32,
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Const,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Load,
    Node,
    Publish,
    Run,
    SetVar,
    Steps,
    Store,
    Type,
    Var,
)
from sparsetune.compiler.ir.rewrite import transform
from sparsetune.compiler.ir.verify import IllFormed, verify
from sparsetune.compiler.pipeline import compile_kernel

SPARSE = {"A": "csr", "B": "csr", "C": "csr"}
KERNELS = {
    "rows": ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "parallelize(i, cpu_thread, no_races)", "cpu"),
    "vectors": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, "parallelize(k, cpu_vector, no_races)", "cpu"),
    "copies": ("y(j) = A(i,j) * x(i)", {"A": "csr"}, "parallelize(i, cpu_thread, temporary)", "cpu"),
    "product": ("C(i,j) = A(i,k) * B(k,j)", SPARSE, "", "cpu"),
    "pieces": ("C(i,j) = A(i,k) * B(k,j)", SPARSE, "parallelize(i, cpu_thread, no_races)", "cpu"),
    "inserted": ("C(i,j) = A(i,j) + B(i,j)", SPARSE, "assemble(C, insert); parallelize(i, cpu_thread, no_races)", "cpu"),
    "tables": (
        "C(i,j) = A(i,k) * B(k,j)", SPARSE,
        "assemble(C, insert); parallelize(i, gpu_warp, no_races); parallelize([0], j, gpu_thread, no_races)", "cuda-executor",
    ),
}  # fmt: skip
OTHER = {I64: I32, I32: I64, F64: I64, BOOL: I64}


def other(kind: Type) -> Type:
    return OTHER.get(kind, I64)


Change = Callable[[Node], Node | None]
MUTATIONS: dict[str, Change] = {
    "a name that nothing declares": lambda node: replace(node, name="nowhere") if isinstance(node, Var) else None,
    "another type of a variable": lambda node: replace(node, type=other(node.type)) if isinstance(node, Var) else None,
    "another type of an element": lambda node: replace(node, type=other(node.type)) if isinstance(node, Load) else None,
    "another type of an array": lambda node: replace(node, type=other(node.type)) if isinstance(node, Allocate) else None,
    "another array": lambda node: replace(node, array="nowhere") if isinstance(node, Load | Store | ArrayRef | Fill | Free) else None,
    "two definitions": lambda node: Steps((node, node)) if isinstance(node, Declare | Allocate) else None,
    "no array": lambda node: Steps(()) if isinstance(node, Allocate) else None,
    "never released": lambda node: Steps(()) if isinstance(node, Free) else None,
    "released twice": lambda node: Steps((node, node)) if isinstance(node, Free) else None,
    "released at once": lambda node: Steps((node, Free(node.array))) if isinstance(node, Allocate) and node.storage == "heap" else None,
    "never handed over": lambda node: Steps(()) if isinstance(node, Publish) else None,
    "handed over twice": lambda node: Steps((node, node)) if isinstance(node, Publish) else None,
    "an endless loop": lambda node: replace(node, step=0) if isinstance(node, For) else None,
    "a counter that is set": lambda node: (
        replace(node, body=Steps((SetVar(node.variable, Const(1, I64)), node.body))) if isinstance(node, For) else None
    ),
    "a fraction": lambda node: replace(node, value=0.5) if isinstance(node, Const) and not node.type.is_float else None,
    "another operator": lambda node: replace(node, op="<<") if isinstance(node, Binary | Store) else None,
    "a sum of conditions": lambda node: replace(node, op="+") if isinstance(node, Binary) and node.op in ("and", "or") else None,
    "no arguments": lambda node: (
        replace(node, arguments=()) if isinstance(node, Call | Run) and node.arguments and node.function != "exp" else None
    ),
}


def mutants(function: Function, change: Change, draw: random.Random, count: int = 2) -> Iterator[Function]:
    """Yield programs with one statement or value, drawn at random, changed."""
    nodes: list[Node] = []
    transform(function.body, lambda node: (nodes.append(node), node)[1])
    places = [place for place, node in enumerate(nodes) if change(node) is not None]
    for chosen in draw.sample(places, min(count, len(places))):
        seen = iter(range(len(nodes)))
        yield replace(function, body=transform(function.body, lambda node, at=chosen, seen=seen: _at(node, next(seen) == at, change)))


def _at(node: Node, is_there: bool, change: Change) -> Node:
    return (change(node) or node) if is_there else node


@pytest.mark.parametrize("name", KERNELS)
def test_one_thing_wrong_behind_any_pass_is_found(name: str) -> None:
    expression, formats, schedule, target = KERNELS[name]
    kernel = compile_kernel(expression, formats, {}, schedule, target=target).default_kernel
    draw, lowered, unit = random.Random(name), kernel.spec.function, kernel.target.vectors(kernel.spec)
    stages = [("lowering", lowered), *((one.name, made) for one, made in kernel.target.passes.stages(lowered, unit))]
    missed = []
    for stage, function in stages:
        verify(function, stage)
        for mutation, change in MUTATIONS.items():
            for mutant in mutants(function, change, draw):
                try:
                    verify(mutant, stage)
                except IllFormed:
                    continue
                missed.append(f"{mutation}, after {stage}")
    assert not missed
