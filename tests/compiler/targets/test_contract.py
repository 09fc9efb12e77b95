"""What every target gives: kernels that compute the same, sparse results that are counted and filled, stages, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.build.bound import BoundKernel
from sparsetune.compiler.errors import BuildError, ScheduleError
from sparsetune.compiler.ir.memory import InterpreterError
from sparsetune.compiler.targets import registry
from sparsetune.compiler.targets.interpreter import InterpretedLaunch

RNG = np.random.default_rng(3)
A = scipy.sparse.random_array((7, 6), density=0.4, format="csr", rng=RNG)
B = scipy.sparse.random_array((6, 5), density=0.4, format="csr", rng=RNG)
X = RNG.random((6, 4))
CASES = {
    "rows": ("y(i) = A(i,j) * x(j)", {"A": A, "x": X[:, 0].copy()}, None, "", A @ X[:, 0]),
    "threads": ("Y(i,k) = A(i,j) * X(j,k)", {"A": A, "X": X}, None, "parallelize(i, cpu_thread, no_races)", A @ X),
    "copies": ("y(j) = A(i,j) * z(i)", {"A": A, "z": np.ones(7)}, None, "parallelize(i, cpu_thread, temporary)", A.sum(axis=0)),
    "product": ("C(i,j) = A(i,k) * B(k,j)", {"A": A, "B": B}, "csr", "", (A @ B).toarray()),
    "counted and filled": (
        "C(i,j) = A(i,k) * B(k,j)", {"A": A, "B": B}, "csr", "assemble(C, insert); parallelize(i, cpu_thread, no_races)", (A @ B).toarray(),
    ),
    "scalar": ("a = A(i,j) * A(i,j)", {"A": A}, None, "", A.multiply(A).sum()),
}  # fmt: skip


def bound(name: str, target: str) -> BoundKernel:
    expression, operands, form, schedule, _ = CASES[name]
    formats = {operand: "csr" for operand, data in operands.items() if scipy.sparse.issparse(data)}
    formats |= {} if form is None else {expression[0]: form}
    return st.compile(expression, formats, schedule=schedule, target=target).bind(**operands, threads=2)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", CASES)
def test_targets_compute_the_same(name: str, target: str) -> None:
    run = bound(name, target)
    for _ in range(2):
        found = run()
        np.testing.assert_allclose(found.to_numpy() if isinstance(found, st.Tensor) else found, CASES[name][-1])


def test_the_interpreter_counts() -> None:
    run = bound("rows", "interpreter")
    run()
    launch = run.launch
    assert isinstance(launch, InterpretedLaunch)
    assert launch.outcome is not None
    assert launch.outcome.counts.loads >= 2 * A.nnz


def test_the_interpreter_sees_races_that_a_schedule_does_not_allow() -> None:
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule="parallelize(i, cpu_thread, no_races)", target="interpreter")
    native = kernel.default_kernel
    native.__dict__["source"] = kernel.source.replace("y_vals[i]", "y_vals[0]")
    with pytest.raises(InterpreterError):
        native.bind(A=A, x=X[:, 0].copy())()


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_the_last_stage_is_the_source(target: str) -> None:
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, target=target)
    names = [*kernel.stages]
    assert names[:2] == ["concrete", "lowering"]
    assert names[-1] == registry.find_target(target).language
    assert kernel.stages[names[-1]] == kernel.source


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_half_of_a_symmetric_matrix_is_read_without_a_gpu(target: str) -> None:
    matrix = scipy.sparse.csr_array(A[:6] + A[:6].T)
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "dense, symmetric"}, convert="never", target=target)
    found = kernel(A=st.tensor(matrix, "dense, symmetric"), x=X[:, 0].copy())
    np.testing.assert_allclose(found, matrix @ X[:, 0])


def test_kernels_of_any_target_are_pickled_by_its_name() -> None:
    kernel = pickle.loads(pickle.dumps(st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, target="interpreter")))
    assert kernel.target == "interpreter"
    np.testing.assert_allclose(kernel(A=A, x=X[:, 0].copy()), A @ X[:, 0])


def test_there_is_no_other_target() -> None:
    with pytest.raises(ScheduleError, match=r"^target 'fpga' is not supported: there is no code generation for it; use target cpu or"):
        st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, target="fpga")


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_units_that_a_target_lacks_are_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises((BuildError, ScheduleError), match=r"^parallelize\(i, gpu_block\)"):
        st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule="parallelize(i, gpu_block, no_races)", target=target)
