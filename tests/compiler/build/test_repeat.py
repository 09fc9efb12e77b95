"""Calls like one before: they skip what was found out, and never what may have changed."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.build.inputs import StoredInput
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.errors import DataError, ShapeError, SparsetuneError

pytestmark = pytest.mark.cc
SPMV = "y(i) = A(i,j) * x(j)"


def matrix(rows: int = 30, columns: int = 20, form: Any = "csr") -> Any:
    return sp.random_array((rows, columns), density=0.3, format=form, rng=np.random.default_rng(rows))


def vector(length: int = 20) -> np.ndarray[Any, Any]:
    return np.random.default_rng(length).random(length)


def plain(a: Any, x: Any) -> Any:
    return st.evaluate(SPMV, {"A": a, "x": x})


def compiled(form: str = "csr") -> Callable[[Any, Any], Any]:
    kernel = st.compile(SPMV, {"A": form})
    return lambda a, x: kernel(A=a, x=x)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with every call that takes the whole path."""
    found: list[str] = []
    whole = TypedKernel.bind_operands

    def counted(self: TypedKernel, *given: Any, **named: Any) -> Any:
        found.append(self.spec.expression)
        return whole(self, *given, **named)

    monkeypatch.setattr(TypedKernel, "bind_operands", counted)
    return found


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("is_tensor", [False, True], ids=["scipy", "tensor"])
def test_what_was_found_out_is_not_worked_out_again(form: str, is_tensor: bool, bindings: list[str]) -> None:
    a = matrix(form=form)
    data = st.tensor(a) if is_tensor else a
    for call in (plain, compiled(form)):
        results = [call(data, vector()), call(data, vector())]
        bindings.clear()
        for x in (vector(), 2 * vector()):
            results.append(call(data, x))
            np.testing.assert_allclose(results[-1], a @ x)
        assert not bindings
        assert len({id(result) for result in results}) == len(results)
        assert results[0].tolist() == results[2].tolist()


def test_dense_operands_numbers_and_results_of_any_order(bindings: list[str]) -> None:
    left, right = np.arange(12.0).reshape(3, 4), np.ones((4, 700))
    for _ in range(3):
        np.testing.assert_allclose(st.evaluate("Z(i,k) = X(i,j) * Y(j,k) * s", {"X": left, "Y": right, "s": 2.0}), 2 * left @ right)
        assert st.evaluate("s = X(i,j)", {"X": left}) == left.sum()
        np.testing.assert_allclose(st.evaluate("y(i) += X(i,j)", {"X": left, "y": np.ones(3)}), left.sum(1) + 1)
    assert len(bindings) == 3
    assert isinstance(st.evaluate("s = X(i,j)", {"X": left}), np.float64)


def test_large_results_are_aligned_in_every_call() -> None:
    kernel, left = st.compile("Y(i,j) = X(i,j) * 2"), np.ones((100, 70))
    for _ in range(5):
        assert kernel(X=left).ctypes.data % 128 == 0


CHANGES: list[tuple[str, Callable[[Any], None], type[SparsetuneError] | None]] = [
    ("a coordinate outside", lambda a: a.indices.__setitem__(3, 1000), DataError),
    ("a negative coordinate", lambda a: a.indices.__setitem__(0, -1), DataError),
    ("positions that decrease", lambda a: a.indptr.__setitem__(4, 150), DataError),
    ("positions beyond the end", lambda a: a.indptr.__setitem__(-1, 10**6), DataError),
    ("a first position that is not 0", lambda a: a.indptr.__setitem__(0, 1), DataError),
    ("fewer coordinates", lambda a: setattr(a, "indices", a.indices[:50].copy()), DataError),
    ("positions that are a list", lambda a: setattr(a, "indptr", a.indptr.tolist()), DataError),
    ("values of two dimensions", lambda a: setattr(a, "data", a.data[:, None].copy()), DataError),
    ("coordinates that are no integers", lambda a: setattr(a, "indices", a.indices.astype(float)), DataError),
    ("unsorted coordinates", lambda a: a.indices.__setitem__(slice(0, a.indptr[1]), a.indices[: a.indptr[1]][::-1].copy()), None),
    ("coordinates that repeat", lambda a: a.indices.__setitem__(1, a.indices[0]), None),
    ("wider coordinates", lambda a: setattr(a, "indices", a.indices.astype(np.int64)), None),
    ("values of another type", lambda a: setattr(a, "data", a.data.astype(np.float32)), None),
    ("values of another layout", lambda a: setattr(a, "data", np.repeat(a.data, 2)[::2]), None),
    ("other values", lambda a: a.data.__imul__(3), None),
    ("room behind the last row", lambda a: setattr(a, "indices", np.append(a.indices, 7)), None),
    ("an empty last row", lambda a: a.indptr.__setitem__(-1, a.indptr[-2]), None),
]


