"""Expressions that share partial products are computed in one pass over their sparse operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler import evaluate_all as module
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.concrete.nodes import loops
from sparsetune.compiler.concrete.one_pass import OnePass, Product
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse

pytestmark = pytest.mark.cc
MODES = "ijkl"
ALONE = {"output_format": None, "schedule": "auto", "target": "cpu"}


def mttkrp(order: int) -> list[str]:
    """All modes; results are called Yi, Yj ..."""
    own = MODES[:order]
    factors = {mode: " * ".join(f"F{other}({other},r)" for other in own if other != mode) for mode in own}
    return [f"Y{mode}({mode},r) = B({','.join(own)}) * {factors[mode]}" for mode in own]


def ttmc(order: int) -> list[str]:
    own = MODES[:order]
    made = []
    for mode in own:
        others = [other for other in own if other != mode]
        inner = " * ".join(f"F{other}({other},r{other})" for other in others)
        made.append(f"Y{mode}({mode},{','.join('r' + other for other in others)}) = {inner} * B({','.join(own)})")
    return made


def problem(shape: tuple[int, ...], entries: int, columns: int, format: Any = "csf", dtype: str = "float64") -> dict[str, Any]:
    rng = np.random.default_rng(len(shape))
    places = np.unravel_index(rng.choice(np.prod(shape), entries, replace=False), shape)
    values = rng.integers(1, 9, entries).astype(dtype)
    factors = {f"F{mode}": rng.integers(0, 9, (extent, columns)).astype(dtype) for mode, extent in zip(MODES, shape, strict=False)}
    return {"B": st.tensor((np.array(places), values), format=format, shape=shape), **factors}


def alone(text: str, operands: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The expression by NumPy, on dense arrays."""
    assignment = parse(text)
    names = sorted({name for access in accesses(assignment.value) for name in access.indices})
    letters = dict(zip(names, "abcdefghijklmnop", strict=False))
    terms = ["".join(letters[name] for name in access.indices) for access in (*accesses(assignment.value), assignment.target)]
    arrays = [operands[access.tensor] for access in accesses(assignment.value)]
    dense = [array.to_numpy() if isinstance(array, st.Tensor) else array for array in arrays]
    return np.einsum(",".join(terms[:-1]) + "->" + terms[-1], *dense, optimize=True)


def in_one_pass(expressions: Sequence[str], operands: dict[str, Any], **options: Any) -> list[Any]:
    """Results of expressions, none of which may be computed alone."""

    def compute(text: str, *_: object, **__: object) -> object:
        raise AssertionError(f"{text} was computed alone")

    return module.evaluate_all(expressions, operands, compute, {**ALONE, **options})


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("shape", "entries", "columns", "expressions", "format", "dtype"),
    [
        ((60, 40, 50), 100_000, 16, mttkrp(3), "csf", "float64"),
        ((60, 40, 50), 100_000, 16, mttkrp(3), st.Format("dense, compressed, compressed", order=(2, 0, 1)), "float32"),
        ((60, 40, 50), 100_000, 16, mttkrp(3), st.Format("compressed, dense, compressed", order=(1, 0, 2)), "int64"),
        ((20, 12, 14, 30), 90_000, 8, mttkrp(4), "csf", "float64"),
        ((20, 20, 150), 55_000, 16, ttmc(3)[:2], "csf", "float64"),
        ((10, 8, 7, 150), 75_000, 6, ttmc(4)[:3], "csf", "float64"),
    ],
)
def test_all_modes_are_computed_in_one_pass(
    shape: tuple[int, ...], entries: int, columns: int, expressions: list[str], format: Any, dtype: str, threads: int
) -> None:
    operands = problem(shape, entries, columns, format, dtype)
    results = in_one_pass(expressions, operands, threads=threads)
    for text, result in zip(expressions, results, strict=True):
        assert result.dtype == dtype
        assert np.array_equal(result, alone(text, operands))


def test_other_names_of_indices_and_other_orders_of_factors_are_the_same_products() -> None:
    operands = problem((60, 40, 50), 100_000, 16)
    expressions = ["Y(i,r) = B(i,j,k) * Fj(j,r) * Fk(k,r)", "Z(b,r) = Fk(c,r) * Fi(a,r) * B(a,b,c)"]
    first, second = in_one_pass(expressions, operands)
    assert np.array_equal(first, alone(expressions[0], operands))
    assert np.array_equal(second, alone(expressions[1], operands))


def test_a_semiring_has_its_own_sums() -> None:
    operands = problem((60, 40, 50), 100_000, 16)
    results = in_one_pass(mttkrp(3), operands, semiring=("min", "+"))
    for text, result in zip(mttkrp(3), results, strict=True):
        names = [access.tensor for access in accesses(parse(text).value)]
        assert np.array_equal(result, st.evaluate(text, {name: operands[name] for name in names}, semiring=("min", "+")))


def test_what_reads_an_earlier_result_comes_after_it() -> None:
    operands = problem((60, 40, 50), 100_000, 16)
    first, _, last = mttkrp(3)
    expressions = [first, "Z(j,r) = B(i,j,k) * Yi(i,r) * Fk(k,r)", last]
    results = st.evaluate_all(expressions, operands)
    assert np.array_equal(results[0], alone(first, operands))
    assert np.array_equal(results[1], alone(expressions[1], {**operands, "Yi": results[0]}))
    assert np.array_equal(results[2], alone(last, operands))
    swept = ["Fi(i,r) = B(i,j,k) * Fj(j,r) * Fk(k,r)", "Z(j,r) = B(i,j,k) * Fi(i,r) * Fk(k,r)"]
    mode, after = st.evaluate_all(swept, {name: operands[name] for name in ("B", "Fj", "Fk")})
    assert np.array_equal(after, alone(swept[1], {**operands, "Fi": mode}))


