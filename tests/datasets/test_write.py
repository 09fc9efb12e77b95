"""Writers, read back by us, by SciPy and by NumPy; files appear whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.datasets import load, write

RNG = np.random.default_rng(6)


def example(*shape: int, dtype: str = "float64") -> np.ndarray:
    dense = np.where(RNG.random(shape) < 0.4, RNG.standard_normal(shape) * 10.0 ** RNG.integers(-300, 300, shape), 0)
    return (RNG.integers(-99, 99, shape) * (dense != 0) if np.dtype(dtype).kind in "iub" else dense).astype(dtype)


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "hh", "dense"])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_matrices_come_back(tmp_path: Path, name: str, format: str, dtype: str) -> None:
    dense = example(7, 5, dtype=dtype)
    path = write(tensor(dense, format), tmp_path / name)
    back = load(path)
    assert np.array_equal(back.to_numpy(), dense)
    assert back.dtype == dtype
    if name.endswith(".npz"):
        assert back.format == tensor(dense, format).format
    else:
        reference = scipy.io.mmread(path)
        assert np.array_equal(reference.toarray() if sp.issparse(reference) else reference, dense)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.floats(allow_subnormal=True), single=st.floats(width=32))
def test_numbers_come_back_in_every_bit(tmp_path: Path, value: float, single: float) -> None:
    for dtype, number in (("float64", value), ("float32", single)):
        back = load(write(tensor((np.array([[0], [0]]), np.array([number], dtype))), tmp_path / "one.mtx"))
        assert np.array_equal(back.values.astype(dtype), np.array([number], dtype), equal_nan=True)


@pytest.mark.parametrize("name", ["a.tns", "a.tns.gz", "a.npz"])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_tensors_come_back(tmp_path: Path, name: str, order: int) -> None:
    dense = example(*(2, 3, 4, 2, 3)[:order])
    for one in (dense, np.zeros_like(dense)):
        assert np.array_equal(load(write(tensor(one, "csf"), tmp_path / name)).to_numpy(), one)


def test_header_of_tns_only_where_it_is_needed(tmp_path: Path) -> None:
    full = tensor((np.array([[0, 1], [2, 0], [0, 3]]), np.array([1.5, 2.0])))
    assert write(full, tmp_path / "full.tns").read_text() == "1 3 1 1.5\n2 1 4 2.0\n"
    loose = tensor((np.array([[0], [0]]), np.array([1.0])), shape=(2, 3))
    assert write(loose, tmp_path / "loose.tns").read_text() == "2\n2 3\n1 1 1.0\n"


def test_many_entries(tmp_path: Path) -> None:
    values = RNG.random(150_000)
    matrix = sp.coo_array((values, (RNG.permutation(150_000), RNG.permutation(150_000))), shape=(150_000, 150_000))
    back = load(write(matrix, tmp_path / "large.mtx")).to_scipy()
    assert (back != matrix.tocsr()).nnz == 0


def test_dense_and_scalars(tmp_path: Path) -> None:
    dense = example(3, 4, 2)
    assert np.array_equal(np.load(write(tensor(dense, "csf"), tmp_path / "a.npy")), dense)
    assert np.array_equal(load(tmp_path / "a.npy").to_numpy(), dense)
    assert load(write(2.5, tmp_path / "b.npz")).to_numpy() == 2.5
    write(np.array([[True, False]]), tmp_path / "c.mtx")
    assert load(tmp_path / "c.mtx").to_numpy().tolist() == [[1, 0]]


def test_fill_values_in_npz(tmp_path: Path) -> None:
    stored = tensor((np.array([[0], [1]]), np.array([2.0])), "coo", shape=(2, 2), fill_value=np.inf)
    back = load(write(stored, tmp_path / "inf.npz"))
    assert (back.fill_value, back.format) == (np.inf, stored.format)
    assert str(load(tmp_path / "inf.npz", "csc").format) == "dense, compressed; 1, 0"


def test_npz_of_other_libraries(tmp_path: Path) -> None:
    dense = example(4, 5)
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.bsr_array, sp.dia_array):
        sp.save_npz(tmp_path / "scipy.npz", kind(dense))
        assert np.array_equal(load(tmp_path / "scipy.npz").to_numpy(), dense)
    sparse = pytest.importorskip("sparse")
    sparse.save_npz(tmp_path / "pydata.npz", sparse.COO.from_numpy(dense))
    assert np.array_equal(load(tmp_path / "pydata.npz").to_numpy(), dense)


@pytest.mark.parametrize(
    ("name", "write_it", "message"),
    [
        ("a.npz", lambda path: np.savez(path, x=np.ones(3)), r"a.npz: holds x; a tensor is what"),
        ("a.npz", lambda path: path.write_bytes(b"PK\x03\x04broken"), r"a.npz: cannot be read as NumPy's format"),
        ("a.npz", lambda path: path.write_bytes(b""), "cannot be read"),
        (
            "a.npz",
            lambda path: np.savez(path, coords=np.full((1, 2), 9), data=np.ones(2), shape=np.array([3])),
            "a.npz: coordinate 9 of entry 0",
        ),
        ("a.npz", lambda path: np.savez(path, format=b"csr", shape=np.array([2, 2])), "a.npz: the arrays in it make no tensor"),
        ("a.npy", lambda path: np.save(path, np.array([None]), allow_pickle=True), "cannot be read as NumPy's format"),
        ("a.npy", lambda path: path.write_text("text"), "cannot be read as NumPy's format"),
        ("a.npy", lambda path: None, "a.npy: no such file"),
    ],
)
def test_broken_numpy_files(tmp_path: Path, name: str, write_it, message: str) -> None:
    write_it(tmp_path / name)
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (np.ones((2, 2, 2)), "a.mtx", "holds a matrix, not a tensor of order 3"),
        (np.ones((2, 2)) * 1j, "a.tns", "cannot hold complex values"),
        (1.0, "a.tns", "cannot hold a scalar"),
        (np.ones((2, 2)), "a.txt", r"files end in .mtx, .tns"),
        (np.ones((2, 2)), "a.npy.gz", r"files end in"),
        (np.ones((2, 2)), "missing/a.mtx", "cannot be written: No such file"),
        (tensor(np.ones((2, 2)), "csr", fill_value=np.inf), "a.mtx", "knows no fill value"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, data: object, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        write(data, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(np.eye(2), tmp_path / "a.mtx")
    before = path.read_bytes()

    class Full(io.BytesIO):
        def write(self, _data: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fdopen", lambda *_arguments: Full())
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        write(np.ones((3, 3)), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert isinstance(load(path), Tensor)
