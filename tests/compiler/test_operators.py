"""Signs between tensors, arrays of SciPy and NumPy, and numbers, on either side, against NumPy on the whole arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from hypothesis import given, settings
from hypothesis import strategies as draws
from sparsetune.compiler.errors import DataError, ExpressionError, ShapeError

pytestmark = pytest.mark.cc
RNG = np.random.default_rng(11)
SIGNS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
FORMATS = ["csr", "csc", "dcsr", "coo", "hh", "sd"]


def sparse_values(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.where(RNG.random(shape) < 0.5, RNG.integers(1, 9, shape), 0).astype(dtype)


DENSE = sparse_values(4, 5)
OTHER = sparse_values(4, 5)
FULL = RNG.random((4, 5)) + 1


def whole(found: Any) -> Any:
    return found.to_numpy() if isinstance(found, st.Tensor) else found


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("format", FORMATS)
def test_two_tensors_keep_the_format_of_the_first(sign: str, format: str) -> None:
    for second in ("csr", format):
        found = SIGNS[sign](st.tensor(DENSE, format), st.tensor(OTHER, second))
        assert found.format == st.tensor(DENSE, format).format
        assert np.array_equal(found.to_numpy(), SIGNS[sign](DENSE, OTHER))


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("array", ["csr", "csc", "coo", "bsr", "dok", "lil", "dia"])
def test_scipy_on_either_side_leaves_the_work_to_tensors(sign: str, array: str) -> None:
    ours, theirs = st.tensor(DENSE, "csr"), getattr(sp, f"{array}_array")(OTHER)
    for found, wanted in ((SIGNS[sign](ours, theirs), SIGNS[sign](DENSE, OTHER)), (SIGNS[sign](theirs, ours), SIGNS[sign](OTHER, DENSE))):
        assert isinstance(found, st.Tensor)
        assert not found.format.is_dense
        assert np.array_equal(found.to_numpy(), wanted)
    assert np.array_equal((theirs @ ours.T).to_numpy(), OTHER @ DENSE.T)
    assert np.array_equal((ours @ theirs.T).to_numpy(), DENSE @ OTHER.T)


@pytest.mark.parametrize("sign", SIGNS)
def test_arrays_on_either_side(sign: str) -> None:
    ours = st.tensor(DENSE, "csr")
    for found, wanted in (
        (SIGNS[sign](ours, FULL), SIGNS[sign](DENSE, FULL)),
        (SIGNS[sign](FULL, ours), SIGNS[sign](FULL, DENSE)),
        (SIGNS[sign](ours, FULL.tolist()), SIGNS[sign](DENSE, FULL)),
    ):
        assert isinstance(found, st.Tensor) == (sign == "*")
        np.testing.assert_allclose(whole(found), wanted)
    np.testing.assert_allclose((FULL[0] * ours).to_numpy(), FULL[0] * DENSE)
    np.testing.assert_allclose((ours * FULL[:, :1]).to_numpy(), DENSE * FULL[:, :1])
    np.testing.assert_allclose(FULL @ ours.T, FULL @ DENSE.T)


@pytest.mark.parametrize("number", [3, 2.5, True, np.float32(2), np.int64(3), np.array(2.0)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8"])
def test_numbers_have_numpys_types(number: Any, dtype: str) -> None:
    values, ours = DENSE.astype(dtype), st.tensor(DENSE.astype(dtype), "csr")
    for found, wanted in ((ours * number, values * number), (number * ours, number * values)):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.to_numpy(), wanted)
        assert found.nnz == ours.nnz
    np.testing.assert_allclose((ours / number).to_numpy(), values / number, rtol=1e-6)
    assert np.array_equal((ours + 0).to_numpy(), values)
    assert np.array_equal((0 - ours).to_numpy(), -values)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(draws.data())
def test_broadcasting_is_numpys(data: draws.DataObject) -> None:
    shape = data.draw(draws.lists(draws.integers(0, 3), max_size=3))

    def operand() -> np.ndarray:
        kept = shape[data.draw(draws.integers(0, len(shape))) :]
        return sparse_values(*(extent if data.draw(draws.booleans()) else 1 for extent in kept))

    first, second, sign = operand(), operand(), data.draw(draws.sampled_from(sorted(SIGNS)))
    wanted = SIGNS[sign](first, second)
    formats = ["s" * values.ndim if data.draw(draws.booleans()) else "dense" for values in (first, second)]
    left, right = (st.tensor(values, name if values.ndim else None) for values, name in zip((first, second), formats, strict=True))
    sparse = [bool(tensor.order) and not tensor.format.is_dense for tensor in (left, right)]
    dense = second if sparse[0] else first
    if sign in "+-" and sparse[0] != sparse[1] and (dense.shape != wanted.shape if dense.ndim else dense != 0):
        with pytest.raises(ExpressionError, match="fill every coordinate"):
            SIGNS[sign](left, right)
        return
    found = SIGNS[sign](left, right)
    assert np.shape(whole(found)) == wanted.shape
    assert np.array_equal(whole(found), wanted)


def test_shapes_of_more_elements_than_can_be_counted() -> None:
    extent = 4 * 10**9
    one = st.tensor((np.array([[3], [5]]), np.array([1.5])), "dcsr", shape=(extent, extent))
    assert (one + one).values.tolist() == [3.0]
    assert (one * 2).values.tolist() == [3.0]
    assert (one * one).shape == (extent, extent)
    with pytest.raises(ShapeError, match="do not broadcast"):
        one + one[:, 1:]


def test_signs_of_one_operand() -> None:
    ours = st.tensor(DENSE - OTHER, "csc")
    assert np.array_equal((-ours).to_numpy(), OTHER - DENSE)
    assert np.array_equal(abs(ours).to_numpy(), abs(DENSE - OTHER))
    assert (-ours).levels is ours.levels
    with pytest.raises(DataError, match="no meaning for values of type bool"):
        _ = -st.tensor(DENSE > 0, "csr")


def test_quotients_have_the_pattern_of_the_numerator() -> None:
    ours = st.tensor(DENSE, "csr")
    np.testing.assert_allclose((ours / FULL).to_numpy(), DENSE / FULL)
    assert (ours / 0).nnz == ours.nnz
    assert np.isinf((ours / 0).values).all()
    for numerator in (ours, FULL, 2.0, sp.csr_array(DENSE)):
        with pytest.raises(ExpressionError, match="by a sparse tensor"):
            _ = numerator / ours


def test_patterns_are_those_of_the_expression() -> None:
    ours = st.tensor(DENSE, "csr")
    assert (ours - ours).nnz == ours.nnz
    assert (0 * ours).nnz == ours.nnz


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_what_is_no_operand() -> None:
    ours = st.tensor(DENSE, "csr")
    for other in ("a", None, {}, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = ours + other
    for number in (1, -1.5, np.nan, np.array(2), FULL[0], FULL[:, :1]):
        with pytest.raises(ExpressionError, match="fill every coordinate"):
            _ = ours + number
        with pytest.raises(ExpressionError, match="fill every coordinate"):
            _ = number - ours
    with pytest.raises(ShapeError, match=r"shapes \(4, 5\) and \(3, 3\) do not broadcast"):
        _ = ours + np.ones((3, 3))
    with pytest.raises(DataError, match="two meanings"):
        _ = sp.csr_matrix(DENSE) * ours
    with pytest.raises(DataError, match="two meanings"):
        _ = ours * np.matrix(FULL)
    with pytest.raises(DataError, match="does not fit into values of type int8"):
        _ = ours.astype("int8") * 300
    with pytest.raises(DataError, match="masked"):
        _ = ours * np.ma.masked_array(FULL)
    with pytest.raises(DataError, match="complex128"):
        _ = ours * 1j
    filled = st.tensor((np.array([[0]]), np.array([1.0])), shape=(2,), fill_value=np.inf)
    with pytest.raises(DataError, match="fill value of 0"):
        _ = filled * 2
    assert (ours * 2**70).values.max() == DENSE.max() * 2.0**70


def test_products_of_sparse_vectors_and_matrices() -> None:
    ours, vector = st.tensor(DENSE, "csr"), st.tensor(DENSE[:, 0], "s")
    assert np.array_equal(vector @ ours, DENSE[:, 0] @ DENSE)
    assert np.array_equal(sp.coo_array(DENSE[:, 0]) @ ours, DENSE[:, 0] @ DENSE)
    assert vector @ vector == DENSE[:, 0] @ DENSE[:, 0]


def test_n_dimensional_arrays_of_scipy() -> None:
    cube = sparse_values(2, 3, 4)
    ours = st.tensor(cube, "csf")
    theirs: Any = sp.coo_array(cube)
    assert np.array_equal((theirs + ours).to_numpy(), 2 * cube)
    assert np.array_equal((theirs * ours).to_numpy(), cube * cube)
    assert np.array_equal((ours * cube[0]).to_numpy(), cube * cube[0])
