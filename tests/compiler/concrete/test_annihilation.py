"""One rule says where expressions have values: counting, legality, the schedule space and lowering agree with the boolean definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain, combinations
from random import Random

import numpy as np
import pytest
from sparsetune.compiler.concrete.annihilation import Patterns
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.concrete.lattice import (
    EVERYWHERE,
    NOWHERE,
    Domain,
    Stored,
    cover,
    is_everywhere,
    is_nowhere,
    points,
    stored_operands,
)
from sparsetune.compiler.concrete.lattice_size import cases
from sparsetune.compiler.concrete.nodes import Forall, walk
from sparsetune.compiler.concrete.sharing import shared_operand
from sparsetune.compiler.format import Format
from sparsetune.compiler.lowering import coiterate
from sparsetune.compiler.notation.nodes import Access, Add, Div, Expr, Literal, Mul, Neg, accesses, index_subscript
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.context import Context
from sparsetune.compiler.schedule.iteration import Iteration
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor

SEEDS = range(400)
SPARSE, DENSE = ("s", "t", "u"), ("a", "b")
CONSTANTS = (0, 1, 2, -0.0, math.inf, math.nan)
IDENTITY = {"+": 0, "or": 0, "min": math.inf, "max": -math.inf}
Present = frozenset[str]


def drawn(rng: Random, depth: int = 3, add: str = "+") -> Expr:
    """Return a random expression over vectors."""
    kind = rng.choice(("leaf", "leaf", "constant", "minus", "sum", "product", "quotient")) if depth else "leaf"
    below = [drawn(rng, depth - 1, add) for _ in range(rng.choice((2, 2, 3)))] if depth else []
    match kind:
        case "leaf":
            return Access(rng.choice((*SPARSE, *SPARSE, *DENSE)), (index_subscript("i"),))
        case "constant":
            return Literal(rng.choice(CONSTANTS))
        case "minus" if add == "+":
            return Neg(below[0])
        case "quotient" if add == "+":
            return Div(below[0], below[1])
        case "sum":
            return Add(tuple(below))
        case _:
            return Mul(tuple(below))


def number(value: Expr) -> float | None:
    """Return what an expression without accesses is worth, None where it reads something."""
    match value:
        case Literal(found):
            return float(found)
        case Access():
            return None
        case Neg(operand):
            return None if (inner := number(operand)) is None else -inner
    parts = [number(child) for child in value.children]
    if None in parts:
        return None
    first, *rest = [part for part in parts if part is not None]
    for other in rest:
        match value:
            case Add():
                first += other
            case Mul():
                first *= other
            case _:
                first = first / other if other else math.nan if first == 0 or math.isnan(first) else math.inf
    return first


def present(value: Expr, there: Present, add: str, complete: bool) -> bool:
    """Whether an expression has a value where some sparse operands are stored, as the definition says it (DESIGN 4.5)."""

    def inner(part: Expr) -> bool:
        return present(part, there, add, complete)

    match value:
        case Literal(constant):
            return constant != IDENTITY[add]
        case Access(tensor):
            return tensor in DENSE or tensor in there
        case Neg(operand):
            return inner(operand)
        case Add(operands):
            return any(map(inner, operands))
        case Mul(operands):
            return all(inner(operand) for operand in operands if number(operand) is None)
        case Div(above, below):
            if (divisor := number(below)) is not None:
                return number(above) is not None or inner(above) or divisor == 0 or math.isnan(divisor)
            return complete or inner(above) or not inner(below)
    raise TypeError(value)


def names(value: Expr) -> list[str]:
    return [name for name in SPARSE if name in {access.tensor for access in accesses(value)}]


def subsets(value: Expr) -> Iterator[Present]:
    own = names(value)
    return map(frozenset, chain.from_iterable(combinations(own, count) for count in range(len(own) + 1)))


def atoms(access: Access) -> Domain:
    return EVERYWHERE if access.tensor in DENSE else Stored(access)


def decided(there: Present) -> Callable[[Access], Domain]:
    return lambda access: EVERYWHERE if access.tensor in (*DENSE, *there) else NOWHERE


@pytest.mark.parametrize("add", ["+", "min", "max", "or"])
@pytest.mark.parametrize("complete", [False, True])
def test_what_is_left_is_what_the_definition_keeps(add: str, complete: bool) -> None:
    """Where everything is known, something is left just where there is a value; what is left has it there too."""
    for seed in SEEDS:
        value = drawn(Random(seed), add=add)
        for there in subsets(value):
            left, domain = Patterns(decided(there), add).left(value, lambda: complete)
            wanted = present(value, there, add, complete)
            assert (left is not None, is_nowhere(domain), is_everywhere(domain)) == (wanted, not wanted, wanted), (seed, show(value), there)
            assert left is None or present(left, there, add, complete), (seed, show(value), show(left))


@pytest.mark.parametrize("add", ["+", "min"])
@pytest.mark.parametrize("complete", [False, True])
def test_loops_visit_every_coordinate_that_has_a_value(add: str, complete: bool) -> None:
    """A lattice has a point below every set of stored operands at which there is a value, and no point that never has one."""
    for seed in SEEDS:
        value = drawn(Random(seed), add=add)
        domain = Patterns(atoms, add).expression(value, lambda: complete)
        lattice = [frozenset(access.tensor for access in point) for point in points(cover(domain))]
        for there in subsets(value):
            visited = any(point <= there for point in lattice)
            assert visited or not present(value, there, add, complete), (seed, show(value), there)
        if not any(isinstance(node, Div) for node in _nodes(value)):  # what is monotone is visited where it has a value only
            assert all(present(value, point, add, complete) for point in lattice), (seed, show(value))
        assert not is_nowhere(domain) or not any(present(value, there, add, complete) for there in subsets(value))


def _nodes(value: Expr) -> Iterator[Expr]:
    yield value
    for child in value.children:
        yield from _nodes(child)


def test_cases_are_counted_as_the_definition_has_them() -> None:
    """Where each operand is read once: a loop for every union of minimal sets, a case for each of those in it; one loop over everything."""
    counted = 0
    for seed in SEEDS:
        value = drawn(Random(seed))
        read = [access.tensor for access in accesses(value)]
        if any(isinstance(node, Div | Literal) for node in _nodes(value)) or len(read) != len(set(read)):
            continue
        values = [there for there in subsets(value) if present(value, there, "+", False)]
        least = {there for there in values if not any(other < there for other in values)}
        unions = {frozenset[str]().union(*chosen) for size in range(1, len(least) + 1) for chosen in combinations(least, size)}
        formats = {name: Format(("compressed" if name in SPARSE else "dense",)) for name in (*SPARSE, *DENSE)}
        found = cases(value, ("i",), formats, 1000)
        if not set(read) & set(DENSE):
            assert found == sum(case <= loop for loop in unions for case in unions), (seed, show(value))
            counted += 1
        elif frozenset() in least:  # the operands that stand beside what is everywhere are cases of one loop
            assert found == len(points(cover(Patterns(atoms).expression(value))))
    assert counted > 30


def test_a_sparse_result_shares_a_pattern_that_is_the_operands() -> None:
    target, form = Access("y", (index_subscript("i"),)), Format(("compressed",))
    formats = {name: Format(("compressed" if name in SPARSE else "dense",)) for name in (*SPARSE, *DENSE)}
    shared = 0
    for seed in SEEDS:
        value = drawn(Random(seed))
        operand = shared_operand(target, form, value, formats)
        if operand is not None:
            shared += 1
            assert all(present(value, there, "+", False) == (operand.tensor in there) for there in subsets(value)), (seed, show(value))
    assert shared > 20


FORMS = ({"A": "csr", "B": "csr"}, {"A": "dcsr", "B": "csr", "y": "dense"}, {"A": "dcsr", "B": "dcsr", "s": "compressed"})
MATRICES = ("A(i,j)", "B(i,j)", "s(i)", "C(i,j)", "d(j)")


def written(rng: Random, depth: int = 2) -> str:
    """Return a random expression over matrices and vectors."""
    kind = rng.choice(("leaf", "leaf", "constant", "minus", "sum", "product", "quotient")) if depth else "leaf"
    left, right = (written(rng, depth - 1) for _ in range(2)) if depth else ("", "")
    match kind:
        case "leaf":
            return rng.choice(MATRICES)
        case "constant":
            return rng.choice(("0", "1", "2.5"))
        case "minus":
            return f"(-{left})"
        case "sum":
            return f"({left} + {right})"
        case "quotient":
            return f"({left} / {right})"
        case _:
            return f"{left} * {right}"


@pytest.mark.parametrize("seed", range(60))
def test_legality_and_lowering_see_the_same_lattice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What legality says of a loop holds of all the loops that lowering makes of it, one for each case of those outside."""
    rng = Random(seed)
    text = f"Y(i,j) = A(i,j) * 0 + {written(rng)}" if seed % 2 else f"y(i) = A(i,j) * {written(rng)}"
    named = {access.tensor for access in accesses(parse(text).value)} | {text[0]}
    chosen = {name: form for name, form in FORMS[seed % 3].items() if name in named}
    formats = formats_of(parse(text), chosen)
    program = concretize(parse(text), formats).program
    context = Context(formats, {})
    said: dict[str, Domain] = {}
    for node in walk(program.statement):
        if isinstance(node, Forall):
            said.setdefault(node.index, Iteration(program, context).stepped(node.body, (node.index,), (node.index,)))
    made: list[tuple[str, Domain]] = []
    strategy = coiterate._strategy

    def noting(*given: object) -> object:
        made.append((str(given[2]), given[6]))  # type: ignore[arg-type]
        return strategy(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(coiterate, "_strategy", noting)
    assert compile_kernel(text, chosen).default_kernel.spec
    loops = [node.index for node in walk(program.statement) if isinstance(node, Forall)]
    for index, found in made:
        if loops.count(index) == 1:  # else branches of the program treat it differently
            assert set(stored_operands(found)) <= set(stored_operands(said[index])), (text, index)
            assert is_everywhere(said[index]) or not is_everywhere(found) or found == NOWHERE, (text, index, found, said[index])


@pytest.mark.parametrize("text", ["y(i) = 2 + s(i) - 2", "y(i) = 0 * (s(i) + 2)"])
def test_constants_that_cancel_are_stored_whatever_the_schedule(text: str) -> None:
    stored = np.array([0, 1, 0, 3.0])
    for schedule in ("", "addends(2, s(i) - 2)" if "-" in text else "addends(0 * s(i), 0 * 2)", "precompute(s(i) + 2, i, i, w)"):
        kernel = compile_kernel(text, {"s": "s", "y": "s"}, schedule=schedule)
        result = kernel(s=tensor(stored, "s"))
        assert isinstance(result, Tensor)
        assert result.nnz == len(stored), schedule
        assert np.array_equal(result.to_numpy(), stored if "-" in text else np.zeros(4))
