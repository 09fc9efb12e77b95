"""Dense loops by BLAS: every routine in every layout against NumPy, inside sparse loops, on threads, and what is refused."""

from __future__ import annotations

import ctypes
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential.batch import build_together
from differential.interpreted import interpreted
from forest_samples import SPTTN, expected, forests, operands, sparse_formats, wrong
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.native import blas
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.addresses import leaves, path_to
from sparsetune.compiler.schedule.directives import CALLS, Call
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.forests.peeling import ForestRules
from sparsetune.tuner.model import problem_candidates
from sparsetune.tuner.resolve import make_problem

EXPRESSIONS = {
    "gemm": "C(i,j) = 2 * A(i,k) * B(k,j)",
    "gemv": "C(i) = -3 * A(i,k) * B(k)",
    "ger": "C(i,j) = A(i) * B(j) * 4",
    "axpy": "C(i) = 5 * A(i)",
    "dot": "C = A(i) * B(i)",
}
EXTENTS = {"i": 5, "j": 6, "k": 7}


def arrays(expression: str, dtype: str) -> dict[str, Any]:
    source = np.random.default_rng(1)
    shapes = {name: [EXTENTS[index] for index in indices.split(",")] for name, indices in re.findall(r"([AB])\(([^)]*)\)", expression)}
    return {name: source.integers(-4, 5, shape).astype(dtype) for name, shape in shapes.items()}


def transposed(expression: str, names: tuple[bool, ...]) -> str:
    """Return an expression in which some tensors have their two modes the other way round."""
    turned = {name for name, is_turned in zip("CAB", names, strict=True) if is_turned}

    def written(found: re.Match[str]) -> str:
        return "{}({},{})".format(*found.group(1, 3, 2)) if found[1] in turned else found[0]

    return re.sub(r"([CAB])\((\w),(\w)\)", written, expression)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_layout(dtype: str, tmp_path: Path) -> None:
    """In C and in the interpreter; small integers are exact in every order of summation."""
    cases = {transposed(text, names): routine for routine, text in EXPRESSIONS.items() for names in product((False, True), repeat=3)}
    kernels = {text: compile_kernel(text, {}, dtype=dtype, schedule=f"call([], {routine})") for text, routine in cases.items()}
    build_together([kernel.default_kernel for kernel in kernels.values()], tmp_path, "layouts")
    for text, kernel in kernels.items():
        given = arrays(text, dtype)
        right = interpreted(compile_kernel(text, {}, dtype=dtype).bind(**given))[0]
        assert f"st_{cases[text]}_" in kernel.source
        assert np.array_equal(kernel(**given), right), text
        assert np.array_equal(interpreted(kernel.bind(**given))[0], right), text


@pytest.mark.parametrize("extents", [(0, 3, 3), (3, 0, 3), (3, 3, 0), (1, 1, 1), (1, 5, 2), (5, 1, 2), (5, 2, 1)])
def test_empty_and_single_extents(extents: tuple[int, int, int]) -> None:
    i, j, k = extents
    left, right = np.ones((i, k)), np.ones((k, j))
    for target in ("cpu", "interpreter"):
        found = st.compile("C(j,i) = A(i,k) * B(k,j)", schedule="call([], gemm)", target=target)(A=left, B=right)
        assert np.array_equal(found, (left @ right).T)


def test_operations_are_counted() -> None:
    given = arrays(EXPRESSIONS["gemm"].replace("2 * ", ""), "float64")
    text = "C(i,j) = A(i,k) * B(k,j)"
    counts = [st.compile(text, schedule=schedule).bind(**given, threads=1).count()["flops"] for schedule in ("", "call([], gemm)")]
    assert counts == [2 * 5 * 6 * 7] * 2


def test_rows_below_stored_entries_on_threads() -> None:
    matrix = scipy.sparse.random_array((300, 200), density=0.05, format="csr", rng=np.random.default_rng(0))
    dense = np.random.default_rng(1).random((200, 24))
    schedule = "call([], axpy); parallelize(i, cpu_thread, no_races)"
    for threads in (1, 2):
        found = st.compile("Y(i,r) = M(i,j) * X(j,r)", {"M": "csr"}, schedule=schedule)(M=matrix, X=dense, threads=threads)
        assert np.allclose(found, matrix.toarray() @ dense)


def test_copies_of_threads() -> None:
    matrix = scipy.sparse.random_array((300, 200), density=0.05, format="csc", rng=np.random.default_rng(0))
    dense = np.random.default_rng(1).random((200, 24))
    schedule = "call([], axpy); parallelize(j, cpu_thread, temporary)"
    kernel = st.compile("Y(i,r) = M(i,j) * X(j,r)", {"M": "csc"}, schedule=schedule)
    assert np.allclose(kernel(M=matrix, X=dense, threads=2), matrix.toarray() @ dense)


def calls(program: Program, schedule: Schedule) -> list[Schedule]:
    """Return a schedule with one leaf handed to a routine, in all ways."""
    paths = dict.fromkeys(path_to(program.statement, address) for address, _ in leaves(program.statement))
    return [Schedule((*schedule, Call(routine, path=path))) for path in paths for routine in CALLS]


