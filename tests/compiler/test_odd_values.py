"""Odd values: constants, zeros and their signs, NaN, quotients and fill values give NumPy's answers, whatever the pattern is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st
from default_runs import default
from sparsetune.compiler.errors import SparsetuneError


@pytest.mark.cc
def test_constants_are_weak_as_in_numpy() -> None:
    whole = np.array([1, 2, 3])
    assert default("y(i) = 1.5 * a(i)", {"a": whole}).tolist() == [1.5, 3.0, 4.5]
    assert default("y(i) = 2 * a(i)", {"a": whole.astype("int8")}).dtype == np.int8
    assert default("y(i) = 2.5 * a(i)", {"a": whole.astype("float32")}).dtype == np.float32
    truth = np.array([True, False])
    assert default("y(i) = 2 * a(i)", {"a": truth}).tolist() == [2, 0]
    assert default("y(i) = a(i) / b(i)", {"a": truth, "b": np.array([2, 2])}).tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("expression", "operand", "dtype", "says"),
    [
        ("y(i) = 300 * a(i)", np.array([1, 2], np.int8), None, "constant 300"),
        ("y(i) = 3000000000 + a(i)", np.array([1, 2], np.int32), None, "constant 3000000000"),
        ("y(i) = 1.5 * a(i)", np.array([1, 2]), "int64", "constant 1.5"),
        ("y(i) = a(i) - a(i)", np.array([True, False]), None, "'-' has no meaning for values of type bool"),
        ("y(i) = a(i)", np.array([1.5]), "int64", "values of type float64"),
        ("y(i) = a(i)", np.array([1j]), None, "complex128"),
    ],
)
def test_values_without_meaning_are_refused(expression: str, operand: Any, dtype: Any, says: str) -> None:
    with pytest.raises(SparsetuneError, match=says):
        default(expression, {"a": operand}, dtype=dtype)


@pytest.mark.cc
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dense"])
@pytest.mark.parametrize(("semiring", "wanted"), [(("min", "+"), 2.0), (("max", "+"), 6.0), (("max", "*"), 5.0)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_goes_through_minima_and_maxima(format: str, semiring: tuple[str, str], wanted: float, place: int) -> None:
    values = np.array([5.0, 1.0, 2.0])
    matrix = st.tensor((np.array([[0, 1, 2], [0, 0, 0]]), values), "csc", (3, 2))
    operands = {"W": matrix.convert(format).astype("float64"), "d": np.ones(3)}
    fill = {"min": np.inf, "max": -np.inf}[semiring[0]]
    if format == "dense":
        operands["W"] = np.where(matrix.to_numpy() == 0, fill, matrix.to_numpy())
    assert default("y(j) = W(i,j) * d(i)", operands, semiring=semiring).tolist() == [wanted, fill]
    values[place] = np.nan
    if format == "dense":
        operands["W"][place, 0] = np.nan
    else:
        operands["W"] = st.tensor((np.array([[0, 1, 2], [0, 0, 0]]), values), format, (3, 2))
    found = default("y(j) = W(i,j) * d(i)", operands, semiring=semiring)
    assert np.isnan(found[0])
    assert found[1] == fill


@pytest.mark.cc
def test_signs_of_zeros() -> None:
    zeros, minus = np.array([0.0, -0.0]), np.array([0.0, 0.0])
    assert np.signbit(default("y(i) = a(i)", {"a": zeros})).tolist() == [False, True]
    assert np.signbit(default("y(i) = -a(i)", {"a": zeros})).tolist() == [True, False]
    assert np.signbit(default("y(i) = a(i) - b(i)", {"a": zeros, "b": minus})).tolist() == [False, True]
    sparse = st.tensor((np.array([[0, 1]]), zeros), "compressed", (2,))
    assert np.signbit(default("y(i) = -a(i)", {"a": sparse}, output_format="compressed").values).tolist() == [True, False]


@pytest.mark.cc
@pytest.mark.parametrize("zero", ["0", "0.0", "(1 - 1)", "(2 * 0)", "(0 / 3)"])
@pytest.mark.parametrize("format", [None, "csr", "coo"])
def test_quotients_by_zero_are_everywhere(zero: str, format: str | None) -> None:
    matrix = st.tensor(np.array([[0.0, 2.0, 0.0], [-1.0, 0.0, 0.0]]), "csr")
    found = default(f"C(i,j) = A(i,j) / {zero}", {"A": matrix}, output_format=format)
    whole = found if format is None else found.to_numpy()
    np.testing.assert_array_equal(whole, [[np.nan, np.inf, np.nan], [-np.inf, np.nan, np.nan]])
    assert format is None or found.nnz == 6


@pytest.mark.cc
@pytest.mark.parametrize("schedule", ["", "split(i, a, b, 1)"])
def test_sums_skip_quotients_without_a_numerator_wherever_the_loops_are(schedule: str) -> None:
    above = st.tensor(np.array([[0.0, 0.0], [0.0, 6.0]]), "dcsr")
    below = st.tensor((np.array([[0, 1]]), np.array([0.0, 3.0])), "compressed", (2,))
    found = st.compile("y(j,l) = B(l,i) / C(j)", {"B": "dcsr", "C": "compressed"}, schedule=schedule)(B=above, C=below)
    np.testing.assert_array_equal(found, [[0.0, np.inf], [0.0, 2.0]])


@pytest.mark.cc
@pytest.mark.parametrize("divisor", ["2", "(1 + 1)", "(3 - 1)", "-(-2)", "(4 / 2)"])
def test_quotients_by_other_constants_have_the_pattern_of_the_numerator(divisor: str) -> None:
    matrix = st.tensor(np.array([[0.0, 2.0, 0.0], [-1.0, 0.0, 0.0]]), "csr")
    found = default(f"C(i,j) = A(i,j) / {divisor}", {"A": matrix}, output_format="csr")
    assert found.nnz == 2
    assert found.to_numpy().tolist() == [[0.0, 1.0, 0.0], [-0.5, 0.0, 0.0]]


@pytest.mark.cc
@pytest.mark.parametrize(
    ("semiring", "dtype", "expected"),
    [
        (("min", "+"), "int32", [0, 3, 2**31 - 1, 7]),
        (("min", "+"), "uint8", [0, 3, 255, 7]),
        (("min", "*"), "int64", [0, 0, 2**63 - 1, 12]),
        (("max", "+"), "int16", [-(2**15), -(2**15), -(2**15), -(2**15)]),
    ],
)
def test_the_fill_value_of_integers_annihilates(semiring: tuple[str, str], dtype: str, expected: list[int]) -> None:
    ends = np.iinfo(dtype)
    nothing = ends.max if semiring[0] == "min" else ends.min
    graph = st.tensor((np.array([[0, 1, 1], [1, 2, 3]]), np.array([3, 4, 4], dtype)), "csr", (4, 4))
    x = np.array([0, nothing, nothing, 3 if semiring == ("min", "*") else 7], dtype)
    if semiring[0] == "max":
        x[:] = nothing
    steps = {"A": graph, "x": x}
    found = default("y(j) = A(i,j) * x(i) + x(j)", steps, semiring=semiring)
    wanted = [min(v, w) for v, w in zip(expected, x.tolist(), strict=True)] if semiring[0] == "min" else expected
    assert found.tolist() == wanted
    assert default("y(j) = A(i,j) * x(i) + x(j)", steps | {"x": found}, semiring=semiring).min() >= ends.min


@pytest.mark.cc
@pytest.mark.parametrize("number", [1e300, -1e39, 3.4e38])
def test_constants_beyond_float32_are_infinite(number: float) -> None:
    matrix = st.tensor(np.eye(3, dtype=np.float32), "csr")
    found = default(f"C(i,j) = A(i,j) * {number!r}", {"A": matrix}, output_format="csr")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found.values, np.full(3, np.float32(number)))


@pytest.mark.cc
@pytest.mark.parametrize(("number", "dtype"), [(2.5, "float32"), (3, "float32"), (np.float64(2.5), "float64"), (True, "float32")])
def test_numbers_of_python_are_weak(number: Any, dtype: str) -> None:
    matrix = st.tensor(np.eye(3, dtype=np.float32), "csr")
    assert default("C(i,j) = A(i,j) * c", {"A": matrix, "c": number}, output_format="csr").dtype == dtype
    assert st.compile("C(i,j) = A(i,j) * c", {"A": "csr", "C": "csr"})(A=matrix, c=number).dtype == dtype
    small = st.tensor(np.eye(3, dtype=np.uint8), "csr")
    assert default("C(i,j) = A(i,j) * c", {"A": small, "c": 300}, output_format="csr").values.tolist() == [300] * 3


OF_SUMS = {
    "C(j,i) / (2 + d(j) * d(j))": lambda c, d: c / (2 + d * d),
    "min(C(j,i), 2 + d(j))": lambda c, d: np.minimum(c, 2 + d),
    "max(d(j) - 2, C(j,i))": lambda c, d: np.maximum(c, d - 2),
}
"""Values of C and of a sum with a constant, which is 0 where C stores nothing."""


@pytest.mark.cc
@pytest.mark.parametrize("schedule", ["default", "split(j, j0, j1, 2)"])
@pytest.mark.parametrize("kinds", [("csr", "compressed"), ("csr", "dense"), ("dcsr", "compressed"), ("csc", "compressed")])
@pytest.mark.parametrize("value", OF_SUMS)
def test_what_is_made_of_a_sum_with_a_constant_has_a_value_where_none_of_its_operands_is_stored(
    value: str, kinds: tuple[str, str], schedule: str
) -> None:
    """0 / 2 is a value where d stores nothing, as 0 / (2 + d) is elsewhere, whichever operand is looked for first; so are others."""
    above, below = np.array([[0.0, 0.0, 4.0], [0.0, 6.0, 0.0]]), np.array([0.0, 2.0])
    factor = np.array([[np.nan, np.inf, 3.0], [np.inf, 1.0, np.nan]])
    operands = {"B": factor, "C": st.tensor(above, kinds[0]), "d": st.tensor(below, kinds[1]), "E": np.ones((2, 3))}
    found = st.evaluate(f"Y(j,i) = B(j,i) * ({value}) - E(j,i)", operands, schedule=schedule)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, factor * OF_SUMS[value](above, below[:, None]) - 1)
