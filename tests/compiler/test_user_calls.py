"""Mistakes of users end in one clear line of the right kind; odd but sound calls give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import DataError, ExpressionError, FormatError, ScheduleError, ShapeError

RNG = np.random.default_rng(8)
A: Any = sp.random_array((6, 5), density=0.4, format="csr", rng=RNG)
S: Any = sp.random_array((6, 6), density=0.4, format="csr", rng=RNG)
B: Any = sp.random_array((6, 6), density=0.5, format="csr", rng=RNG)
X, D, E = RNG.random(5), S.toarray(), B.toarray()
MASKED: Any = np.ma.array([1, 2], mask=[False, True])
LEGACY: Any = np.asmatrix(A.toarray())
SPMV = "y(i) = A(i,j) * x(j)"
BOTH = {"A": A, "x": X}

MISTAKES: list[tuple[Any, ...]] = [
    (SPMV, {"A": A}, {}, ExpressionError, "operand 'x' .* is missing"),
    (SPMV, {**BOTH, "z": X}, {}, ExpressionError, "operand 'z' is not used"),
    (SPMV, [A, X], {}, ExpressionError, "operands are given by name"),
    (SPMV, {"A": X, "x": X}, {}, ShapeError, "'A' has 1 modes"),
    (SPMV, {"A": A, "x": X[:4]}, {}, ShapeError, "index 'j' has two extents"),
    (SPMV, {"A": A, "x": X[:, None]}, {}, ShapeError, "'x' has 2 modes"),
    (SPMV, BOTH, {"shape": {"i": 3}}, ShapeError, "index 'i' has two extents"),
    (SPMV, BOTH, {"shape": {"z": 3}}, ExpressionError, "index 'z'"),
    (SPMV, BOTH, {"shape": {"i": -3}}, ExpressionError, "must be a whole number"),
    (SPMV, BOTH, {"shape": {"i": 10**30}}, ExpressionError, "from 0 to 9223372036854775807"),
    (SPMV, BOTH, {"shape": {"i": -(10**30)}}, ExpressionError, "from 0 to 9223372036854775807"),
    (SPMV, BOTH, {"shape": (3,)}, ExpressionError, "given by index"),
    (SPMV, BOTH, {"semiring": ("foo", "*")}, ExpressionError, "unknown semiring"),
    (SPMV, BOTH, {"semiring": ("*", "+")}, ExpressionError, "is no semiring"),
    ("y(i) = A(i,j) - x(j)", BOTH, {"semiring": ("min", "+")}, ExpressionError, "no meaning where the sum is min"),
    (SPMV, BOTH, {"output_format": "foo"}, FormatError, "unknown format 'foo'"),
    (SPMV, BOTH, {"output_format": "csr"}, FormatError, "for matrices"),
    (SPMV, BOTH, {"output_format": 3}, FormatError, "not int"),
    (SPMV, BOTH, {"dtype": "foo"}, DataError, "not known to NumPy"),
    (SPMV, BOTH, {"dtype": "float16"}, DataError, "no kernel computes with values of type float16; kernels take float64"),
    (SPMV, BOTH, {"dtype": "complex128"}, DataError, "complex128"),
    (SPMV, BOTH, {"threads": 0}, DataError, "threads"),
    (SPMV, BOTH, {"threads": True}, DataError, "threads"),
    (SPMV, BOTH, {"target": "gpu"}, ScheduleError, "target 'gpu'"),
    (SPMV, BOTH, {"convert": "x"}, ScheduleError, "'auto' or 'never'"),
    (SPMV, BOTH, {"schedule": "foo"}, ScheduleError, "no directive 'foo'"),
    (SPMV, BOTH, {"schedule": None}, ScheduleError, "a schedule is text"),
    ("C(i,j) = A(i,j) * A(j,i)", {"A": A}, {}, ShapeError, "mode 1 of operand 'A' has 5, but mode 0 of operand 'A' has 6"),
    ("A(i,j) = 2", {}, {}, ShapeError, "no operand .* says how far index 'i' goes"),
    ("C(i,j) += S(i,j)", {"S": S}, {}, ExpressionError, "operand 'C' .* is missing"),
    ("C(i,j) = S(i,j)", {"S": np.eye(3)}, {"output_format": "dense, singleton"}, FormatError, "cannot hold these entries"),
    ("y = b", {"b": None}, {}, DataError, "'b'.*NoneType"),
    ("y = b", {"b": 10**30}, {}, DataError, "object"),
    ("y(i) = b(i,j)", {"b": [[1, 2], [3]]}, {}, DataError, "'b'.*list"),
    ("y(i) = b(i)", {"b": np.ones(3, np.float16)}, {}, DataError, "float16"),
    ("y(i) = b(i)", {"b": MASKED}, {}, DataError, "masked"),
    (None, {}, {}, ExpressionError, "must be a string"),
    ("", {}, {}, ExpressionError, "is empty"),
    ("A(i,j)", {"A": A}, {}, ExpressionError, "expected '=' or"),
    ("y(i) = (A(i,j)", {"A": A}, {}, ExpressionError, "to close the parenthesis"),
    ("y(i) = 2x(i)", {"x": X}, {}, ExpressionError, r"expected an operator .*; write y\(i\) = 2 \* x\(i\) \(column 9"),
    ("y_i = A_ij x_j", BOTH, {}, ExpressionError, r"found 'x_j'; write y\(i\) = A\(i,j\) \* x\(j\) \(column 12"),
    ("y_i = sum_j A_ij x_j", BOTH, {}, ExpressionError, r"; write y\(i\) = sum\(j, A\(i,j\) \* x\(j\)\) \(column 13"),
    ("y(i) = exp A(i,j)", BOTH, {}, ExpressionError, r"found 'A'; write y\(i\) = exp\(A\(i,j\)\) \(column 12"),
    ("y(i) = A(i,j) x(j)", BOTH, {}, ExpressionError, r"; write y\(i\) = A\(i,j\) \* x\(j\)"),
    ("y(i) = A(i,j) x(j))", BOTH, {}, ExpressionError, r"found 'x' \(column 15"),
    ("y_i = A_ij * x_j", BOTH, {}, ExpressionError, r"operand 'A_ij' .* is missing; indices stand in brackets, A\(i,j\)"),
    ("y = A_1 * x", {"x": X}, {}, ExpressionError, "operand 'A_1' .* is missing; give it by its name"),
    ("y_{i} = A_{ij} x_j", BOTH, {}, ExpressionError, r"character '\{'; indices stand in brackets: y\(i\)"),
    ("y = A @ x", BOTH, {}, ExpressionError, "character '@'; products name their indices"),
    (SPMV, BOTH, {"output_format": "crs"}, FormatError, r"did you mean 'csr'\?"),
    ("y(i) = x(i) ** 2", {"x": X}, {}, ExpressionError, "column 14"),
    ("y(i) = exp(x(i)", {"x": X}, {}, ExpressionError, "close the arguments of exp"),
    ("y(i) = exp(x(i), 2)", {"x": X}, {}, ExpressionError, "exp takes 1 argument, not 2"),
    ("y(i) = exp(i)", {"x": X}, {}, ExpressionError, "operand 'exp' .* is missing"),
    ("y(i) = x(i) < x(i) < 2", {"x": X}, {}, ExpressionError, "comparisons do not chain"),
    ("y(i) = sum(i, x(i))", {"x": X}, {}, ExpressionError, "index i is on the left"),
    ("y = sum(j, x(i))", {"x": X}, {}, ExpressionError, "nothing that is summed over j"),
    ("y = sum(2, x(i))", {"x": X}, {}, ExpressionError, "sum takes indices and then"),
    ("y(i) = exp(x(i))", {"x": X}, {"semiring": ("min", "+")}, ExpressionError, r"'exp' has no meaning with the semiring \(min, \+\)"),
    ("y(i) = pow(n(i), n(i))", {"n": np.arange(3)}, {}, DataError, "a power of whole numbers has a constant exponent"),
    ("y(i) = exp(x(i))", {"x": X}, {"schedule": "addends(2 * exp(x(i)))"}, ScheduleError, "do not sum up to the right-hand side"),
    ("y(i,i) = A(i,j)", {"A": A}, {}, ExpressionError, "stands twice"),
    ("A(i,j) = A(i,j)", {"A": A}, {}, ExpressionError, "cannot be read"),
    ("y(i) = A(i,j) * A(j)", {"A": A}, {}, ExpressionError, "1 subscripts here and 2"),
    ("y(i) = A(i,A)", {"A": A}, {}, ExpressionError, "both a tensor and an index"),
]


@pytest.mark.parametrize(("expression", "operands", "keywords", "error", "says"), MISTAKES)
def test_mistakes_end_in_one_line(expression: Any, operands: Any, keywords: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        st.evaluate(expression, operands, **{"schedule": "default", **keywords})
    assert len(str(caught.value).splitlines()[0]) < 300


def test_operands_without_a_name_are_refused_with_the_names_to_give() -> None:
    k: Any = st.compile(SPMV, {"A": "csr"})
    for call in (k, k.bind):
        with pytest.raises(ExpressionError, match=r"2 operands without a name; operands are given by name: k\(A=\.\.\., x=\.\.\.\)"):
            call(A, X)


def test_formats_of_matrices_have_names() -> None:
    assert st.Format("csr") == st.Format("dense, compressed")
    assert st.Format("CSC") == st.Format("ds", order=(1, 0))
    assert st.Format("dcsr", order=(1, 0)) == st.Format("dcsc")
    assert st.tensor(A, st.Format("csr")).format == st.tensor(A, "csr").format
    for text, meant in (("crs", "csr"), ("cfs", "csf"), ("csrr", "csr"), ("densee", "dense")):
        with pytest.raises(FormatError, match=rf"did you mean '{meant}'\?"):
            st.Format(text)
    for text, says in (("csf", "as many levels as its tensor has modes"), ("densee", "'dense'")):
        with pytest.raises(FormatError, match=says):
            st.Format(text)


SOUND: list[tuple[Any, ...]] = [
    ("C(i,j) = S(i,j) * S(j,i)", {"S": S}, {"output_format": "csr"}, D * D.T),
    ("C(i,j) = S(i,j) + S(j,i)", {"S": S}, {"output_format": "csc"}, D + D.T),
    ("c = S(i,j) * S(j,i)", {"S": S}, {}, (D * D.T).sum()),
    ("d(i) = S(i,i)", {"S": S}, {"output_format": "compressed"}, np.diag(D)),
    ("C(i,j) = S(i,j) - S(i,j)", {"S": S}, {"output_format": "csr"}, np.zeros((6, 6))),
    ("C(i,j) = -(S(i,j) - (B(i,j) - (S(i,j) * (B(i,j) + S(i,j)))))", {"S": S, "B": B}, {"output_format": "csr"}, -(D - (E - D * (E + D)))),
    ("C(i,j) = - - +S(i,j)", {"S": S}, {"output_format": "csr"}, D),
    ("C(i,j) = 0 * S(i,j)", {"S": S}, {"output_format": "csr"}, 0 * D),
    (
        "y(i) = A(i,j) * x(j) + b(i) - 2 * S(i,k) * S(k,i) + c", {"A": A, "x": X, "b": np.ones(6), "S": S, "c": 3.0}, {},
        A @ X + 4 - 2 * np.einsum("ik,ki->i", D, D),
    ),
    ("A(i,j) = b(i)", {"b": st.tensor(X, "s")}, {"output_format": "csr", "shape": {"j": 3}}, np.repeat(X[:, None], 3, 1)),
    ("A(i,j) = 2", {}, {"output_format": "coo", "shape": {"i": 2, "j": 3}}, np.full((2, 3), 2.0)),
    ("y(k) = x(i)", {"x": X}, {"shape": {"k": 2}}, np.full(2, X.sum())),
    ("y(i) = A(i,j) * x(j)", {"A": sp.csr_array((0, 5)), "x": X}, {}, np.zeros(0)),
    ("y(i) = 2 * x(i)", {"x": sp.csr_array(X)}, {}, 2 * X),
    ("y(i) = A(i,j) * x(j)", {"A": LEGACY, "x": X.tolist()}, {}, A @ X),
    ("y(i) = x(i)", {"x": X[::-1]}, {}, X[::-1]),
    ("y[i] = A[i,j] * x[j]", {"A": np.asfortranarray(A.toarray()), "x": X}, {}, A @ X),
    ("double(int) = for(int,long) * while(long)", {"for": A, "while": X}, {}, A @ X),
    ("memset(i) = malloc(i) + free(i)", {"malloc": X, "free": X}, {}, 2 * X),
    ("c = T(i,j,k,l,m,n,o)", {"T": np.ones((2,) * 7)}, {}, 128.0),
]  # fmt: skip


@pytest.mark.cc
@pytest.mark.parametrize(("expression", "operands", "keywords", "wanted"), SOUND)
def test_odd_calls(expression: str, operands: dict[str, Any], keywords: dict[str, Any], wanted: Any) -> None:
    found = st.evaluate(expression, operands, schedule="default", **keywords)
    whole = found.to_numpy() if isinstance(found, st.Tensor) else found
    assert np.shape(whole) == np.shape(wanted)
    np.testing.assert_allclose(whole, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.cc
@pytest.mark.parametrize("format", ["csr", "csc", "dcsr", "coo", "dense", "hh", "hashed, compressed", "compressed, hashed"])
def test_accumulation_into_any_format(format: str) -> None:
    given = st.tensor(B, format)
    before = given.values.copy()
    found = st.evaluate("C(i,j) += S(i,k) * B(k,j)", {"S": S, "B": B, "C": given}, output_format=format, schedule="default")
    whole = found.to_numpy() if isinstance(found, st.Tensor) else found
    np.testing.assert_allclose(whole, E + D @ E)
    assert (given.values == before).all()


@pytest.mark.cc
def test_cancelled_entries_and_explicit_zeros_stay() -> None:
    found = st.evaluate("C(i,j) = S(i,j) - S(i,j)", {"S": S}, output_format="csr", schedule="default")
    assert found.nnz == S.nnz
    zeros = sp.csr_array((np.zeros(2), np.array([1, 2]), np.array([0, 2])), shape=(1, 3))
    assert st.evaluate("C(i,j) = 2 * Z(i,j)", {"Z": zeros}, output_format="csr", schedule="default").nnz == 2


@pytest.mark.cc
def test_unsorted_operands_with_duplicates_are_left_as_they_are() -> None:
    messy: Any = sp.csr_array((np.array([1.0, 2, 3]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    for array in (messy.data, messy.indices, messy.indptr):
        array.setflags(write=False)
    assert st.evaluate("y(i) = M(i,j)", {"M": messy}, schedule="default").tolist() == [6.0]
    assert messy.indices.tolist() == [2, 0, 2]


def test_functions_around_bare_names_are_told_apart_from_tensors() -> None:
    with pytest.raises(ExpressionError, match=r"operand 'exp' .* missing; around bare names .* exp\(A\(i,j\)\)"):
        st.evaluate("B(i,j) = exp(A)", {"A": np.ones((2, 2))})
    with pytest.raises(ExpressionError, match="operands are given by name"):
        st.evaluate("y(i) = A(i,j) * x(j)", np.ones((2, 2)), np.ones(2))  # type: ignore[arg-type]


@pytest.mark.parametrize(("operands", "message"), [
    ([A, X], r"operands are given by name, \{'A': A, \.\.\.\}, not as list"),
    ({"A": A}, r"operand 'x' of 'y\(i\) = A\(i,j\) \* x\(j\)' is missing; give it by its name"),
    ({**BOTH, "z": X}, r"operand 'z' is not used in 'y\(i\) = A\(i,j\) \* x\(j\)'; its operands are A, x"),
])  # fmt: skip
@pytest.mark.parametrize("ask", [st.evaluate, st.tune, st.lookup, lambda *given: st.distributed.volume(*given, ranks=2)])
def test_all_calls_name_an_operand_in_the_same_words(ask: Any, operands: Any, message: str) -> None:
    with pytest.raises(ExpressionError, match=f"^{message}$"):
        ask(SPMV, operands)


def test_kernels_name_an_operand_in_these_words_too() -> None:
    kernel = st.compile(SPMV, {"A": "csr"})
    with pytest.raises(ExpressionError, match=r"^operand 'z' is not used in 'y\(i\) = A\(i,j\) \* x\(j\)'; its operands are A, x$"):
        kernel.bind(A=A, x=X, z=X)
    with pytest.raises(ExpressionError, match=r"^operand 'x' of 'y\(i\) = A\(i,j\) \* x\(j\)' is missing; give it by its name$"):
        kernel(A=A)
