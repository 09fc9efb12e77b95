"""Operands in memory of a GPU, for which memory of the processor stands in: taken as they are, results left there, streams."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from cffi import FFI
from device_arrays import Foreign, OnlyDlpack, Rows, TorchRows, on_executor
from sparsetune.compiler.storage.on_device import DeviceArray, DeviceTensor, device_array, device_tensor
from sparsetune.compiler.targets.cuda_launch import CudaLaunch
from sparsetune.compiler.targets.streams import current_stream

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]

SPMV, SPMM = "y(i) = A(i,j) * x(j)", "Y(i,k) = A(i,j) * X(j,k)"
MATRIX = scipy.sparse.csr_array(np.arange(12.0).reshape(4, 3) % 5)


@pytest.mark.parametrize("rows", [Rows, TorchRows])
@pytest.mark.parametrize("vector", [Foreign, OnlyDlpack])
def test_operands_are_taken_as_they_are_and_results_left_there(rows: Any, vector: Any) -> None:
    if vector is OnlyDlpack:
        pytest.importorskip("cuda.core")
    x = np.arange(1.0, 4.0)
    bound = on_executor(SPMV, {"A": "csr"}).bind(A=rows(MATRIX), x=vector(x))
    y = bound()
    assert isinstance(y, DeviceArray)
    np.testing.assert_array_equal(y.to_numpy(), MATRIX @ x)
    assert bound.launch.transferred == 0
    x *= 2
    np.testing.assert_array_equal(bound().to_numpy(), MATRIX @ x)
    assert device_array(y) is y
    assert y.__cuda_array_interface__["shape"] == (4,)


def test_arrays_of_the_host_beside_them_are_transferred_and_counted() -> None:
    x = np.arange(1.0, 4.0)
    bound = on_executor(SPMV, {"A": "csr"}).bind(A=MATRIX, x=Foreign(x))
    np.testing.assert_array_equal(bound().to_numpy(), MATRIX @ x)
    assert bound.launch.transferred == MATRIX.indptr.nbytes + MATRIX.indices.nbytes + MATRIX.data.nbytes


def test_sparse_results_are_left_there() -> None:
    dense = Foreign(np.ones((4, 2))), Foreign(np.ones((3, 2)))
    sampled = on_executor("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csr", "Z": "csr"})(B=Rows(MATRIX), C=dense[0], D=dense[1])
    assert isinstance(sampled, DeviceTensor)
    assert sampled.shape == (4, 3)
    np.testing.assert_array_equal(sampled.values.to_numpy(), 2 * MATRIX.data)
    assert sampled.levels[1].parts["crd"].size == MATRIX.nnz
    np.testing.assert_array_equal(sampled.to_scipy().toarray(), 2 * MATRIX.toarray())  # the pattern is the operand's, which others own
    square = scipy.sparse.csr_array(np.eye(5, k=1) + np.eye(5))
    product = on_executor("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"})(A=Rows(square), B=Rows(square))
    wanted = (square @ square).tocsr()
    found = (product.values, product.levels[1].parts["crd"], product.levels[1].parts["pos"])
    made = scipy.sparse.csr_array(tuple(array.to_numpy() for array in found), shape=(5, 5))
    np.testing.assert_array_equal(made.toarray(), wanted.toarray())
    np.testing.assert_array_equal(product.to_numpy(), wanted.toarray())
    assert isinstance(product.to_tensor(), st.Tensor)
    with pytest.raises(st.DataError, match="belongs to another library"):
        device_tensor(Rows(square)).to_tensor()
    chained = on_executor(SPMV, {"A": "csr"})(A=sampled, x=Foreign(np.ones(3)))
    np.testing.assert_array_equal(chained.to_numpy(), 2 * (MATRIX @ np.ones(3)))


COUNTED = {
    "product": ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", ""),
    "sum": ("C(i,j) = A(i,j) + B(i,j)", "A=csr B=csr C=csr", ""),
    "sum by warps": ("C(i,j) = A(i,j) + B(i,j)", "A=csr B=csr C=csr", "parallelize(i, gpu_warp, no_races); assemble(C, insert)"),
    "rows and products": ("C(i,j) = A(i,j) * B(i,j)", "A=csr B=csr C=dcsr", ""),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counted_results_move_nothing_but_their_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting, summing up and filling happen where operands are: what the host reads in between is as large as a scalar."""
    expression, text, schedule = COUNTED[name]
    left, right = (scipy.sparse.csr_array(np.random.default_rng(seed).integers(0, 3, (40, 40)).astype(float)) for seed in (0, 1))
    kernel = on_executor(expression, dict(pair.split("=") for pair in text.split()), schedule)
    wanted = {"product": left @ right, "rows and products": left * right}.get(name, left + right)
    asked: list[int] = []
    bound = kernel.bind(A=Rows(left), B=Rows(right))
    monkeypatch.setattr(CudaLaunch, "_moved", lambda _, status, count: asked.append(count))
    made = bound()
    assert isinstance(made, DeviceTensor)
    assert not any(asked)
    assert "st_device.take(" in kernel.source
    monkeypatch.undo()
    values, place = made.values.to_numpy(), made.levels[1].parts["crd"].to_numpy()
    rows = made.levels[1].parts["pos"].to_numpy()
    if "crd" in made.levels[0].parts:
        counts = np.zeros(40, np.int64)
        counts[made.levels[0].parts["crd"].to_numpy()] = np.diff(rows)
        rows = np.concatenate(([0], np.cumsum(counts)))
    found = scipy.sparse.csr_array((values, place, rows), shape=(40, 40))
    np.testing.assert_array_equal(found.toarray(), wanted.toarray())


