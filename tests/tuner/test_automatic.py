"""``compile(schedule="auto")`` and ``autotune``: what evaluate would use, decided once, or tuned for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.targets.cuda import CudaTarget
from sparsetune.tuner import automatic

pytestmark = pytest.mark.cc
SPMM = "Y(i,k) = A(i,j) * X(j,k)"


@pytest.fixture
def operands() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {"A": sp.random_array((400, 300), density=0.5, format="csr", rng=rng), "X": rng.random((300, 8))}


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "schedules.sqlite")


def test_a_kernel_decides_at_its_first_call_and_keeps_what_it_decided(operands: dict[str, Any], database: str) -> None:
    wanted = st.lookup(SPMM, operands, database=database).schedule
    assert wanted.directives, "the static choice is the default: nothing is shown by it"
    kernel = st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database)
    assert not kernel.schedule.directives
    assert kernel.source == st.compile(SPMM, {"A": "csr"}).source
    bound = kernel.bind(**operands)
    assert kernel.schedule == wanted
    assert bound.kernel.schedule == wanted
    assert dict(bound.kernel.spec.extents) == {"k": 8}, "small dense extents are constants, as in evaluate"
    assert kernel.source == st.compile(SPMM, {"A": "csr"}, schedule=wanted).source
    assert np.allclose(bound(), operands["A"] @ operands["X"])
    narrow = operands["X"][:, :3]
    assert np.allclose(kernel(A=operands["A"], X=narrow), operands["A"] @ narrow)
    assert kernel.schedule == wanted


def test_a_kernel_decides_for_the_threads_of_its_first_call(operands: dict[str, Any], database: str) -> None:
    kernels = [st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database) for _ in range(3)]
    kernels[0].bind(**operands, threads=1)
    kernels[1].bind(**operands, threads=2)
    kernels[2](**operands, threads=1)
    wanted = [st.lookup(SPMM, operands, threads=threads, database=database).schedule for threads in (1, 2, 1)]
    assert wanted[0] != wanted[1], "the threads decide nothing: nothing is shown by it"
    assert [kernel.schedule for kernel in kernels] == wanted


def test_targets_that_nothing_is_tuned_for_have_the_default_schedule(operands: dict[str, Any]) -> None:
    expected = operands["A"][:9, :9] @ operands["X"][:9]
    small = {"A": operands["A"][:9, :9], "X": operands["X"][:9]}
    assert st.lookup(SPMM, operands).schedule.directives
    assert np.allclose(st.evaluate(SPMM, small, target="interpreter"), expected)
    kernel = st.compile(SPMM, {"A": "csr"}, schedule="auto", target="interpreter")
    assert np.allclose(kernel(**small), expected)
    assert not kernel.schedule.directives
    with pytest.raises(st.TuningError, match="target 'interpreter' is not one of cpu, cuda"):
        st.lookup(SPMM, small, target="interpreter")


def test_a_kernel_keeps_its_architecture_when_it_decides(operands: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def choice(*_: Any, arch: str, **__: Any) -> Schedule:
        asked.append(arch)
        return Schedule()

    monkeypatch.setattr(automatic, "choose", choice)
    kernel = st.compile(SPMM, {"A": "csr"}, schedule="auto", target="cuda-executor", arch="sm_75")
    target = kernel.specialised(operands)[0].target
    assert isinstance(target, CudaTarget)
    assert (target.arch, asked) == ("sm_75", ["sm_75"])


def test_code_for_operands_of_one_kind_is_generated_once(operands: dict[str, Any], database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database).bind(**operands)

    def lowered_again(*_arguments: Any, **_options: Any) -> None:
        raise AssertionError("lowered again")

    monkeypatch.setattr("sparsetune.compiler.kernel.lower", lowered_again)
    other = {"A": operands["A"] * 2, "X": operands["X"] + 1}
    second = st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database).bind(**other)
    assert second.kernel is first.kernel
    assert np.allclose(second(), other["A"] @ other["X"])


def test_what_a_pattern_decides_is_found_out_once(operands: dict[str, Any], database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = operands["A"]
    st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database).bind(**operands)
    with monkeypatch.context() as patched:
        patched.delattr("sparsetune.tuner.lookup.make_problem")
        matrix.data *= 2
        again = st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database).bind(**operands)
    assert np.allclose(again(), matrix @ operands["X"])
    matrix.data += 1
    assert np.allclose(again(), matrix @ operands["X"]), "values are the owner's"
    matrix.indices[: matrix.indptr[1]] = np.arange(matrix.indptr[1])
    changed = st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database).bind(**operands)
    assert np.allclose(changed(), matrix @ operands["X"]), "another pattern"


def test_a_kernel_that_decides_takes_what_others_take(operands: dict[str, Any], database: str) -> None:
    a, x = operands["A"], operands["X"]
    kernel = st.compile(SPMM, {"A": "csr"}, schedule="auto", database=database, dtype="float32", threads=1)
    out = np.empty((400, 8), np.float32)
    assert kernel(A=a.astype(np.float32), X=x.astype(np.float32), out=out) is out
    assert np.allclose(out, a @ x, rtol=1e-4)
    shortest = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule="auto", semiring=("min", "+"), database=database)
    wanted = np.where(a.toarray() != 0, a.toarray() + x[:, 0], np.inf).min(axis=1)
    assert np.allclose(shortest(A=st.tensor(a, fill_value=np.inf), x=x[:, 0]), wanted)
    with pytest.raises(st.ExpressionError, match=r"'X' of .* is missing"):
        kernel(A=a)
    with pytest.raises(st.ShapeError):
        kernel(A=a.astype(np.float32), X=x[:5].astype(np.float32))


def test_a_function_of_operands(operands: dict[str, Any], database: str) -> None:
    function = st.autotune(SPMM, database=database)
    out = np.empty((400, 8))
    assert function(**operands, out=out, threads=1) is out
    assert np.allclose(out, operands["A"] @ operands["X"])
    assert not Path(database).exists(), "nothing is tuned unless asked for"
    with pytest.raises(st.ExpressionError, match="by name"):
        function(*operands.values())


def test_a_function_tunes_once_where_it_is_asked_to(operands: dict[str, Any], database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_TUNE", "1")
    function = st.autotune(SPMM, trials=3, database=database)
    assert np.allclose(function(**operands), operands["A"] @ operands["X"])
    assert st.lookup(SPMM, operands, database=database).origin == "exact"
    written = Path(database).stat().st_mtime_ns
    function(**operands)
    assert Path(database).stat().st_mtime_ns == written


def test_a_decorated_function_has_its_expression_in_its_docstring(operands: dict[str, Any], database: str) -> None:
    @st.autotune(trials=2, database=database)
    def product(A: Any, X: Any) -> Any:  # noqa: N803  # names of the expression
        """Y(i,k) = A(i,j) * X(j,k)

        A matrix times a matrix.
        """

    assert product.__name__ == "product"
    assert np.allclose(product(operands["A"], X=operands["X"]), operands["A"] @ operands["X"])

    @st.autotune
    def plain(A: Any, X: Any) -> Any:  # noqa: N803
        "Y(i,k) = A(i,j) * X(j,k)"

    assert np.allclose(plain(**operands), operands["A"] @ operands["X"])
    with pytest.raises(st.ExpressionError, match="the first line of the docstring of matrix is no expression"):

        @st.autotune
        def matrix() -> None:
            """Multiply matrices."""

    with pytest.raises(st.ExpressionError, match="has none"):
        st.autotune(lambda: None)
    with pytest.raises(st.ExpressionError):
        st.autotune("y(i) = ")
