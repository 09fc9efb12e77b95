"""Directives preserve meaning: random schedules of random expressions, run by the evaluator, against numpy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import Concretized, concretize
from sparsetune.compiler.concrete.evaluate import evaluate
from sparsetune.compiler.concrete.nodes import Forall, Program, assignments, loops, walk
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.nodes import Add, Literal, Mul, accesses, walk_expression
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show
from sparsetune.compiler.schedule.apply import apply_schedule

EXTENTS = {"i": 3, "j": 4, "k": 3, "l": 2, "m": 2, "n": 2}
Meaning = str | Callable[..., np.ndarray]
EXPRESSIONS: list[tuple[str, Meaning, list[str]]] = [
    ("y(i) = A(i,j) * x(j)", "ij,j->i", ["csr", "csc", "dcsr", "coo", "dense"]),
    ("Y(i,k) = A(i,j) * X(j,k)", "ij,jk->ik", ["csr", "csc", "dcsr", "coo"]),
    ("Z(i,j) = B(i,j) * C(i,k) * D(k,j)", "ij,ik,kj->ij", ["csr", "csc", "coo"]),
    ("T(i,j) = B(i,j,k) * c(k)", "ijk,k->ij", ["csf", "coo", "dense, compressed, compressed"]),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", "ijk,kl->ijl", ["csf", "coo", "dense, dense, compressed"]),
    ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", "ijk,jl,kl->il", ["csf", "coo", "csf; 1, 0, 2", "dense, compressed, compressed"]),
    ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", "ijk,jl,km->ilm", ["csf"]),
    ("a = B(i,j) * C(i,j)", "ij,ij->", ["csr", "dcsr"]),
    ("Z(i,j) = B(i,j) + C(i,j)", lambda b, c: b + c, ["csr", "dcsr"]),
    ("Z(i,j) = (B(i,j) - C(i,j)) * D(j)", lambda b, c, d: (b - c) * d, ["csr"]),
    ("y(i) = b(i) + A(i,j) * x(j)", lambda b, a, x: b + a @ x, ["dense"]),
    ("Z(i,j) = B(i,j) + C(i,k) * D(k,j)", lambda b, c, d: b + c @ d, ["csr", "dense"]),
    ("y(i) = A(i,j) * x(j) / 2 - A(i,j)", lambda a, x: a @ x / 2 - a.sum(1), ["csr"]),
]


def default_program(expression: str, formats: dict[str, str]) -> Concretized:
    assignment = parse(expression)
    return concretize(assignment, formats_of(assignment, formats))


def inputs(expression: str, seed: int, sparse: str) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    arrays = {}
    for access in accesses(parse(expression).value):
        shape = tuple(EXTENTS[name] for name in (s.index for s in access.subscripts))
        values = draw.integers(1, 9, shape).astype(float)
        keep = draw.random(shape) < (0.4 if access.tensor == sparse else 0.9)
        arrays[access.tensor] = values * keep
    return arrays


def reference(meaning: Meaning, arrays: dict[str, np.ndarray]) -> np.ndarray:
    return np.einsum(meaning, *arrays.values()) if isinstance(meaning, str) else meaning(*arrays.values())


def check(program: Program, found: Concretized, arrays: dict[str, np.ndarray], expected: np.ndarray) -> None:
    (result,) = evaluate(program, arrays, found.formats).values()
    np.testing.assert_array_equal(result, expected)


class Drawer:
    """Draws directives that fit the loops of a program as it stands."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def one(self, choices: list[str]) -> str:
        return self.draw(st.sampled_from(choices))

    def directive(self, program: Program) -> str:
        present = list(dict.fromkeys(loops(program.statement)))
        kind = self.one(["reorder", "split", "split_up", "collapse", "pos", "bound", "precompute", "loopfuse", "coord", "factors"])
        nest = _nests(program)
        match kind:
            case "reorder":
                chain = self.draw(st.sampled_from(nest))
                return f"reorder({', '.join(self.draw(st.sampled_from(list(permutations(chain[:5])))))})"
            case "split" | "split_up":
                return f"{kind}({self.one(present)}, {self.new()}, {self.new()}, {self.draw(st.integers(1, 5))})"
            case "collapse":
                pairs = [(a, b) for chain in nest for a, b in pairwise(chain)]
                outer, inner = self.draw(st.sampled_from(pairs or [(present[0], present[0])]))
                return f"collapse({outer}, {inner}, {self.new()})"
            case "pos":
                operands = [show(access) for assign in assignments(program.statement) for access in accesses(assign.value)]
                return f"pos({self.one(present)}, {self.new()}, {self.one(operands)})"
            case "coord":
                return f"coord({self.one(present)}, {self.new()})"
            case "bound":
                return f"bound({self.one(present)}, {self.new()}, 0, min_exact)"
            case "precompute":
                return self.precompute(program, present)
            case "factors":
                leaf = self.draw(st.sampled_from(assignments(program.statement)))
                factors = leaf.value.operands if isinstance(leaf.value, Mul) else (leaf.value,)
                return f"factors({', '.join(show(factor) for factor in self.draw(st.permutations(factors)))})"
            case _:
                path = self.one(["[]", "[0]", "[1]"])
                return f"loopfuse({self.draw(st.integers(1, 2))}, {self.one(['true', 'false'])}, {path})"

    def precompute(self, program: Program, present: list[str]) -> str:
        leaf = self.draw(st.sampled_from(assignments(program.statement)))
        node = self.draw(st.sampled_from([node for node in walk_expression(leaf.value) if not isinstance(node, Literal)]))
        operands = self.draw(st.permutations(node.operands)) if isinstance(node, Mul | Add) else [node]
        chosen = operands[: self.draw(st.integers(1, len(operands)))]
        part = show(node.rebuild(tuple(chosen)) if len(chosen) > 1 else chosen[0])
        over = self.draw(st.lists(st.sampled_from(present), max_size=2, unique=True))
        made = [name if self.draw(st.booleans()) else self.new() for name in over]
        return f"precompute({part}, [{', '.join(over)}], [{', '.join(made)}], {self.new()})"