@pytest.mark.parametrize("count", [1, 1000])
def test_a_result_that_begins_with_infinity_is_filled_where_it_is(count: int) -> None:
    matrix = scipy.sparse.csr_array((np.ones(3), ([0, 0, count // 2], [0, 1, 1])), shape=(count, 2))
    bound = on_executor("y(j) = A(i,j) * x(i)", {"A": "csr"}, "parallelize(i, gpu_thread, atomics)", semiring=("min", "+")).bind(
        A=Rows(matrix), x=Foreign(np.arange(float(count)))
    )
    wanted = [min((matrix[i, j] + i for i in range(count) if matrix[i, j]), default=np.inf) for j in range(2)]
    np.testing.assert_array_equal(bound().to_numpy(), wanted)
    assert bound.launch.transferred <= 8
    made = bound.kernel.executable.empty((count,), np.dtype(float))
    bound.launch.fill(made, np.inf)
    assert (made.to_numpy() == np.inf).all()


def test_scalars_float32_and_minima() -> None:
    total = on_executor("a = x(i) * z(i)", {})(x=Foreign(np.ones(7, np.float32)), z=Foreign(np.ones(7, np.float32)))
    assert total.to_numpy() == np.float32(7)
    assert total.dtype == np.float32
    least = on_executor(SPMV, {"A": "csr"}, semiring=("min", "+"))(A=Rows(MATRIX), x=Foreign(np.ones(3)))
    wanted = [min((value + 1 for value in row[row > 0]), default=np.inf) for row in MATRIX.toarray()]
    np.testing.assert_array_equal(least.to_numpy(), wanted)


def test_results_go_where_they_are_wanted() -> None:
    made = np.zeros((4, 2))
    out = Foreign(made)
    assert on_executor(SPMM, {"A": "csr"})(A=Rows(MATRIX), X=Foreign(np.ones((3, 2))), out=out) is out
    np.testing.assert_array_equal(made, MATRIX @ np.ones((3, 2)))


PAIRS = (
    "split(k, t, k1, 2); reorder(i, t, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); collapse(i, t, f);"
    " parallelize(f, gpu_thread, no_races)"
)


def beginning_at(rest: int, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy that begins so many bytes behind a multiple of 16."""
    room = np.empty(values.nbytes + 32, np.uint8)
    first = -room.ctypes.data % 16 + rest
    made = room[first : first + values.nbytes].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


@pytest.mark.parametrize(("operand", "result"), [(0, 0), (8, 0), (0, 8), (8, 8)])
def test_arrays_that_begin_between_16_bytes_are_copied_where_16_are_used_at_once(operand: int, result: int) -> None:
    x, made = beginning_at(operand, np.arange(12.0).reshape(3, 4)), beginning_at(result, np.zeros((4, 4)))
    kernel = on_executor(SPMM, {"A": "csr"}, PAIRS, extents={"k": 4})
    matrix = Rows(MATRIX)
    matrix.indptr, matrix.data = (Foreign(beginning_at(8, part)) for part in (MATRIX.indptr, MATRIX.data))
    bound = kernel.bind(A=matrix, X=Foreign(x), out=Foreign(made))
    for factor in (1, 3):
        x *= factor
        bound()
        np.testing.assert_array_equal(made, MATRIX @ x)
    launch = bound.launch
    places = zip(launch.kernel.parameters, launch.arrays, launch.memory, strict=True)
    taken = {parameter.name: array.pointer == int(FFI().cast("uintptr_t", memory)) for parameter, array, memory in places}
    assert taken == {"A2_pos": True, "A2_crd": True, "A_vals": True, "X_vals": not operand, "Y_vals": not result}
    assert launch.transferred == 0


def test_evaluate_takes_them_too() -> None:
    y = st.evaluate(SPMV, {"A": Rows(MATRIX), "x": Foreign(np.ones(3))}, target="cuda-executor")
    np.testing.assert_array_equal(y.to_numpy(), MATRIX @ np.ones(3))


VECTOR = np.ones(5)


class Unwilling(OnlyDlpack):
    """An array whose library raises an error when it is asked for it."""

    def __init__(self) -> None:
        super().__init__(np.ones(3))

    def __dlpack__(self, **_: Any) -> Any:
        raise RuntimeError("not now")


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        ({"x": Foreign(np.ones((3, 2)).T[0])}, "^operand 'x': its elements are on a GPU and do not lie one after another"),
        ({"A": Foreign(np.ones((4, 3)))}, "^operand 'A' is on a GPU as dense, dense of float64, and the kernel reads .* nothing"),
        ({"x": Foreign(np.ones(3)), "out": np.ones(4)}, r"^out takes the result, which is \(4,\) of float64 in memory of the GPU"),
        ({"x": Foreign(np.ones(3)), "out": Foreign(np.ones(8)[::2])}, "^out: its elements are on a GPU and do not lie one after"),
        ({"x": Foreign(np.ones(3)), "out": Foreign(np.ones(4), data=(8, True))}, "^out is read-only"),
        ({"x": Foreign(VECTOR[:3]), "out": Foreign(VECTOR[1:])}, "^out shares memory with operand 'x'"),
        ({"x": Foreign(np.ones(3), strides=())}, "^operand 'x': what it says of its memory on a GPU .* means nothing"),
        ({"x": Foreign(np.ones(3), shape=(-3,))}, "^operand 'x': what it says of its memory on a GPU .* means nothing"),
        ({"x": Foreign(np.ones(3), data=(0, False))}, "^operand 'x': what it says of its memory on a GPU .* means nothing"),
        ({"x": Foreign(np.ones(3), mask=np.ones(3))}, "^operand 'x': it has a mask"),
        ({"x": Unwilling()}, "^operand 'x': its library does not hand it over through DLPack: RuntimeError: not now"),
        ({"A": Rows(MATRIX, indptr=MATRIX.indptr[:-1])}, r"^operand 'A': its arrays have shapes \(4,\), .* not those of a matrix \(4, 3\)"),
        ({"A": Rows(MATRIX, indices=MATRIX.indices[1:])}, "^operand 'A': its arrays have shapes"),
        ({"A": Rows(MATRIX, indptr=MATRIX.indptr.astype(np.int16))}, "^operand 'A': its indices are of int16 and int32"),
    ],
)
def test_what_does_not_fit_is_refused(operands: dict[str, Any], message: str) -> None:
    with pytest.raises(st.DataError, match=message):
        on_executor(SPMV, {"A": "csr"})(**{"A": MATRIX, "x": np.ones(3), **operands})


@pytest.mark.parametrize("shape", [(), (3, 1)])
def test_another_number_of_modes_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(st.ShapeError, match=rf"^operand 'x' has {len(shape)} modes, but the expression indexes 1 of them"):
        on_executor(SPMV, {"A": "csr"})(A=Rows(MATRIX), x=Foreign(np.ones(shape)))


def test_operations_on_them_are_not_counted() -> None:
    with pytest.raises(st.DataError, match="operations are counted on the processor; copy the operands to the host"):
        on_executor(SPMV, {"A": "csr"}).bind(A=Rows(MATRIX), x=np.ones(3)).count()


def test_the_processor_takes_them_as_their_library_copies_them() -> None:
    class Copied(Foreign):
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return self.array

    y = st.compile(SPMV, {"A": "csr"})(A=MATRIX, x=Copied(np.ones(3)))
    np.testing.assert_array_equal(y, MATRIX @ np.ones(3))
    with pytest.raises(st.DataError):
        st.compile(SPMV, {"A": "csr"})(A=MATRIX, x=Foreign(np.ones(3)))
    typed = st.compile(SPMV, {"A": "csr"}).default_kernel
    vector = device_tensor(Foreign(np.ones(3)))
    with pytest.raises(st.DataError, match="are in memory of a GPU; use target cuda, or copy them to the host"):
        typed(A=MATRIX, x=vector)


def test_streams_are_those_of_any_library() -> None:
    assert current_stream() is None
    streams = SimpleNamespace(ptr=7), SimpleNamespace(cuda_stream=8), 9
    for stream, handle in zip(streams, (7, 8, 9), strict=True):
        with st.on_stream(stream):
            assert current_stream() == handle
            y = on_executor(SPMV, {"A": "csr"})(A=Rows(MATRIX), x=Foreign(np.ones(3)))
            np.testing.assert_array_equal(y.to_numpy(), MATRIX @ np.ones(3))
    assert current_stream() is None
    with pytest.raises(st.DataError, match=r"^str is no stream of a GPU"), st.on_stream("mine"):
        pass
