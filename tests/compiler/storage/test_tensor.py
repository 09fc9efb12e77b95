"""Array manners of tensors, compared with NumPy and SciPy."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparsetune.compiler.errors import DataError, FormatError, ResourceError, ShapeError
from sparsetune.compiler.format import Format
from sparsetune.compiler.native.memory import Room
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor
from storage_cases import cases, formats, holds_many

RNG = np.random.default_rng(1)


def example(*shape: int, format: str | None = None, dtype: str = "float64") -> tuple[np.ndarray, Tensor]:
    dense = np.where(RNG.random(shape) < 0.4, RNG.integers(1, 9, shape), 0).astype(dtype)
    return dense, tensor(dense, format or ("csr" if len(shape) == 2 else "csf"))


def test_repr_tells_shape_format_entries_and_memory() -> None:
    packed = tensor(sp.csr_array(np.eye(3)))
    assert repr(packed) == "Tensor(shape=(3, 3), format='dense, compressed', dtype=float64, nnz=3, memory=52 B)"
    assert repr(tensor(np.full(2, np.inf), fill_value=np.inf)).endswith("memory=16 B, fill_value=inf)")


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "dense", "hh", "sd"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_products(format: str, dtype: str) -> None:
    dense, packed = example(5, 4, format=format, dtype=dtype)
    x, y = RNG.integers(0, 5, 4).astype(dtype), RNG.integers(0, 5, (4, 3)).astype(dtype)
    for right in (x, y):
        assert np.array_equal(packed @ right, dense @ right)
        assert (packed @ right).dtype == (dense @ right).dtype
        assert np.array_equal(right.T @ packed.T, right.T @ dense.T)
    assert np.array_equal((packed @ tensor(y, "csr")).to_numpy(), dense @ y)
    assert np.array_equal((packed @ sp.csr_array(y)).to_numpy(), dense @ y)
    assert np.array_equal(packed @ tensor(x, "csf"), dense @ x)


def test_products_of_other_orders() -> None:
    dense, packed = example(3, 4, 5)
    assert np.array_equal(packed @ np.arange(5.0), dense @ np.arange(5.0))
    assert np.array_equal(packed @ np.ones((5, 2)), dense @ np.ones((5, 2)))
    vector, packed_vector = example(5)
    assert packed_vector @ np.arange(5.0) == vector @ np.arange(5.0)
    assert np.arange(5.0) @ packed_vector == vector @ np.arange(5.0)
    with pytest.raises(ShapeError, match=r"shapes \(3, 4, 5\) and \(4,\) do not match"):
        packed @ np.ones(4)
    with pytest.raises(ShapeError, match="takes matrices"):
        packed @ tensor(np.ones((5, 2)), "csr")


@pytest.mark.parametrize("format", ["csf", "coo", "dense", "dsh; 2, 0, 1", "sdd"])
def test_sums(format: str) -> None:
    dense, packed = example(3, 4, 5, format=format)
    assert packed.sum() == dense.sum()
    for axis in (0, 1, -1, (0, 2), (1, 2), (0, 1, 2)):
        got = packed.sum(axis)
        assert np.array_equal(got.to_numpy() if isinstance(got, Tensor) else got, dense.sum(axis))
    with pytest.raises(ShapeError, match="axis 3 is no mode"):
        packed.sum(3)
    small = tensor(np.full((3, 3), 100, np.int8), "csr")
    assert small.sum(0).tolist() == [300] * 3
    assert small.sum(0).dtype == np.full((3, 3), 1, np.int8).sum(0).dtype
    assert tensor(np.ones((2, 3), bool), "csr").sum(1).tolist() == [3, 3]


def test_sums_as_numpy_calls_them() -> None:
    dense, packed = example(3, 4)
    assert np.sum(packed) == dense.sum()  # type: ignore[call-overload]
    assert np.array_equal(np.sum(packed, axis=0), dense.sum(0))  # type: ignore[call-overload]
    small = tensor(np.full((3, 3), 100, np.int8), "csr")
    assert small.sum(0, dtype="int8").tolist() == [44] * 3
    assert small.sum(dtype="float32").dtype == np.float32
    with pytest.raises(DataError, match="out="):
        packed.sum(0, out=np.zeros(4))  # type: ignore[arg-type]


def test_what_does_not_fit_into_memory() -> None:
    wide = tensor((np.array([[5], [7]]), np.array([1.0])), "dcsr", shape=(2**40, 2**40))
    with pytest.raises(ResourceError, match="does not fit into memory"):
        wide.to_numpy()


def test_hypersparse_coordinates_never_meet_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.compiler.native.memory.available", lambda: Room(2**30, "a test"))
    array = sp.coo_array((np.ones(3), ([0, 5, 10**9], [1, 2, 10**9])), shape=(2 * 10**9, 3 * 10**9))
    packed = tensor(array, "dcsr")
    assert packed.nbytes < 200
    assert np.array_equal(packed.to_coordinates()[0], [[0, 5, 10**9], [1, 2, 10**9]])


def test_extents_cost_nothing() -> None:
    places = np.array([[3, 5], [5, 9], [1, 2]])
    whole = tensor((places, np.array([1.0, 2.0])), "csf", shape=(2**61,) * 3)
    assert whole[3, 5, 1] == 1
    assert whole[5].to_coordinates()[0].tolist() == [[9], [2]]
    assert whole[:, ::-1, 2:].shape == (2**61, 2**61, 2**61 - 2)
    assert whole.sum(0).to_coordinates()[0].tolist() == [[5, 9], [1, 2]]
    assert whole.sum() == 3
    flat = whole[3]
    for refused in (lambda: flat @ flat, lambda: flat.sum(0), lambda: whole.sum((0, 1))):
        with pytest.raises(ResourceError, match="does not fit into memory"):
            refused()


def test_coordinates_too_large_for_any_shape() -> None:
    with pytest.raises(ShapeError, match="below"):
        tensor((np.array([[2**63]], np.uint64), [1.0]))
    with pytest.raises(DataError, match="coordinate -7"):
        tensor((np.array([[-7]]), [1.0]))


SLICES = [3, -1, slice(1, 3), slice(None), slice(None, None, 2), slice(4, 0, -2), slice(2, 2), slice(0, 99)]


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dense", "hd"])
@pytest.mark.parametrize("rows", SLICES, ids=str)
@pytest.mark.parametrize("columns", SLICES[:4], ids=str)
def test_slices(format: str, rows: int | slice, columns: int | slice) -> None:
    dense, packed = example(6, 5, format=format)
    got, expected = packed[rows, columns], dense[rows, columns]
    assert np.array_equal(got.to_numpy() if isinstance(got, Tensor) else got, expected)
    if isinstance(rows, slice) and isinstance(columns, slice):
        assert got.format == packed.format
    if format == "csc" and isinstance(got, Tensor):
        assert not got.format.is_dense


def test_slices_of_other_orders() -> None:
    dense, packed = example(3, 4, 5)
    assert np.array_equal(packed[1].to_numpy(), dense[1])
    assert np.array_equal(packed[..., 2].to_numpy(), dense[..., 2])
    assert np.array_equal(packed[:, np.int64(2), 1:].to_numpy(), dense[:, 2, 1:])
    assert str(packed.transpose((2, 0, 1))[:, 1].format) == "dense, compressed; 1, 0"
    for key, message in (
        (packed, "of type Tensor of mode 0 is neither"),
        ([0, 1], "of type list"),
        (9, "out of range for mode 0 of extent 3"),
        ((0, 0, 0, 0), "4 subscripts"),
        ("a", "neither"),
        (True, "neither"),
    ):
        with pytest.raises(ShapeError, match=message):
            packed[key]


def test_transposition_shares_everything() -> None:
    dense, packed = example(3, 4, 5)
    for modes in (None, (0, 2, 1), (2, 0, 1), (1, 2, 0)):
        moved = packed.transpose(modes)
        assert np.array_equal(moved.to_numpy(), dense.transpose(modes))
        assert moved.values is packed.values
    assert str(tensor(np.eye(3), "csr").T.format) == "dense, compressed; 1, 0"
    with pytest.raises(ShapeError, match="each of the modes 0 to 2 once"):
        packed.transpose((0, 0, 1))


def test_nothing_densifies_on_its_own() -> None:
    _, packed = example(3, 3)
    with pytest.raises(TypeError, match=r"call \.to_numpy\(\)"):
        np.asarray(packed)
    with pytest.raises(TypeError):
        np.logaddexp(np.ones((3, 3)), packed)
    with pytest.raises(TypeError, match="truth"):
        bool(packed)
    with pytest.raises(TypeError, match="not iterated"):
        list(packed)
    assert len(packed) == 3


def test_casts_and_fill_values() -> None:
    _, packed = example(3, 3)
    assert packed.astype("float32").dtype == np.float32
    assert packed.astype("float64") is packed
    assert packed.astype("int8").levels is packed.levels
    infinite = tensor((np.array([[0]]), np.array([1.0])), shape=(2,), fill_value=np.inf)
    assert infinite.to_numpy().tolist() == [1.0, np.inf]
    with pytest.raises(DataError, match="cannot be stored as int32"):
        infinite.astype("int32")
    with pytest.raises(DataError, match=r"no fill value.*to_coordinates"):
        infinite.to_scipy()
    with pytest.raises(DataError, match="fill value of 0"):
        infinite.sum()
    with pytest.raises(DataError, match="at least one dimension"):
        tensor(1.0).to_scipy()
    with pytest.raises(FormatError, match="but the tensor has 2 modes"):
        packed.convert("sss")


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases(), data=st.data())
def test_coordinates_and_scipy_round_trip(case: tuple, data: st.DataObject) -> None:
    shape, coordinates, values = case
    packed = tensor((coordinates, values), data.draw(formats(len(shape)).filter(holds_many)), shape=shape)
    again = tensor(packed.to_coordinates(), packed.format, shape=shape)
    assert np.array_equal(again.to_numpy(), packed.to_numpy())
    if shape and all(shape):
        assert np.array_equal(packed.to_scipy().toarray(), packed.to_numpy())


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (0, 3), (2, 3, 4), (2, 1, 3, 4)], ids=str)
def test_arrays_are_copied_into_any_order_of_modes(shape: tuple[int, ...]) -> None:
    given = np.arange(prod(shape), dtype=np.float64).reshape(shape)
    orders = list(permutations(range(len(shape))))
    for first, second in product(orders, orders):
        stored = tensor(given, Format(("dense",) * len(shape), first))
        made = stored.convert(Format(("dense",) * len(shape), second))
        assert np.array_equal(made.values, given.transpose(second).ravel())
        assert made is stored if first == second else not np.shares_memory(made.values, stored.values)
