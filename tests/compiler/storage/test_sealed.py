"""Nobody changes a tensor's index arrays, whoever made them, and nobody resizes what a tensor or a kernel points to."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.storage.sealed import is_sealed, kept, pin, sealed
from sparsetune.compiler.storage.tensor import LevelArrays, Tensor

RNG = np.random.default_rng(3)
SPMV = "y(i) = A(i,j) * x(j)"
FORMATS = ["csr", "csc", "dcsr", "dcsc", "coo", "coo; 1, 0", "csf", "dense", "hh", "dh", "dense, narrow", "compressed, dense", "ss; 1, 0"]


def matrix() -> sp.csr_array:
    array = sp.random_array((30, 40), density=0.2, format="csr", rng=RNG)
    array.indices, array.indptr = array.indices.astype(np.int32), array.indptr.astype(np.int32)
    return array


def index_arrays(tensor: Tensor) -> list[np.ndarray]:
    return [array for level in tensor.levels for array in level.parts.values()]


def assert_sealed(tensor: Tensor) -> None:
    for array in index_arrays(tensor):
        assert is_sealed(array)
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
        with pytest.raises(ValueError, match="resize"):
            array.resize(array.size + 1000, refcheck=False)
        base: Any = array
        while isinstance(base := getattr(base, "base", None), np.ndarray):
            assert not base.flags.writeable


@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
def test_sealed_arrays(size: int, dtype: type) -> None:
    array = np.arange(size, dtype=dtype)
    made = sealed(array)
    assert np.array_equal(made, array)
    assert made.dtype == dtype
    assert np.shares_memory(made, array) == (size > 0)
    assert not array.flags.writeable
    assert sealed(made) is made
    assert kept(made) is made
    theirs = np.arange(2 * size, dtype=dtype)[::2]
    copied = kept(theirs)
    assert is_sealed(copied)
    assert np.array_equal(copied, theirs)
    assert not np.shares_memory(copied, theirs)
    assert theirs.flags.writeable
    frozen = theirs.copy()
    frozen.flags.writeable = False
    assert not is_sealed(frozen)
    assert not is_sealed(np.frombuffer(memoryview(theirs.copy()), dtype))


@pytest.mark.parametrize("format", FORMATS)
def test_index_arrays_of_tensors_cannot_be_written(each_kernel: str, format: str) -> None:
    array = matrix()
    columns = array.tocoo().coords
    for data in (array, array.toarray(), array.tocsc(), array.tocoo(), array.tolil(), st.tensor(array, "csf"), (columns, array.data)):
        packed = st.tensor(data, format, shape=array.shape)
        assert_sealed(packed)
        assert not any(np.shares_memory(part, given) for part in index_arrays(packed) for given in (array.indices, array.indptr, *columns))
        assert_sealed(packed.astype(np.float32))
        assert_sealed(packed.T)
        assert_sealed(packed[3:20, ::2])


@pytest.mark.parametrize("copied", [lambda packed: pickle.loads(pickle.dumps(packed)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("format", ["csr", "hh", "dense, narrow", "coo"])
def test_copies_are_sealed_too(copied: Callable[[Tensor], Tensor], format: str) -> None:
    packed = st.tensor(matrix(), format)
    again = copied(packed)
    assert_sealed(again)
    assert again.format == packed.format
    assert again.fill_value == packed.fill_value
    assert np.array_equal(again.to_numpy(), packed.to_numpy())


@pytest.mark.parametrize("output_format", ["csr", "dcsr", "coo", "csc", "dense, narrow"])
@pytest.mark.parametrize("expression", ["C(i,j) = A(i,j) * d(i)", "C(i,j) = A(i,j) + A(i,j)", "C(i,j) = A(i,j)"])
def test_results_are_sealed_and_do_not_share_what_is_the_callers(expression: str, output_format: str) -> None:
    array = matrix()
    operands: dict[str, Any] = {"A": array} | ({"d": np.arange(30.0)} if "d(i)" in expression else {})
    made = st.evaluate(expression, operands, output_format=output_format, schedule="default")
    before = made.to_numpy()
    assert_sealed(made)
    array.indices[:] = 10**8
    array.indptr[:] = 10**8
    assert np.array_equal(made.to_numpy(), before)


def test_arrays_of_ones_own_are_copied() -> None:
    pos, crd = np.array([0, 1, 2]), np.array([1, 0])
    level = LevelArrays(pos, crd)
    crd[0] = 7
    assert level.crd is not None
    assert level.crd.tolist() == [1, 0]
    borrowed = LevelArrays.borrowed(pos, crd)
    assert borrowed.crd is crd
    assert borrowed.owned().crd is not crd
    assert level.owned() is level


def test_scipy_gets_index_arrays_that_it_may_change() -> None:
    array = matrix()
    for name in ("csr", "csc", "coo", "dense, narrow"):
        packed = st.tensor(array, name)
        before, given = packed.to_numpy(), packed.to_scipy()
        for part in (given.coords if given.format == "coo" else (given.indices, given.indptr)):
            assert part.flags.writeable
            part[:] = 0
        assert np.array_equal(packed.to_numpy(), before)
    given = st.tensor(array).to_scipy()
    given.data[::2] = 0
    given.eliminate_zeros()
    given.resize((7, 7))
    given.setdiag(3)
    given.sort_indices()


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr"])
def test_operands_that_change_after_they_were_stored_or_bound(format: str) -> None:
    array, x = matrix().asformat(format if format != "dcsr" else "csr"), RNG.random(40)
    expected, kernel = array @ x, st.compile(SPMV, {"A": format})
    stored, bound = st.tensor(array, format), kernel.bind(A=array, x=x)
    values = array.data.copy()
    for part in (array.coords if array.format == "coo" else (array.indices, array.indptr)):
        part[:] = 10**8
    np.testing.assert_allclose(kernel(A=stored, x=x), expected)
    np.testing.assert_allclose(bound(), expected)
    for refused in (lambda: kernel(A=array, x=x), lambda: kernel.bind(A=array, x=x), lambda: st.evaluate(SPMV, {"A": array, "x": x})):
        with pytest.raises(DataError, match=r"broken|out of range"):
            refused()
    if format in ("csr", "csc"):  # values stay shared
        array.data *= 2
        np.testing.assert_allclose(bound(), 2 * expected)
        np.testing.assert_allclose(kernel(A=stored, x=x), 2 * expected)
        assert not np.array_equal(values, array.data)


def test_memory_that_a_kernel_points_to_stays_where_it_is() -> None:
    array, x, out = matrix(), RNG.random(40), np.empty(30)
    kernel = st.compile(SPMV, {"A": "csr"})
    bound = kernel.bind(A=array, x=x, out=out)
    view, behind = x[:], np.frombuffer(memoryview(x))
    for target in (x, out, array.data):
        with pytest.raises(ValueError, match="resize"):
            target.resize(10**6, refcheck=False)
    np.testing.assert_allclose(bound(), array @ x)
    del bound
    stored, owner = st.tensor(array), array.data
    with pytest.raises(ValueError, match="resize"):
        owner.resize(10**6, refcheck=False)
    for operand in (view, behind):
        bound = kernel.bind(A=stored, x=operand)
        with pytest.raises(ValueError, match="resize"):
            x.resize(10**6, refcheck=False)
        np.testing.assert_allclose(bound(), array @ x)
        del bound
    x.resize(50, refcheck=False)
    assert len(x) == 50


def test_what_has_no_owner_that_could_move_it_needs_no_pin() -> None:
    assert pin(np.frombuffer(bytes(80))) is None
    assert pin(np.frombuffer(bytearray(80))) is None
    assert pin(np.zeros(3)) is not None
