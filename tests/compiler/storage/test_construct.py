"""Construction from arrays of every library, and what bad data are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sparsetune.compiler.errors import DataError, FormatError, ShapeError
from sparsetune.compiler.format import Format
from sparsetune.compiler.storage.construct import borrowed, tensor
from storage_cases import stored_entries

DENSE = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])


def test_c_ordered_arrays_are_not_copied() -> None:
    assert np.shares_memory(tensor(DENSE).values, DENSE)
    fortran = np.asfortranarray(DENSE)
    assert np.shares_memory(tensor(fortran, Format("dense, dense", (1, 0))).values, fortran)
    assert not np.shares_memory(tensor(fortran).values, fortran)
    assert np.array_equal(tensor(fortran).to_numpy(), DENSE)


@pytest.mark.parametrize("name", ["csr", "csc"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_values_of_canonical_scipy_arrays_are_not_copied(each_kernel: str, name: str, index: type) -> None:
    array = sp.csr_array(DENSE).asformat(name)
    array.indptr, array.indices = array.indptr.astype(index), array.indices.astype(index)
    packed = tensor(array)
    assert str(packed.format) == {"csr": "dense, compressed", "csc": "dense, compressed; 1, 0"}[name]
    assert np.shares_memory(packed.values, array.data)
    assert not np.shares_memory(packed.levels[1].crd, array.indices)
    assert not np.shares_memory(packed.levels[1].pos, array.indptr)
    assert {packed.levels[1].crd.dtype, packed.levels[1].pos.dtype} == {np.dtype(np.int32)}, "kernels are faster on these"
    back = packed.to_scipy()
    assert back.format == name
    assert np.shares_memory(back.data, array.data)
    assert np.array_equal(packed.to_numpy(), DENSE)


@pytest.mark.parametrize(("size", "short", "width"), [(70_000, True, 4), (70_000, False, 8), (70, True, 8)])
def test_long_indices_are_borrowed_short_where_that_is_wanted_and_pays(each_kernel: str, size: int, short: bool, width: int) -> None:
    array = sp.eye_array(size, format="csr")
    array.indptr, array.indices = array.indptr.astype(np.int64), array.indices.astype(np.int64)
    level = borrowed(array, short).levels[1]
    assert (level.pos.itemsize, level.crd.itemsize) == (width, width)
    assert np.array_equal(level.crd, array.indices)
    assert np.shares_memory(level.crd, array.indices) == (width == 8)


@pytest.mark.parametrize("size", [3, 70_000])
@pytest.mark.parametrize("broken", [2**32 + 1, -(2**32) + 1, 2**31, -1])
def test_indices_that_are_too_long_are_refused(each_kernel: str, size: int, broken: int) -> None:
    """Their lowest 32 bits alone might be in range."""
    for part in ("indices", "indptr"):
        array = sp.eye_array(size, format="csr")
        array.indptr, array.indices = array.indptr.astype(np.int64), array.indices.astype(np.int64)
        getattr(array, part)[1] = broken
        with pytest.raises(DataError, match="sparse array is broken"):
            tensor(array)


def test_uncanonical_scipy_arrays_are_sorted_and_left_alone(each_kernel: str) -> None:
    array = sp.csr_array((np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    before = array.indices.copy()
    assert stored_entries(tensor(array)) == {(0, 0): 2.0, (0, 2): 4.0, (1, 1): 4.0}
    assert np.array_equal(array.indices, before)
    assert array.nnz == 4


@pytest.mark.parametrize("name", ["coo", "bsr", "dia", "lil", "dok", "csr", "csc"])
@pytest.mark.parametrize("kind", [sp.coo_array, sp.coo_matrix])
def test_every_scipy_format(name: str, kind: Any) -> None:
    assert np.array_equal(tensor(kind(DENSE).asformat(name)).to_numpy(), DENSE)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_n_dimensional_coo(order: int) -> None:
    dense = np.zeros((2, 3, 4, 5)[:order])
    dense[(1,) * order] = 7
    packed = tensor(sp.coo_array(dense))
    assert str(packed.format) == ("dense, compressed" if order == 2 else ", ".join(["compressed"] * order))
    assert np.array_equal(packed.to_numpy(), dense)
    assert np.array_equal(packed.to_scipy().toarray(), dense)


def test_explicit_zeros_stay_and_duplicates_are_summed() -> None:
    packed = tensor((np.array([[0, 0, 1], [1, 1, 2]]), np.array([2.0, -2.0, 0.0])), shape=(2, 3))
    assert stored_entries(packed) == {(0, 1): 0.0, (1, 2): 0.0}
    assert packed.to_scipy().nnz == 2


def test_loose_parts_are_copied() -> None:
    coordinates, values = np.array([[0, 1], [1, 2]], np.int32), np.array([1.0, 2.0])
    packed = tensor((coordinates, values))
    coordinates[:], values[:] = 0, 9.0
    assert stored_entries(packed) == {(0, 1): 1.0, (1, 2): 2.0}


def test_pydata_sparse() -> None:
    sparse = pytest.importorskip("sparse")
    array = sparse.COO.from_numpy(DENSE)
    for one in (array, sparse.GCXS.from_numpy(DENSE), sparse.DOK.from_coo(array)):
        assert np.array_equal(tensor(one).to_numpy(), DENSE)
    filled = sparse.COO(np.array([[0], [1]]), np.array([2.0]), shape=(2, 2), fill_value=np.inf)
    assert tensor(filled).fill_value == np.inf


class _Torch:
    """What the duck typing asks of a torch tensor."""

    def __init__(self, array: np.ndarray, layout: str, **parts: Any) -> None:
        self.array, self.layout, self.shape = array, layout, array.shape
        for name, part in parts.items():
            setattr(self, name, lambda part=part: part)

    def detach(self) -> _Torch:
        return self

    coalesce = cpu = detach

    def numpy(self) -> np.ndarray:
        return self.array


_Torch.__module__ = "torch"


def _dense_torch(array: Any) -> _Torch:
    return _Torch(np.asarray(array), "torch.strided")


def test_torch_by_duck_typing() -> None:
    csr, coo = sp.csr_array(DENSE), sp.coo_array(DENSE)
    sparse_csr = _Torch(
        DENSE,
        "torch.sparse_csr",
        crow_indices=_dense_torch(csr.indptr),
        col_indices=_dense_torch(csr.indices),
        values=_dense_torch(csr.data),
    )
    sparse_coo = _Torch(DENSE, "torch.sparse_coo", indices=_dense_torch(np.stack(coo.coords)), values=_dense_torch(coo.data))
    for one in (sparse_csr, sparse_coo, _dense_torch(DENSE)):
        assert np.array_equal(tensor(one, "csr").to_numpy(), DENSE)


def test_cupy_by_duck_typing() -> None:
    dense, sparse = (
        type(name, (SimpleNamespace,), {"__module__": library}) for name, library in (("ndarray", "cupy"), ("csr_matrix", "cupyx"))
    )
    assert np.array_equal(tensor(dense(get=lambda: DENSE)).to_numpy(), DENSE)
    assert np.array_equal(tensor(sparse(get=lambda: sp.csr_matrix(DENSE))).to_numpy(), DENSE)


def test_numbers_lists_and_other_orders() -> None:
    assert tensor(3.5).shape == ()
    assert tensor(3.5).to_numpy() == 3.5
    assert tensor(np.float32(2)).dtype == np.float32
    assert tensor([[1, 0], [0, 2]], "csr").nnz == 2
    assert tensor((np.zeros((0, 2), int), np.array([1.0, 2.0])), shape=()).values.tolist() == [3.0]
    assert tensor((np.array([1, 3]), np.array([1.0, 2.0])), shape=(4,)).to_numpy().tolist() == [0, 1, 0, 2]
    assert tensor(DENSE.astype(">f8")).dtype == np.float64
    assert np.array_equal(tensor(DENSE[:, ::2]).to_numpy(), DENSE[:, ::2])


def test_signed_zeros_and_nan_of_dense_data() -> None:
    packed = tensor(np.array([0.0, -0.0, np.nan, np.inf]), "csf")
    assert packed.nnz == 2
    assert np.isnan(packed.values[0])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_dtypes_are_kept(dtype: str) -> None:
    packed = tensor(DENSE.astype(dtype), "csr")
    assert packed.dtype == dtype
    assert np.array_equal(packed.to_numpy(), DENSE.astype(dtype))


BAD: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "float16": (DENSE.astype(np.float16), {}, DataError, r"float16 are not supported; convert with \.astype\('float32'\)"),
    "longdouble": (DENSE.astype(np.longdouble), {}, DataError, r"convert with \.astype\('float64'\)"),
    "object": (DENSE.astype(object), {}, DataError, "give numbers of one type"),
    "text": (np.array(["a"]), {}, DataError, "not supported"),
    "none": (None, {}, DataError, "cannot make a tensor of builtins.NoneType"),
    "a path": ("matrix.mtx", {}, DataError, r"'matrix.mtx' is a path: read it with sparsetune.tensor"),
    "ragged": ([[1, 2], [3]], {}, DataError, "cannot make a tensor of builtins.list"),
    "masked": (np.ma.masked_array([1.0], [True]), {}, DataError, "masked array"),
    "three parts": ((1, 2, 3), {}, DataError, r"a tuple of 3 is no tensor"),
    "values first": ((np.ones(3), (np.zeros(3, int), np.zeros(3, int))), {}, DataError, "the values come second"),
    "float coordinates": ((np.ones((2, 3)), np.ones(3)), {}, DataError, "integer array"),
    "transposed coordinates": ((np.ones((3, 2), int), np.ones(3)), {}, DataError, "2 coordinates and 3 values"),
    "negative": ((np.array([[0, -1]]), np.ones(2)), {"shape": (3,)}, DataError, "coordinate -1 of entry 1 in mode 0 is out of range"),
    "too large": ((np.array([[0, 3]]), np.ones(2)), {"shape": (3,)}, DataError, "coordinate 3 of entry 1 .* the extent is 3"),
    "no shape": ((np.zeros((2, 0), int), np.zeros(0)), {}, ShapeError, "give shape="),
    "other shape": (DENSE, {"shape": (3, 2)}, ShapeError, r"shape \(2, 3\), not the shape \(3, 2\)"),
    "order of shape": ((np.zeros((2, 1), int), np.ones(1)), {"shape": (3,)}, ShapeError, "has 1 modes"),
    "negative shape": ((np.zeros((1, 1), int), np.ones(1)), {"shape": (-1,)}, ShapeError, "from 0 on"),
    "format": (DENSE, {"format": "csf; 0"}, FormatError, "not a permutation"),
    "unknown format": (DENSE, {"format": "cr"}, FormatError, "unknown format 'cr'"),
    "complex to real": (DENSE * 1j, {"dtype": "float64"}, DataError, "imaginary part"),
    "unknown dtype": (DENSE, {"dtype": "flaot64"}, DataError, "is no dtype"),
    "fill": (DENSE.astype(int), {"fill_value": np.inf}, DataError, "fill value inf cannot be stored as int64"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data(name: str) -> None:
    data, keywords, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as caught:
        tensor(data, **keywords)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("pos", "crd", "message"),
    [
        ([0, 1, 9], [0, 1, 2], "do not delimit"),
        ([0, 2, 1], [0, 1, 2], "do not delimit"),
        ([1, 2, 3], [0, 1, 2], "do not delimit"),
        ([0, 1, 3], [0, 1, 7], "indices go from 0 to 7, but the extent is 3"),
        ([0, 1, 3], [0, -1, 2], "indices go from -1 to 2"),
    ],
)
def test_broken_scipy_arrays(each_kernel: str, pos: list[int], crd: list[int], message: str) -> None:
    array = sp.csr_array((np.ones(3), np.array([0, 1, 2]), np.array([0, 1, 3])), shape=(2, 3))
    array.indptr, array.indices = np.array(pos, np.int32), np.array(crd, np.int32)
    with pytest.raises(DataError, match=message):
        tensor(array)