def callable_ones(text: str, schedules: list[Schedule]) -> list[Schedule]:
    """Return the schedules that can be carried out and lowered."""

    def compiled(schedule: Schedule) -> bool:
        try:
            made = compile_kernel(text, sparse_formats(parse(text)), schedule=schedule)
            return bool(made.source)
        except ScheduleError:
            return False

    return [schedule for schedule in schedules if compiled(schedule)]


@pytest.mark.parametrize("name", ["TTMc3", "SDDMM-SpMM"])
def test_leaves_of_forests(name: str, tmp_path: Path) -> None:
    """Every leaf of sampled forests that a routine computes, by BLAS and by the interpreter."""
    space, text = forests(name, ForestRules(fused=False)), SPTTN[name]
    drawn = [schedule for one in space.sample(6, seed=3) for schedule in calls(space.program(one), one)]
    found = callable_ones(text, drawn)
    assert {word for schedule in found for word in CALLS if f", {word})" in str(schedule)} >= {"axpy"}
    assert not wrong(text, found[:8], tmp_path, "calls")
    assignment = parse(text)
    given = operands(assignment, 4)
    for schedule in found[:2]:
        result = interpreted(compile_kernel(text, sparse_formats(assignment), schedule=schedule).bind(**given))[0]
        assert np.array_equal(result, expected(assignment, given))


def test_the_threads_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """One inside of parallel loops, otherwise no more than the kernel's; afterwards as many as before."""
    seen = [8]
    tell, change = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: seen[-1]), ctypes.CFUNCTYPE(None, ctypes.c_int)(seen.append)
    monkeypatch.setattr(blas, "_counters", lambda: iter([tuple(ctypes.cast(one, ctypes.c_void_p).value for one in (tell, change))]))
    blas._table.cache_clear()
    try:
        rows = "reorder(i,k,j); call([], axpy); parallelize(i, cpu_thread, no_races)"
        assert np.allclose(_threaded(rows)(A=np.eye(3), B=np.ones((3, 2)), threads=2), 1)
        assert seen == [8, 1, 8]
        assert np.allclose(_threaded("call([], gemm)")(A=np.eye(3), B=np.ones((3, 2)), threads=3), 1)
        assert seen == [8, 1, 8, 3, 8]
    finally:
        blas._table.cache_clear()


def _threaded(schedule: str) -> Any:
    return compile_kernel("Held(i,j) = A(i,k) * B(k,j)", {}, schedule=schedule)


def test_the_blas_of_scipy_tells_its_threads() -> None:
    table = blas._table()
    assert all(getattr(table, name) for name in blas.ROUTINES)


@pytest.mark.parametrize(
    ("expression", "options", "schedule", "message"),
    [
        ("C(i,j) = A(i,k) * B(k,j)", {"dtype": "int64"}, "call([], gemm)", "not i64 by"),
        ("C(i,j) = A(i,k) * B(k,j)", {"semiring": ("min", "+")}, "call([], gemm)", "by min and"),
        ("C(i,j) = A(i,k) * B(k,j)", {}, "split(j, j0, j1, 4); call([], gemm)", "pieces of loops"),
        ("C(i,j) = A(i,k) * B(j,j)", {}, "call([], gemv)", "is not what gemv computes"),
        ("C(i) = A(i) + B(i)", {}, "call([], axpy)", "is no product"),
        ("C(i,j) = A(i,k) * B(k,j)", {}, "reorder(k,i,j); call([], axpy); parallelize(k, cpu_thread, atomics)", "may meet at one"),
        ("C(i,j) = A(i,k) * B(k,j)", {}, "reorder(i,k,j); call([], axpy); parallelize(j, cpu_vector, no_races)", "does loop j already"),
    ],
)
def test_what_is_refused(expression: str, options: dict[str, Any], schedule: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message) as error:
        _ = st.compile(expression, {}, schedule=schedule, **options).source
    assert "\n" not in str(error.value)


def test_tuning_tries_large_products_by_blas() -> None:
    """The last product of a chain of extents of 16 is a call at first, one of 8 has one to try, and integers have none."""
    text, source = "A(i,m) = B(i,j) * C(j,l) * D(l,m)", np.random.default_rng(0)
    matrix = scipy.sparse.random_array((40, 40), density=0.1, format="csr", rng=source)
    firsts = {}
    for extent, dtype in ((16, "float64"), (4, "float64"), (16, "int64")):
        dense = {"C": source.random((40, extent)).astype(dtype), "D": source.random((extent, extent)).astype(dtype)}
        problem = make_problem(text, {"B": matrix.astype(dtype), **dense}, threads=1)
        holes = [hole for one in problem_candidates(problem) for hole in one.template.holes if hole.name.startswith("blas")]
        firsts[extent, dtype] = {str(hole.usual) for hole in holes}
        fitting = [one for one in problem_candidates(problem) if any(hole.name.startswith("blas") for hole in one.template.holes)]
        for one in fitting[:2]:
            found = compile_kernel(text, problem.formats, schedule=one.template.fill())(B=matrix, **dense)
            assert np.allclose(found, matrix.toarray() @ dense["C"] @ dense["D"])
    assert any("gemm" in first for first in firsts[16, "float64"])
    assert firsts[4, "float64"] == {"None"}
    assert not firsts[16, "int64"]