@pytest.mark.parametrize("call", [plain, compiled()], ids=["evaluate", "kernel"])
@pytest.mark.parametrize(("change", "error"), [pair[1:] for pair in CHANGES], ids=[pair[0] for pair in CHANGES])
def test_arrays_that_changed_are_looked_at_again(
    call: Callable[[Any, Any], Any], change: Callable[[Any], None], error: type[SparsetuneError] | None
) -> None:
    a, x = matrix(), vector()
    for _ in range(3):
        np.testing.assert_allclose(call(a, x), a @ x)
    change(a)
    for _ in range(2):
        if error is None:
            stored = a.indptr[-1]
            expected = sp.csr_array((a.data[:stored], a.indices[:stored], a.indptr), shape=a.shape, copy=True).toarray() @ x
            np.testing.assert_allclose(call(a, x), expected, rtol=1e-5)
        else:
            with pytest.raises(error):
                call(a, x)


@pytest.mark.parametrize("call", [plain, compiled()], ids=["evaluate", "kernel"])
def test_other_operands_are_told_apart(call: Callable[[Any, Any], Any]) -> None:
    a, x = matrix(), vector()
    for _ in range(3):
        call(a, x)
    with pytest.raises(ShapeError, match="index 'j' has two extents"):
        call(a, vector(21))
    with pytest.raises(ShapeError, match="'x' has 2 modes"):
        call(a, x[:, None])
    with pytest.raises(DataError, match="float16"):
        call(a, x.astype(np.float16))
    wide = np.random.default_rng(1).random(40)
    for data, other in ((a, wide[::2]), (a, x.astype(np.float32)), (a, list(x)), (matrix(40), x), (a.toarray(), x), (a.tocoo(), x)):
        for _ in range(2):
            np.testing.assert_allclose(call(data, other), data @ np.asarray(other), rtol=1e-6)
    x.setflags(write=False)
    np.testing.assert_allclose(call(a, x), a @ x)


def test_values_of_a_tensor_are_seen_and_another_dtype_of_theirs_is_refused() -> None:
    a, x = st.tensor(matrix()), vector()
    for _ in range(3):
        plain(a, x)
    a.values[:] *= 2
    np.testing.assert_allclose(plain(a, x), 2 * (matrix() @ x))
    a.values.dtype = np.int64  # of the same size
    np.testing.assert_allclose(plain(a, x), a.to_scipy() @ x)
    a.values.shape = (-1, 1)
    with pytest.raises(DataError, match="another shape or dtype"):
        plain(a, x)


def scaled(a: Any, x: Any) -> Any:
    return st.evaluate("Y(i,j) = exp(A(i,j)) * x(j)", {"A": a, "x": x}, output_format="csr")