def _nests(program: Program) -> list[list[str]]:
    found, inside = [], set()
    for node in walk(program.statement):
        chain: list[str] = []
        while isinstance(node, Forall) and id(node) not in inside:
            inside.add(id(node))
            chain.append(node.index)
            node = node.body
        if chain:
            found.append(chain)
    return found or [[]]


@st.composite
def scheduled(draw: st.DrawFn) -> tuple[str, Meaning, str, str, list[str]]:
    """Draw an expression and a schedule from which refused directives were dropped."""
    expression, meaning, formats = draw(st.sampled_from(EXPRESSIONS))
    sparse = next(access.tensor for access in accesses(parse(expression).value))
    form = draw(st.sampled_from(formats))
    found = default_program(expression, {sparse: form})
    drawer, kept, program = Drawer(draw), [], found.program
    for _ in range(draw(st.integers(1, 7))):
        proposed = drawer.directive(program)
        with contextlib.suppress(ScheduleError):
            program = apply_schedule(found.program, "; ".join([*kept, proposed]), found.formats)
            kept.append(proposed)
    return expression, meaning, sparse, form, kept


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(scheduled(), st.integers(0, 20))
def test_random_schedules_preserve_the_result(case: tuple[str, Meaning, str, str, list[str]], seed: int) -> None:
    expression, meaning, sparse, form, schedule = case
    found = default_program(expression, {sparse: form})
    arrays = inputs(expression, seed, sparse)
    expected = reference(meaning, arrays)
    check(apply_schedule(found.program, "; ".join(schedule), found.formats), found, arrays, expected)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("expression", "meaning", "formats"), EXPRESSIONS)
def test_default_programs(expression: str, meaning: Meaning, formats: list[str], seed: int) -> None:
    sparse = next(access.tensor for access in accesses(parse(expression).value))
    found = default_program(expression, {sparse: formats[0]})
    arrays = inputs(expression, seed, sparse)
    check(found.program, found, arrays, reference(meaning, arrays))