@pytest.mark.parametrize("options", [{"schedule": {"Yi": "default"}}, {"output_format": {"Yi": "csr"}}, {"dtype": "float64"}])
def test_what_is_said_of_one_expression_holds(options: dict[str, Any]) -> None:
    operands, computed = problem((60, 40, 50), 100_000, 16), list[str]()

    def compute(text: str, *given: Any, **own: Any) -> Any:
        computed.append(text)
        return st.evaluate(text, *given, **{name: value for name, value in own.items() if name in ("schedule", "output_format", "dtype")})

    module.evaluate_all(mttkrp(3), operands, compute, {**ALONE, **options})
    assert mttkrp(3)[0] in computed


def test_what_goes_together_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    operands, others = problem((60, 40, 50), 100_000, 16), problem((60, 40, 50), 100_000, 16)
    others["Fi"] = others["Fi"] + 1
    in_one_pass(mttkrp(3), operands)

    def judged_again(*_: object) -> object:
        raise AssertionError("what is shared was counted again")

    monkeypatch.setattr(OnePass, "work", judged_again)
    for text, result in zip(mttkrp(3), in_one_pass(mttkrp(3), others), strict=True):
        assert np.array_equal(result, alone(text, others))


def test_a_pass_that_comes_again_is_made_at_once_and_reads_what_is_there_now(monkeypatch: pytest.MonkeyPatch) -> None:
    operands = problem((60, 40, 50), 20_000, 16)
    expressions = [*mttkrp(3), "s(r) = Yi(i,r) * Yj(j,r)"]
    for _ in range(2):
        st.evaluate_all(expressions, operands)

    def bound_again(*_: object, **__: object) -> object:
        raise AssertionError("operands were looked at as if nothing were known")

    monkeypatch.setattr(TypedKernel, "bind_operands", bound_again)
    earlier: list[Any] = []
    for scale in (1.0, 2.0, 3.0):
        others = {**operands, "Fj": operands["Fj"] * scale, "B": operands["B"].with_values(operands["B"].values + scale)}
        earlier.append((others, st.evaluate_all(expressions, others)))
    for others, results in earlier:
        for text, result in zip(mttkrp(3), results, strict=False):
            assert np.array_equal(result, alone(text, others))
        assert np.array_equal(results[3], np.einsum("ir,jr->r", results[0], results[1]))


def test_what_would_not_gain_is_left_out_with_what_it_alone_reads() -> None:
    operands = problem((60, 40, 50), 100_000, 16)
    operands["G"] = np.arange(40.0 * 150).reshape(40, 150)
    first, *others = mttkrp(3)
    expressions = [first, "Z(i,k,s) = B(i,j,k) * G(j,s)", *others]
    results = st.evaluate_all(expressions, operands)
    for text, result in zip(expressions, results, strict=True):
        assert np.array_equal(result, alone(text, operands))


def test_nothing_goes_together_where_it_would_not_pay() -> None:
    computed = list[str]()
    for entries, columns in ((4, 16), (10, 1)):  # too little to save
        operands = problem((60, 40, 50), entries, columns)
        module.evaluate_all(mttkrp(3), operands, lambda text, *_, **__: computed.append(text), ALONE)
    assert computed == [*mttkrp(3), *mttkrp(3)]
    operands = {"B": st.tensor(np.ones((60, 60, 60)), "csf"), "F": np.ones((60, 100)), "G": np.ones((60, 100))}
    computed.clear()
    nothing_shared = ["Y(j,k,r) = B(i,j,k) * F(i,r)", "Z(i,k,s) = B(i,j,k) * G(j,s)"]
    module.evaluate_all(nothing_shared, operands, lambda text, *_, **__: computed.append(text), ALONE)
    assert computed == nothing_shared


def test_extents_that_disagree_are_told_of_one_expression() -> None:
    operands = problem((60, 40, 50), 100_000, 16)
    with pytest.raises(st.ShapeError, match="index 'k' has two extents"):
        st.evaluate_all(mttkrp(3), {**operands, "Fk": operands["Fk"][:-1]})


@pytest.mark.parametrize("order", [3, 4])
def test_partial_products_are_kept_for_one_node_at_a_time(order: int) -> None:
    """No workspace ranges over an index of the operand, and there is less to add up."""
    parsed = [parse(text) for text in mttkrp(order)]
    operand = accesses(parsed[0].value)[0]
    products = [Product(one.target, accesses(one.value)[1:]) for one in parsed]
    every = OnePass(operand, MODES[:order], products, set())
    program = every.program()
    assert all(workspace.indices == ("r",) for workspace in program.workspaces)
    assert {*loops(program.statement)} == {*MODES[:order], "r"}
    nodes = [1, 10, 100, 1_000, 30_000] if order == 4 else [1, 10, 100, 30_000]
    each = [OnePass(operand, MODES[:order], [product], set()).work(nodes, {"r": 16}) for product in products]
    assert every.work(nodes, {"r": 16}) <= 0.75 * sum(each)