def test_results_with_the_pattern_of_a_tensor_are_made_again(bindings: list[str]) -> None:
    kernel = st.compile("Y(i,j) = exp(A(i,j)) * x(j)", {"A": "csr", "Y": "csr"})
    a, x = st.tensor(matrix()), vector()
    stored = matrix().toarray() != 0

    def wanted(data: st.Tensor, factor: Any) -> Any:
        return np.where(stored, np.exp(data.to_numpy()), 0) * factor

    for call in (scaled, lambda a, x: kernel(A=a, x=x)):
        first = call(a, x)
        held = first.to_numpy()
        call(a, x)
        bindings.clear()
        for data in (a, a.with_values(-a.values), a, first):  # other values, the same index arrays
            found = call(data, 2 * x)
            assert found.format == st.Format("csr")
            np.testing.assert_allclose(found.to_numpy(), wanted(data, 2 * x))
        assert not bindings
        assert np.array_equal(first.to_numpy(), held)
        assert not np.shares_memory(found.values, first.values)
        other = st.tensor(sp.csr_array(np.roll(matrix().toarray(), 1, axis=1)))  # as many entries, elsewhere
        np.testing.assert_allclose(call(other, x).to_numpy(), np.where(other.to_numpy(), np.exp(other.to_numpy()), 0) * x)
        narrow = a.with_values(a.values.astype(np.float32))
        assert call(narrow, x.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(call(a, x).to_numpy(), wanted(a, x))


def squared(a: Any, threads: int) -> Any:
    return st.evaluate("Y(i,j) = A(i,k) * A(k,j)", {"A": a}, output_format="csr", threads=threads)


def added(a: Any, threads: int) -> Any:
    return st.evaluate("Y(i,j) = A(i,k) * A(k,j) + A(i,j)", {"A": a}, output_format="dcsr", threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("call", "wanted"), [(squared, lambda a: a @ a), (added, lambda a: a @ a + a)], ids=["product", "sum"])
def test_results_with_patterns_of_their_own_are_made_again(call: Any, wanted: Any, threads: int, bindings: list[str]) -> None:
    """Matrices of one shape and as many entries in other places give other patterns; earlier results stay what they were."""
    a = matrix(90, 90)
    first, other = a, sp.csr_array((2 * a.data, (7 * a.indices + 3) % 90, a.indptr), shape=a.shape)
    for pack in (lambda data: data, st.tensor):
        given, second = pack(first), pack(other)
        made = [call(given, threads) for _ in range(3)]
        bindings.clear()
        made += [call(given, threads) for _ in range(3)]
        assert not bindings
        found = call(second, threads)
        np.testing.assert_allclose(found.to_numpy(), wanted(other).toarray(), rtol=1e-9)
        for result in made:
            np.testing.assert_allclose(result.to_numpy(), wanted(first).toarray(), rtol=1e-9)
            assert result.format == found.format
        memory = [array for result in made for array in (result.values, result.levels[1].parts["crd"])]
        assert not any(np.shares_memory(one, two) for place, one in enumerate(memory) for two in memory[:place])


def test_a_result_with_a_pattern_of_its_own_keeps_no_operand() -> None:
    a = st.tensor(matrix(40, 40))
    result = [squared(a, 1) for _ in range(3)][-1]
    watched = [weakref.ref(part) for part in (a.levels[1], a.values, a.levels[1].parts["crd"])]
    del a
    gc.collect()
    assert [reference() for reference in watched] == [None] * 3
    np.testing.assert_allclose(result.to_numpy(), (matrix(40, 40) @ matrix(40, 40)).toarray())


def test_a_result_with_a_pattern_of_its_own_is_read_anew_by_the_next_expression() -> None:
    """It lies elsewhere in every call."""
    a, expressions = st.tensor(matrix(40, 40)), ["Y(i,j) = A(i,k) * A(k,j)", "z(i) = Y(i,j) * x(j)"]
    for _ in range(4):
        product, total = st.evaluate_all(expressions, {"A": a, "x": vector(40)}, {"Y": "csr"})
        whole = (a.to_scipy() @ a.to_scipy()).toarray()
        np.testing.assert_allclose(product.to_numpy(), whole)
        np.testing.assert_allclose(total, whole @ vector(40))
        a.values[:] *= 2


def test_index_arrays_of_a_result_do_not_outlive_their_tensors() -> None:
    a = st.tensor(matrix())
    made = [scaled(a, vector()) for _ in range(3)]
    watched = [weakref.ref(a.levels[1]), weakref.ref(made[2])]
    del a, made
    gc.collect()
    assert [reference() for reference in watched] == [None] * 2


def test_nothing_of_an_operand_is_kept() -> None:
    a, x = matrix(), vector()
    kernel = st.compile(SPMV, {"A": "csr"})
    for _ in range(3):
        kernel(A=a, x=x)
        plain(a, x)
    watched = [weakref.ref(a.indices), weakref.ref(a.data), weakref.ref(x), weakref.ref(a)]
    del a, x
    gc.collect()
    assert [reference() for reference in watched] == [None] * 4


def test_many_threads_make_the_same_call() -> None:
    kernel, a = st.compile(SPMV, {"A": "csr"}), matrix(300, 200)
    faults: list[str] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(200):
            x = random.random(200)
            if not np.allclose(kernel(A=a, x=x, threads=1), a @ x) or not np.allclose(plain(a, x), a @ x):
                faults.append(f"thread {seed}")

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not faults


def test_options_of_a_call_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    a, x = matrix(), vector()
    kernel = st.compile(SPMV, {"A": "csr"})
    for _ in range(3):
        kernel(A=a, x=x, threads=1)
        st.evaluate(SPMV, {"A": a, "x": x}, threads=1)
    for wrong in (True, 0, 1.5, "2"):
        with pytest.raises(DataError, match="threads"):
            kernel(A=a, x=x, threads=wrong)  # type: ignore[arg-type]
        with pytest.raises(DataError, match="threads"):
            st.evaluate(SPMV, {"A": a, "x": x}, threads=wrong)  # type: ignore[arg-type]
    for _ in range(2):
        assert st.evaluate(SPMV, {"A": a, "x": x}, dtype="float32").dtype == np.float32
        assert isinstance(st.evaluate(SPMV, {"A": a, "x": x}, output_format="compressed"), st.Tensor)
        assert st.evaluate(SPMV, {"A": a, "x": x}, semiring=("max", "*")).tolist() == (a.toarray() * x).max(1).tolist()
    with pytest.raises(SparsetuneError, match="memory_bound"):
        st.evaluate(SPMV, {"A": a, "x": x}, threads=1, memory_bound=-1)
    monkeypatch.setenv("SPARSETUNE_THREADS", "nine")
    with pytest.raises(DataError, match="SPARSETUNE_THREADS"):
        kernel(A=a, x=x)


def test_a_schedule_that_was_learned_meanwhile_is_used(tmp_path: Path, bindings: list[str]) -> None:
    a, x, path = matrix(), vector(), str(tmp_path / "schedules.sqlite")
    for _ in range(3):
        st.evaluate(SPMV, {"A": a, "x": x}, database=path)
    bindings.clear()
    st.evaluate(SPMV, {"A": a, "x": x}, database=path)
    assert not bindings
    Path(path).write_bytes(b"")
    st.evaluate(SPMV, {"A": a, "x": x}, database=path)
    assert bindings


def test_a_kernel_of_compile_auto_is_repeated_too(bindings: list[str]) -> None:
    kernel: st.Kernel = st.compile(SPMV, {"A": "csr"}, schedule="auto")
    a, x = matrix(), vector()
    results = [kernel(A=a, x=x).tolist() for _ in range(4)]
    assert len(bindings) == 1
    assert results == [results[0]] * 4


def test_the_call_that_was_made_last_is_the_first_to_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors, call = [st.tensor(matrix(rows)) for rows in (30, 40)], compiled()
    for tensor in tensors:
        call(tensor, vector())
    asked, place = list[bool](), StoredInput.place

    def counted(self: StoredInput, *given: Any) -> bool:
        asked.append(place(self, *given))
        return asked[-1]

    monkeypatch.setattr(StoredInput, "place", counted)
    for _ in range(3):
        assert np.allclose(call(tensors[0], vector()), tensors[0].to_numpy() @ vector())
    assert asked == [False, True, True, True]
