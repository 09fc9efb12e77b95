"""Several expressions in order, of which later ones read what earlier ones computed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.build import chain
from sparsetune.tuner import lookup

pytestmark = pytest.mark.cc
RNG = np.random.default_rng(0)
MATRIX = sp.random_array((30, 20), density=0.2, format="csr", rng=RNG)
X = RNG.random(20)


def test_results_are_operands_of_what_follows() -> None:
    y, z, norm = st.evaluate_all(
        ["y(i) = A(i,j) * x(j)", "z(j) = A(i,j) * y(i)", "norm = z(j) * z(j)"], {"A": MATRIX, "x": X}, schedule="default"
    )
    assert np.allclose(y, MATRIX @ X)
    assert np.allclose(z, MATRIX.T @ y)
    assert np.isclose(norm, z @ z)


def test_results_stay_in_the_format_in_which_they_were_made() -> None:
    first, second = st.evaluate_all(
        ["S(i,j) = A(i,j) * A(i,j)", "y(i) = S(i,j) * x(j)"], {"A": MATRIX, "x": X},
        output_format={"S": "csr"}, schedule={"y": "parallelize(i, cpu_thread, no_races)"},
    )  # fmt: skip
    assert isinstance(first, st.Tensor)
    assert str(first.format) == str(st.Format("csr"))
    assert isinstance(second, np.ndarray)
    assert np.allclose(second, MATRIX.multiply(MATRIX) @ X)
    both = st.evaluate_all(["S(i,j) = A(i,j) * A(i,j)", "T(i,j) = S(i,j) + A(i,j)"], {"A": MATRIX}, output_format="csr")
    assert all(isinstance(one, st.Tensor) for one in both)


def test_adding_starts_from_the_operand_given() -> None:
    start = RNG.random(30)
    kept = start.copy()
    y, z = st.evaluate_all(["y(i) += A(i,j) * x(j)", "z = y(i) * y(i)"], {"A": MATRIX, "x": X, "y": start})
    assert np.allclose(y, start + MATRIX @ X)
    assert np.isclose(z, y @ y)
    assert np.array_equal(start, kept)


def test_an_operand_may_be_read_before_a_result_takes_its_name() -> None:
    z, y = st.evaluate_all(["z(j) = y(j) * x(j)", "y(i) = A(i,j) * z(j)"], {"A": MATRIX, "x": X, "y": X})
    assert np.allclose(z, X * X)
    assert np.allclose(y, MATRIX @ (X * X))


def test_options_hold_for_all_expressions_that_they_fit() -> None:
    a, b = st.evaluate_all(["a(i,k) = x(i)", "b(k) = x(i) * a(i,k)"], {"x": X.astype("float32")}, shape={"k": 3}, threads=1)
    assert a.shape == (20, 3)
    assert a.dtype == np.float32
    assert np.allclose(b, np.sum(X * X), rtol=1e-5)
    low, far = st.evaluate_all(["m(i) = A(i,j) * x(j)", "f = m(i)"], {"A": MATRIX.toarray(), "x": X}, semiring=("min", "+"))
    assert np.allclose(low, (MATRIX.toarray() + X).min(axis=1))
    assert np.isclose(far, low.min())


def test_nothing_is_computed_for_no_expression() -> None:
    assert st.evaluate_all([], {}) == []


@pytest.mark.parametrize(
    ("expressions", "operands", "options", "message"),
    [
        (["y(i) = A(i,j) * x(j)", "y(j) = A(i,j) * x(j)"], {"A": MATRIX, "x": X}, {}, "expressions 1 and 2 both compute 'y'"),
        (["y(i) = A(i,j) * x(j)", "y(i) += A(i,j) * x(j)"], {"A": MATRIX, "x": X, "y": X}, {}, "both compute 'y'"),
        (["y(i) = A(i,j) * x(j)"], {"A": MATRIX}, {}, "operand 'x' of 'y\\(i\\) = .*' is missing"),
        (["z(i) = y(i)", "y(i) = x(i)"], {"x": X}, {}, "operand 'y' of 'z\\(i\\) = y\\(i\\)' is missing"),
        (["y(i) = x(i)", "z(i) = y(i)"], {"x": X, "y": X}, {}, "operand 'y' is not used in any"),
        (["y(i) = x(i)"], {"x": X}, {"output_format": {"Y": "csr"}}, "output_format names 'Y', which no expression computes"),
        (["y(i) = x(i)"], {"x": X}, {"shape": {"k": 2}}, "index 'k', which no expression has"),
        ("y(i) = x(i)", {"x": X}, {}, "a list of texts, not as str"),
        (["y(i) = x(i)"], [X], {}, "operands are given by name"),
        (["y(i) ="], {"x": X}, {}, "expected a tensor"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_computed(
    expressions: list[str], operands: dict[str, object], options: dict[str, object], message: str
) -> None:
    with pytest.raises(st.ExpressionError, match=message):
        st.evaluate_all(expressions, operands, **options)  # type: ignore[arg-type]


def test_a_matrix_that_comes_again_is_looked_up_once_and_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = sp.random_array((30, 20), density=0.2, format="csr", rng=np.random.default_rng(3))
    softmax = ["E(i,j) = exp(A(i,j))", "S(i) = E(i,j)", "P(i,j) = E(i,j) / S(i)"]

    def check() -> None:
        stored = matrix.toarray() != 0
        expected = np.where(stored, np.exp(matrix.toarray()), 0)
        found = st.evaluate_all(softmax, {"A": matrix}, output_format={"E": "csr", "P": "csr"})[2].to_numpy()
        assert np.allclose(found, expected / np.maximum(expected.sum(1, keepdims=True), 1e-300))

    check()
    looked_up: list[str] = []
    problem = lookup.make_problem
    monkeypatch.setattr(lookup, "make_problem", lambda *given: looked_up.append(given[0]) or problem(*given))
    matrix.data *= 0.5
    check()
    assert not looked_up
    first = slice(int(matrix.indptr[0]), int(matrix.indptr[1]))
    matrix.indices[first] = np.arange(20)[-(first.stop - first.start) :]
    check()
    assert looked_up
    matrix.indices[0] = 99
    with pytest.raises(st.DataError, match="operand 'A'"):
        st.evaluate_all(softmax, {"A": matrix}, output_format={"E": "csr", "P": "csr"})


def test_a_call_that_comes_again_is_not_planned_anew_and_reads_what_is_there_now(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, matrix = ["E(i,j) = exp(A(i,j))", "S(i) = E(i,j)", "P(i,j) = E(i,j) / S(i)"], MATRIX.copy()
    stored = st.tensor(matrix)
    formats = {"E": "csr", "P": "csr"}
    st.evaluate_all(texts, {"A": stored}, output_format=formats)
    monkeypatch.setattr("sparsetune.compiler.evaluate_all._plan", None)
    stored.values[:] *= 2
    again = st.evaluate_all(texts, {"A": stored}, output_format=formats)
    assert np.allclose(again[0].values, np.exp(stored.values))
    assert np.allclose(again[1], np.add.reduceat(np.exp(stored.values), matrix.indptr[:-1]))


SOFTMAX = ["E(i,j) = exp(A(i,j))", "S(i) = E(i,j)", "P(i,j) = E(i,j) / S(i)"]
ROWS = {"E": "csr", "P": "csr"}


def softmax(matrix: sp.csr_array) -> np.ndarray:
    found = np.where(matrix.toarray() != 0, np.exp(matrix.toarray()), 0)
    return found / np.maximum(found.sum(1, keepdims=True), 1e-300)


def test_calls_that_come_again_are_made_as_one_and_look_at_what_comes_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    chained = list[int]()
    whole = chain.Chain.__call__

    def counted(self: chain.Chain, operands: Any, threads: int) -> Any:
        found = whole(self, operands, threads)
        chained.append(0 if found is chain.MISS else len(found))
        return found

    monkeypatch.setattr(chain.Chain, "__call__", counted)
    rng = np.random.default_rng(11)
    one, other = (sp.random_array((30, 20), density=0.2, format="csr", rng=rng) for _ in range(2))
    results = []
    for given in (one, st.tensor(one)):
        for _ in range(4):
            one.data *= 0.9
            results.append((st.evaluate_all(SOFTMAX, {"A": given}, output_format=ROWS), softmax(one)))
    assert chained[-1] == 3
    assert all(np.allclose(found[2].to_numpy(), wanted) for found, wanted in results), "results of earlier calls stay as they were"
    assert results[-1][0][0].levels == results[-1][0][2].levels
    for matrix in (other, one, other, one):
        found = st.evaluate_all(SOFTMAX, {"A": matrix}, output_format=ROWS)
        assert np.allclose(found[2].to_numpy(), softmax(matrix)), "patterns by turns"
    single = st.evaluate_all(SOFTMAX, {"A": one.astype(np.float32)}, output_format=ROWS)
    assert single[2].dtype == np.float32
    assert np.allclose(single[2].to_numpy(), softmax(one), rtol=1e-5)
    alone = st.evaluate_all(SOFTMAX, {"A": one}, output_format=ROWS, threads=1)
    assert np.allclose(alone[2].to_numpy(), softmax(one))


def test_results_that_are_no_memory_of_a_kernel_end_chains() -> None:
    texts = ["s = x(i) * x(i)", "y(i) = x(i) / s", "x2(i) = y(i) + x(i)"]
    for scale in range(1, 5):
        x = np.arange(1.0, 6) * scale
        s, y, x2 = st.evaluate_all(texts, {"x": x})
        assert s == x @ x
        assert np.allclose(y, x / (x @ x))
        assert np.allclose(x2, y + x)


def test_chains_are_made_by_any_number_of_threads() -> None:
    matrices = [sp.random_array((40, 30), density=0.3, format="csr", rng=np.random.default_rng(seed)) for seed in range(4)]
    stored = [st.tensor(matrix) for matrix in matrices]
    wanted = [softmax(matrix) for matrix in matrices]

    def checked(turn: int) -> bool:
        number = turn % len(stored)
        return np.allclose(st.evaluate_all(SOFTMAX, {"A": stored[number]}, output_format=ROWS)[2].to_numpy(), wanted[number])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(checked, range(400)))
