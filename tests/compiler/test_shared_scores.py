"""What stands several times in a sequence of expressions, and has a value for each entry of a sparse operand, is computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler import evaluate_all as module
from sparsetune.compiler.notation.common_products import common_products, replaced
from sparsetune.compiler.notation.nodes import Access
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show

ALONE = {"output_format": None, "schedule": "auto", "target": "cpu"}
SCORE = "A(i,j) * exp(where(u(i) + v(j) > 0, u(i) + v(j), 0.2 * (u(i) + v(j))))"
OTHER = "A(p,q) * exp(where(v(q) + u(p) > 0, u(p) + v(q), 0.2 * (u(p) + v(q))))"
LAYER = [f"n(i) = {SCORE}", f"Y(p,k) = {OTHER} * H(q,k) / n(p)"]


def problem(form: Any = "csr", dtype: str = "float64") -> dict[str, Any]:
    rng = np.random.default_rng(1)
    links = sp.random_array((150, 150), density=0.1, format="csr", rng=rng)
    links.data[:] = 1
    dense = {"u": rng.standard_normal(150), "v": rng.standard_normal(150), "H": rng.standard_normal((150, 8))}
    return {"A": st.tensor(links, form, dtype=dtype), **{name: array.astype(dtype) for name, array in dense.items()}}


def layer(operands: dict[str, Any]) -> tuple[Any, Any]:
    """The expressions of ``LAYER`` by NumPy."""
    score = operands["u"][:, None] + operands["v"]
    found = operands["A"].to_numpy() * np.exp(np.where(score > 0, score, 0.2 * score))
    with np.errstate(invalid="ignore"):
        return found.sum(1), found @ operands["H"] / found.sum(1)[:, None]


def computed(expressions: list[str], operands: dict[str, Any], **options: Any) -> tuple[list[str], list[Any]]:
    """The expressions that are computed one by one, and the results."""
    made: list[str] = []

    def compute(text: str, given: Any, **own: Any) -> Any:
        made.append(text)
        return st.evaluate(text, given, **{name: own[name] for name in ("output_format", "schedule", "semiring", "dtype") if name in own})

    return made, module.evaluate_all(expressions, operands, compute, {**ALONE, **options})


@pytest.mark.cc
@pytest.mark.parametrize("form", ["csr", "csc", "dcsr"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scores_of_a_layer_are_computed_once(form: str, dtype: str) -> None:
    operands = problem(form, dtype)
    made, results = computed(LAYER, operands)
    assert [text.count("exp") for text in made] == [1, 0, 0]
    assert len(results) == 2
    for found, expected in zip(results, layer(operands), strict=True):
        assert found.dtype == dtype
        assert np.allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-12, equal_nan=True)


@pytest.mark.cc
def test_calls_that_come_again_read_what_is_there_now() -> None:
    for scale in (1.0, 2.0, 3.0, 4.0):
        operands = problem()
        operands["u"] = operands["u"] * scale
        for given in (operands, {**operands, "A": operands["A"].to_scipy()}):
            for found, expected in zip(st.evaluate_all(LAYER, given), layer(operands), strict=True):
                assert np.allclose(found, expected, equal_nan=True)


@pytest.mark.cc
def test_a_result_that_is_what_others_need_is_read_by_them() -> None:
    operands = problem()
    made, (whole, total, result) = computed([f"E(i,j) = {SCORE}", *LAYER], operands, output_format={"E": "csr"})
    assert made == [f"E(i,j) = {SCORE}", "n(i) = E(i,j)", "Y(p,k) = E(p,q) * H(q,k) / n(p)"]
    assert np.allclose(whole.to_numpy().sum(1), total)
    assert np.allclose(result, layer(operands)[1], equal_nan=True)


@pytest.mark.cc
def test_inner_products_that_stand_twice_are_sampled_once() -> None:
    rng = np.random.default_rng(2)
    operands = problem()
    del operands["u"], operands["v"]
    operands |= {"Q": rng.random((150, 32)), "K": rng.random((150, 32))}
    texts = ["s(i) = A(i,j) * Q(i,d) * K(j,d)", "O(i,f) = K(j,e) * A(i,j) * Q(i,e) * H(j,f)"]
    made, (sums, result) = computed(texts, operands)
    scores = operands["A"].to_numpy() * (operands["Q"] @ operands["K"].T)
    assert len(made) == 3
    assert np.allclose(sums, scores.sum(1))
    assert np.allclose(result, scores @ operands["H"])
    texts = ["s(i) = A(i,j) * exp(Q(i,d) * K(j,d) / 32)", "O(i,f) = relu(A(i,j) * exp(Q(i,e) * K(j,e) / 32) * H(j,f))"]
    made, (sums, result) = computed(texts, operands)
    scores = operands["A"].to_numpy() * np.exp(operands["Q"] @ operands["K"].T / 32)
    assert len(made) == 3
    assert np.allclose(sums, scores.sum(1))
    assert np.allclose(result, np.maximum(scores @ operands["H"], 0))


@pytest.mark.cc
@pytest.mark.parametrize(
    ("expressions", "options"),
    [
        (LAYER, {"schedule": "default"}),
        (LAYER, {"schedule": {"n": "default"}}),
        (LAYER, {"dtype": "float64"}),
        (["n(i) = A(i,j) * u(i)", "m(i) = A(i,j) * u(i) * v(j)"], {}),  # a product is computed sooner than kept
        ([f"n(i) = {SCORE}", f"Y(i) = {SCORE.replace('u(i)', 'n(i)')}"], {}),  # of other operands
        ([f"n(i) = {SCORE}", "u(i) += A(i,j) * v(j)", f"Y(i) = {SCORE}"], {}),  # of another u
        ([f"n(i) = {SCORE}", f"Y(i,j) = {SCORE} * H(j,i)"], {"output_format": {"Y": "auto"}}),
    ],
    ids=["default", "one", "dtype", "cheap", "other", "later", "auto"],
)
def test_expressions_stay_as_they_are_written(expressions: list[str], options: dict[str, Any]) -> None:
    used, operands = "".join(expressions), problem()
    if "H(j,i)" in used:
        operands["H"] = np.ones((150, 150))
    made, _ = computed(expressions, {name: data for name, data in operands.items() if f"{name}(" in used}, **options)
    assert made == expressions


@pytest.mark.cc
def test_operands_that_do_not_fit_are_told_of_what_was_written() -> None:
    operands = problem()
    with pytest.raises(st.ShapeError) as caught:
        st.evaluate_all(LAYER, {**operands, "H": operands["H"][:-1]})
    assert "shared" not in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("y(i) = A(i,j) * u(i) * v(j)", "z(b,k) = v(c) * A(b,c) * W(c,k)", {"v(j)"}),
        ("y(i) = A(i,j) * U(i,k) * V(j,k)", "z(i,f) = A(i,j) * U(i,r) * V(j,r) * W(j,f)", {"U(i,k)", "V(j,k)"}),
        ("y(i,k) = A(i,j) * U(i,k) * V(j,k)", "z(i) = A(i,j) * U(i,k) * V(j,k)", set()),  # k is on the left
        ("y(i) = A(i,j) * U(i,k) * V(j,k) * w(k)", "z(i) = A(i,j) * U(i,k) * V(j,k)", set()),  # k stands in another factor
        ("y(i) = A(i,j) * exp(U(i,k)) * V(j,k)", "z(i) = A(i,j) * exp(U(i,k))", set()),  # k is summed inside in one of both
        ("y(i) = sum(k, A(i,j) * U(i,k))", "z(i) = A(i,j) * U(i,k)", set()),  # a sum that binds k takes its terms once for every k
        ("y(i) = A(i,j) * sum(k, U(i,k))", "z(i) = A(i,j) * sum(r, U(i,r))", {"sum(k, U(i,k))"}),
        ("y(i) = A(i,j) * u(j)", "z(i) = A(j,i) * u(j)", set()),
        ("y(i) = A(i,j) * exp(B(i,j))", "z(i) = A(i,j) * exp(B(i,j))", set()),  # B is sparse
        ("y(i) = A(i,i) * u(i)", "z(i) = A(i,i) * u(i)", set()),
        ("y(i) = A(i,j) * u(i + j)", "z(i) = A(i,j) * u(i + j)", set()),
        ("y(i) = tanh(A(i,j) * u(j)) + 1", "z(i) = (A(i,j) * u(j) + b(i)) * c(i)", {"u(j)"}),
    ],
)
def test_what_is_common_to_two_products(first: str, second: str, shared: set[str]) -> None:
    found = common_products([parse(first), parse(second)], frozenset("AB"))
    assert {show(factor) for common in found[:1] for factor in common.factors} == shared


def test_factors_are_replaced_where_they_stand() -> None:
    one, other = parse("y(i) = tanh(A(i,j) * u(j)) + 1"), parse("z(b) = (w(b) * A(b,c) * s * u(c) + b(b)) * c(b)")
    (common,) = common_products([one, other], frozenset("A"))
    made = [
        show(replaced(text.value, use.path, use.places, Access("S", use.base.subscripts)))
        for text, use in zip((one, other), common.uses, strict=True)
    ]
    assert made == ["tanh(S(i,j)) + 1", "(w(b) * S(b,c) * s + b(b)) * c(b)"]
