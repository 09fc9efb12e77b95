"""Results in memory of a GPU, for which memory of the processor stands in, are operands of further kernels there."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from device_arrays import Foreign, Rows, on_executor
from sparsetune.compiler.storage.on_device import DeviceTensor

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

SQUARE = scipy.sparse.csr_array(np.arange(9.0).reshape(3, 3) % 4)
PRODUCT = "C(i,j) = A(i,k) * B(k,j)"


def product(**operands: Any) -> Any:
    return on_executor(PRODUCT, {"A": "csr", "B": "csr", "C": "csr"}).bind(**operands)


def test_a_sparse_result_is_multiplied_again() -> None:
    """Its positions, which have 64 bits, are all that is copied to the host and back."""
    square = product(A=Rows(SQUARE), B=Rows(SQUARE))()
    assert isinstance(square, DeviceTensor)
    again = product(A=square, B=Rows(SQUARE))
    np.testing.assert_array_equal(again().to_numpy(), (SQUARE @ SQUARE @ SQUARE).toarray())
    assert again.launch.transferred == 4 * (3 + 1)


def test_a_result_with_the_pattern_of_another_one_is_an_operand_and_comes_to_the_host() -> None:
    doubled = on_executor("Z(i,j) = 2 * C(i,j)", {"C": "csr", "Z": "csr"})
    twice = doubled(C=product(A=Rows(SQUARE), B=Rows(SQUARE))())
    np.testing.assert_array_equal(twice.to_numpy(), 2 * (SQUARE @ SQUARE).toarray())
    np.testing.assert_array_equal(doubled(C=twice).to_numpy(), 4 * (SQUARE @ SQUARE).toarray())


def test_later_expressions_and_numpys_notation_take_them() -> None:
    texts, operands = ["C(i,j) = A(i,k) * A(k,j)", "y(i) = C(i,j) * x(j)"], {"A": Rows(SQUARE), "x": Foreign(np.ones(3))}
    made, y = st.evaluate_all(texts, operands, output_format={"C": "csr"}, target="cuda-executor")
    np.testing.assert_array_equal(y.to_numpy(), SQUARE @ SQUARE @ np.ones(3))
    for matrix, wanted in ((made, SQUARE @ SQUARE), (Rows(SQUARE), SQUARE)):
        found = st.einsum("ij,j->i", matrix, y, target="cuda-executor")
        np.testing.assert_array_equal(found.to_numpy(), wanted @ y.to_numpy())


def test_they_are_copied_to_the_host_only_where_that_is_asked_for() -> None:
    made = product(A=Rows(SQUARE), B=Rows(SQUARE))()
    y = on_executor("y(i) = C(i,j) * x(j)", {"C": "csr"})(C=made, x=np.ones(3))
    calls = (lambda: np.asarray(y), lambda: np.asarray(made), lambda: st.tensor(made), lambda: st.evaluate("z(i) = 2 * y(i)", {"y": y}))
    for refused in calls:
        with pytest.raises(st.DataError, match=r"in memory of a GPU is copied to the host by its to_"):
            refused()
