"""Tensors among NumPy's functions and SciPy's solvers, and objects of other libraries that are no tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from scipy.sparse.linalg import cg, eigsh, svds
from sparsetune.compiler.errors import DataError, ExpressionError, ShapeError

RNG = np.random.default_rng(0)
A: Any = sp.random_array((6, 5), density=0.5, format="csr", rng=RNG, data_sampler=lambda size: RNG.standard_normal(size))
D = A.toarray()
FORMATS = ("csr", "csc", "dcsr", "coo", "dense", "dh", "hh")


@pytest.mark.parametrize("form", FORMATS)
def test_functions_of_numpy_that_leave_zeros_zero(form: str) -> None:
    tensor = st.tensor(A, form)
    for found, expected in (
        (np.sqrt(abs(tensor)), np.sqrt(abs(D))),
        (np.sin(tensor), np.sin(D)),
        (np.expm1(tensor), np.expm1(D)),
        (np.negative(tensor), -D),
        (tensor**2, D**2),
        (np.power(tensor, 3), D**3),
        (np.multiply(tensor, 2.0), 2 * D),
        (np.float64(2) * tensor, 2 * D),
        (np.add(tensor, tensor), 2 * D),
    ):
        assert isinstance(found, st.Tensor) or form == "dense"
        assert np.allclose(found.to_numpy() if isinstance(found, st.Tensor) else found, expected)
    assert np.sqrt(abs(tensor)).format == tensor.format


def test_functions_that_would_fill_are_refused() -> None:
    tensor: Any = st.tensor(A)
    for call in (lambda: np.exp(tensor), lambda: np.cos(tensor), lambda: tensor**0, lambda: tensor**-1.0):
        with pytest.raises(ExpressionError, match="would fill every coordinate"):
            call()
    assert np.allclose(np.exp(st.tensor(D)).to_numpy(), np.exp(D))
    for call in (lambda: np.logical_and.reduce(tensor), lambda: np.sqrt(tensor, out=D.copy()), lambda: tensor ** "2"):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("sign", [1, -1])
def test_largest_values_count_zeros_that_are_not_stored(form: str, sign: int) -> None:
    dense = sign * abs(D)
    dense[2] = sign
    tensor = st.tensor(sp.csr_array(dense), form)
    assert tensor.max() == np.max(tensor) == dense.max()
    for axis in (0, 1, -1):
        assert np.array_equal(tensor.max(axis), dense.max(axis))
        assert np.allclose(tensor.sum(axis), dense.sum(axis))
    with pytest.raises(ShapeError, match="no mode"):
        tensor.max(2)


def test_largest_values_of_tensors_of_order_three() -> None:
    tensor = st.tensor(sp.random_array((4, 5, 6), density=0.2, rng=RNG))
    assert np.array_equal(tensor.max(2).to_numpy(), tensor.to_numpy().max(2))
    assert np.array_equal(tensor.max((0, 2)), tensor.to_numpy().max((0, 2)))
    empty = st.tensor((np.zeros((2, 0), int), np.zeros(0)), "csr", shape=(3, 4))
    assert np.array_equal(empty.max(0), np.zeros(4))
    assert empty.max() == 0
    with pytest.raises(ShapeError, match="the largest of no values"):
        st.tensor(np.zeros((0, 3)), "csr").max(0)


def test_other_values_at_the_same_places() -> None:
    tensor = st.tensor(A)
    ones = np.ones(tensor.nnz, np.float32)
    pattern = tensor.with_values(ones)
    ones[:] = 7
    assert pattern.dtype == np.float32
    assert np.array_equal(pattern.to_numpy(), D != 0)
    with pytest.raises(DataError, match="do not fit"):
        tensor.with_values(np.ones(3))
    assert np.array_equal(tensor.toarray(), D)
    assert np.array_equal(st.tensor(A, "coo").tocsr().toarray(), D)
    with pytest.raises(ShapeError, match="takes matrices"):
        st.tensor(np.ones(3)).tocsr()


def test_solvers_of_scipy_take_tensors() -> None:
    symmetric = A.T @ A + sp.eye_array(5)
    tensor: Any = st.tensor(symmetric.tocsr())
    right = RNG.standard_normal(5)
    solution, state = cg(tensor, right, rtol=1e-12)
    assert state == 0
    assert np.allclose(symmetric @ solution, right)
    assert np.allclose(svds(st.tensor(A), k=2)[1], svds(A, k=2)[1])
    assert np.allclose(eigsh(tensor, k=2)[0], eigsh(symmetric, k=2)[0])


def stranger(module: str, **attributes: Any) -> Any:
    return type("Stranger", (), {"__module__": module, **attributes})()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (stranger("networkx.classes.graph", adj={}, __len__=lambda self: 3), "networkx.to_scipy_sparse_array"),
        (stranger("pandas.core.frame", columns=["a"], __array__=lambda self: np.ones((2, 1))), r"\.to_numpy\(\)"),
        (stranger("torch", layout="torch.strided", requires_grad=True, detach=lambda self: self), r"hand over tensor.detach\(\)"),
        (stranger("jax.experimental.sparse.bcoo", shape=(3, 3), ndim=2, indices=None), r"coo_array\(\(A.data, A.indices.T\), A.shape\)"),
        (
            stranger("jax.experimental.sparse.bcsr", shape=(3, 3), ndim=2, indices=None, indptr=None),
            r"csr_array\(\(A.data, A.indices, A.indptr\), A.shape\)",
        ),
    ],
)
def test_objects_that_are_no_tensors_are_named(data: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        st.tensor(data)
    with pytest.raises(DataError, match=says):
        st.evaluate("y(i) = x(i)", {"x": data})


def test_values_that_numpy_lacks_are_a_data_error() -> None:
    def numpy(self: Any) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")

    data = stranger("torch", layout="torch.strided", dtype="torch.bfloat16", detach=lambda self: self, cpu=lambda self: self, numpy=numpy)
    with pytest.raises(DataError, match=r"torch tensor of torch.bfloat16 cannot be read .*; convert it with .float\(\)"):
        st.tensor(data)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_products_that_come_again_see_values_as_they_are_now(form: str) -> None:
    stored = st.tensor(np.arange(12.0).reshape(3, 4), form)
    x, both = np.arange(4.0), np.ones((4, 2))
    for _ in range(3):
        assert np.array_equal(stored @ x, stored.to_numpy() @ x)
        assert np.array_equal(stored @ both, stored.to_numpy() @ both)
        assert np.array_equal(np.ones(3) @ stored, np.ones(3) @ stored.to_numpy())
        stored.values[:] *= 2
    stored.values.dtype = np.int64
    assert (stored @ x.astype(np.int64)).dtype == np.int64
    assert np.array_equal(stored @ np.eye(4, dtype=np.int64), stored.to_numpy())
