"""Scheduled kernels against NumPy: every kind of directive, on shapes that divide by nothing, with one and several threads."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from numpy.typing import NDArray
from plain_code import plain
from scheduled_operands import MTTKRP, OPERANDS, SDDMM, SPGEMM, SPMM, SPMV, TTM, TTMC, TTV, T, dense, sparse
from sparsetune.compiler.ir.nodes import F64, Const, Fill, For, Node, Parallel, Store
from sparsetune.compiler.ir.rewrite import nodes_of
from sparsetune.compiler.pipeline import compile_kernel

pytestmark = pytest.mark.cc

NONZEROS = "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 16); parallelize(p0, cpu_thread, atomics)"
REGISTERS = (
    "precompute(B(i,j,k)*C(j,r)*D(k,r), [r], [r], acc); precompute([0], B(i,j,k)*D(k,r), [r], [r], w); parallelize(i, cpu_thread, no_races)"
)


A, B = sparse(57, 43), sparse(43, 35, seed=2)


def case(expression: str, subscripts: str, result: str, **operands: NDArray[np.float64]) -> None:
    OPERANDS[expression] = operands, np.einsum(f"{subscripts}->{result}", *operands.values())


case(SPMV, "ij,j", "i", A=A, x=dense(43))
case(SPMM, "ij,jk", "ik", A=A, X=dense(43, 70))
case(SPGEMM, "ik,kj", "ij", A=A, B=B)
case(SDDMM, "ij,ik,jk", "ij", A=A, U=dense(57, 37), V=dense(43, 37))
case(MTTKRP, "ijk,jr,kr", "ir", B=T, C=dense(13, 21), D=dense(25, 21, seed=4))
case(TTV, "ijk,k", "ij", B=T, c=dense(25))
case(TTM, "ijk,kr", "ijr", B=T, D=dense(25, 9))
case(TTMC, "ijk,jr,ks", "irs", B=T, C=dense(13, 5), D=dense(25, 7))

CASES = [
    *((SPMV, "A=csr", schedule) for schedule in (
        "split(i, i0, i1, 8)",
        "split(i, i0, i1, 8); parallelize(i0, cpu_thread, no_races)",
        "split(i, i0, i1, 100)",
        "split_up(i, i0, i1, 4)",
        "split(i, i0, i1, 16); split(i1, i2, i3, 4)",
        "split(i, i0, i1, 8); reorder(i1, i0)",
        "split(j, j0, j1, 8)",
        "split(j, j0, j1, 8); reorder(j0, i, j1)",
        "parallelize(i, cpu_thread, no_races, dynamic, 4)",
        "parallelize(i, cpu_thread, no_races, guided)",
        "pos(j, p, A); split(p, p0, p1, 4)",
        "pos(j, p, A); split(p, p0, p1, 4); split(p1, p2, p3, 2)",
        "pos(j, p, A); split(p, p0, p1, 4); coord(p1, jj)",
        "collapse(i, j, f)",
        "collapse(i, j, f); pos(f, p, A)",
        "collapse(i, j, f); split(f, f0, f1, 100)",
        NONZEROS,
        "bound(j, jb, 43, max_exact)",
        "unroll(j, 4)",
        "precompute(A(i,j)*x(j), [], [], t)",
        "parallelize(j, cpu_vector, parallel_reduction)",
        "protocol(A, step, locate)",
        'convert(A, "csc"); reorder(j, i)',
        'build(gcc, "-O1")',
    )),
    (SPMV, "", "split_up(j, j0, j1, 5); reorder(j1, i, j0); split_up(j0, a, b, 3)"),
    (SPMV, "A=csc", "parallelize(j, cpu_thread, atomics)"),
    (SPMV, "A=csc", "parallelize(j, cpu_thread, temporary)"),
    (SPMV, "A=csc", "parallelize(j, cpu_thread, parallel_reduction, static)"),
    (SPMV, "A=dcsr", NONZEROS),
    (SPMV, "A=dcsr", "parallelize(i, cpu_thread, no_races)"),
    *((SPMM, "A=csr", schedule) for schedule in (
        "reorder(i, k, j)",
        "reorder(k, i, j)",
        "split(k, k0, k1, 16); reorder(k0, i, j, k1)",
        "precompute(A(i,j)*X(j,k), k, k, w); parallelize(i, cpu_thread, no_races, dynamic, 16)",
        "precompute(A(i,j)*X(j,k), k, kw, w); prefetch(j, X, 8); parallelize(kw, cpu_vector, ignore_races); parallelize(k, cpu_vector, ignore_races)",  # noqa: E501
        "split(k, k0, k1, 16); reorder(i, k0, j, k1); precompute(A(i,j)*X(j,k), k1, k1, w)",
        "split(k, k0, k1, 16); reorder(i, k0, j, k1); precompute(A(i,j)*X(j,k), k1, k1w, w); parallelize(k1w, cpu_vector, ignore_races)",
        NONZEROS,
    )),
    *((SPGEMM, "A=csr B=csr C=csr", schedule) for schedule in (
        "workspace(w, list)", "workspace(w, bitmap)", "workspace(w, hashed)",
        "assemble(C, insert)",
        "parallelize(i, cpu_thread, no_races, dynamic, 4); assemble(C, insert)",
        "split(i, i0, i1, 8); parallelize(i0, cpu_thread, no_races); assemble(C, insert)",
        "parallelize(i, cpu_thread, no_races)",
        "parallelize(i, cpu_thread, no_races, dynamic, 4)",
        "parallelize(i, cpu_thread, no_races, guided); workspace(w, hashed)",
        "split(i, i0, i1, 8); parallelize(i0, cpu_thread, no_races, static)",
    )),
    (SPGEMM, "A=dcsr B=csr C=dcsr", "parallelize(i, cpu_thread, no_races); assemble(C, insert)"),
    (SPGEMM, "A=dcsr B=csr C=dcsr", "parallelize(i, cpu_thread, no_races, dynamic, 1)"),
    (SPGEMM, "A=csr B=csc C=csr", "merge(k, two_finger)"),
    (SPGEMM, "A=csr B=csc C=csr", "merge(k, locate)"),
    (SPGEMM, "A=csr B=csc C=csc", ""),
    (SPGEMM, "A=coo B=csr C=coo", ""),
    *((SDDMM, "A=csr S=csr", schedule) for schedule in (
        "parallelize(i, cpu_thread, no_races)",
        "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 16); parallelize(p0, cpu_thread, no_races)",
        "precompute(U(i,k)*V(j,k), [], [], t); parallelize(k, cpu_vector, parallel_reduction)",
        "precompute(U(i,k)*V(j,k), [], [], t); split(k, k0, k1, 8); parallelize(k1, cpu_vector, parallel_reduction)",
    )),
    (MTTKRP, "B=csf", REGISTERS),
    (MTTKRP, "B=dss", REGISTERS),
    (MTTKRP, "B=csf", "collapse(i, j, f); collapse(f, k, g); pos(g, p, B); split(p, p0, p1, 32); parallelize(p0, cpu_thread, atomics)"),
    (TTV, "B=csf A=dcsr", "collapse(i, j, f); pos(f, p, B); split(p, p0, p1, 16); parallelize(p0, cpu_thread, no_races)"),
    (TTM, "B=csf A=ssd", "collapse(i, j, f); pos(f, p, B); split(p, p0, p1, 16); parallelize(p0, cpu_thread, no_races)"),
    (TTM, "B=csf A=csf", "assemble(A, insert)"),
    (TTM, "B=csf A=csf", "parallelize(i, cpu_thread, no_races, dynamic, 2)"),
    (TTM, "B=csf A=dss", "parallelize(i, cpu_thread, no_races, dynamic, 2)"),
    (TTMC, "B=csf", "precompute(B(i,j,k)*D(k,s), [s], [s], w)"),
    (TTMC, "B=csf", "loopfuse(2, false, [])"),
]  # fmt: skip


EXTENTS: dict[str, dict[str, int]] = {SPMM: {"k": 70}, MTTKRP: {"r": 21}}
WITH_EXTENTS = [(*case, fixed) for case in CASES for fixed in ({}, EXTENTS.get(case[0])) if fixed is not None]


@pytest.mark.parametrize(("expression", "formats", "schedule", "extents"), WITH_EXTENTS)
def test_scheduled_kernels_are_right(expression: str, formats: str, schedule: str, extents: dict[str, int]) -> None:
    operands, expected = OPERANDS[expression]
    kinds = dict(item.split("=") for item in formats.split())
    kernel = st.compile(expression, kinds, extents, schedule)
    for threads in (1, 3):
        result = kernel(threads=threads, **operands)
        found = result.to_numpy() if isinstance(result, st.Tensor) else result
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("assembly", ["append", "insert"])
def test_parallel_assembly_gives_the_serial_result_whatever_thread_runs_a_row(assembly: str) -> None:
    operands, _ = OPERANDS[SPGEMM]
    kinds = {"A": "csr", "B": "csr", "C": "csr"}
    serial = st.compile(SPGEMM, kinds)(threads=1, **operands)
    schedule = f"parallelize(i, cpu_thread, no_races, dynamic, 1); assemble(C, {assembly})"
    bound = st.compile(SPGEMM, kinds, schedule=schedule).bind(threads=7, **operands)
    for _ in range(50):
        found = bound()
        for own, other in zip(found.levels, serial.levels, strict=True):
            assert own.pos is None or np.array_equal(own.pos, other.pos)
            assert own.crd is None or np.array_equal(own.crd, other.crd)
        assert np.array_equal(found.values, serial.values)


@pytest.mark.parametrize(
    ("form", "protocols", "assembly"),
    [
        ("csr", "append, append", "append"),
        ("csr", "insert, append", "append"),
        ("csr", "insert, insert", "insert"),
        ("csr", "append, insert", "insert"),
        ("csc", "insert, insert", "insert"),
        ("dcsr", "append, append", "append"),
        ("dcsr", "insert, insert", "insert"),
        ("coo", "insert, insert", "insert"),
    ],
)
def test_the_protocol_of_a_result_says_how_it_is_assembled(form: str, protocols: str, assembly: str) -> None:
    operands, expected = OPERANDS[SPGEMM]
    kinds = {"A": "csr", "B": "csr", "C": form}
    said = st.compile(SPGEMM, kinds, schedule=f"protocol(C, {protocols})")
    texts = [plain(st.compile(SPGEMM, kinds, schedule=schedule).source) for schedule in (f"assemble(C, {assembly})", "")]
    assert plain(said.source) == texts[0]
    assert (plain(said.source) == texts[1]) is (assembly == "append")
    assert np.allclose(said(**operands).to_numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("race", ["atomics", "temporary"])
def test_racing_threads_lose_no_update(race: str) -> None:
    """Integers add up exactly in any order, so a single lost update shows."""
    rng = np.random.default_rng(5)
    matrix = rng.integers(0, 5, (300, 40))
    x = rng.integers(0, 5, 40)
    bound = st.compile(SPMV, {"A": "csc"}, schedule=f"parallelize(j, cpu_thread, {race}, dynamic, 1)").bind(A=matrix, x=x, threads=8)
    for _ in range(200):
        assert np.array_equal(bound(), matrix @ x)


def test_accumulators_of_threads_share_no_cache_line() -> None:
    source = st.compile("a = A(i,j) * x(j)", {"A": "csr"}, schedule="parallelize(i, cpu_thread, temporary)").source
    assert "a_copies" in source
    assert "a_stride" in source


@pytest.mark.parametrize(("expression", "shared"), [("A(j,r) = T(i,j,k) * B(i,r) * C(k,r)", True), ("a = T(i,j,k) * c(k)", False)])
def test_threads_clear_results_of_their_own_where_these_are_large(expression: str, shared: bool) -> None:
    """One thread would bring the lines of all to its own caches."""
    made = compile_kernel(expression, {"T": "csf"}, schedule="parallelize(i, cpu_thread, temporary)")
    body = made.default_kernel.spec.function.body
    cleared = [node for node in nodes_of(body, Fill) if node.array.endswith("_copies")]
    by_threads = [loop for loop in nodes_of(body, For) if isinstance(loop.tag, Parallel) for node in loop.body.children if _clears(node)]
    assert (len(cleared), len(by_threads)) == ((0, 1) if shared else (1, 0))


def _clears(node: Node) -> bool:
    return isinstance(node, Store) and node.array.endswith("_copies") and node.value == Const(0.0, F64)


def test_stores_to_one_tensor_share_its_private_copies() -> None:
    """Each point of the merge of two operands has a store of its own."""
    rng = np.random.default_rng(5)
    a, b = (np.where(rng.random((30, 20)) < 0.4, rng.integers(1, 9, (30, 20)), 0) for _ in "ab")
    x, z = rng.integers(0, 5, (2, 30))
    kernel = st.compile(
        "y(j) = A(i,j) * x(i) + B(i,j) * z(i)", {"A": "csr", "B": "csr"}, schedule="reorder(i, j); parallelize(i, cpu_thread, temporary)",
    )  # fmt: skip
    assert kernel.source.count("y_copies = st_allocate") == 1
    assert np.array_equal(kernel(A=a, B=b, x=x, z=z, threads=3), x @ a + z @ b)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("y(i) = A(i,j,k)", "parallelize(j, cpu_thread, parallel_reduction)"),
        ("y(i) = A(i,j,k)", "parallelize(k, cpu_thread, temporary)"),
        ("Y(i,l) = A(i,j,k) * X(k,l)", "parallelize(j, cpu_thread, parallel_reduction)"),
        ("Y(i,j,l) = A(i,j,k) * X(k,l)", "reorder(l, i, j, k); parallelize(k, cpu_thread, parallel_reduction)"),
        ("Y(i,j,l) = A(i,j,k) * X(k,l)", "split(i, i0, i1, 4); parallelize(k, cpu_thread, parallel_reduction)"),
    ],
)
def test_private_copies_have_only_what_their_loop_may_write(text: str, schedule: str) -> None:
    """Twice as many rows of two entries each take about twice as many stores: a copy of the whole result for each would take four times."""
    kernel = st.compile(text, {"A": "csf"}, schedule=schedule)
    indices = text[text.index("(") + 1 : text.index(")")].replace(",", "")
    stores = []
    for rows in (40, 80):
        a, x = np.zeros((rows, 6, 5)), np.random.default_rng(rows).random((5, 3))
        a[:, 1, 2] = a[:, 4, 3] = np.arange(1, rows + 1)
        bound = kernel.bind(A=a, X=x, threads=3) if "X" in text else kernel.bind(A=a, threads=3)
        expected = np.einsum(f"ijk,kl->{indices}", a, x) if "X" in text else np.einsum(f"ijk->{indices}", a)
        np.testing.assert_allclose(bound(), expected, rtol=1e-12)
        stores.append(bound.count()["stores"])
    assert stores[1] < 2.2 * stores[0]


def test_prefetch_names_an_operand_or_one_access_of_it() -> None:
    by_name, by_access, none = (
        st.compile(SPMM, {"A": "csr"}, schedule=text).source.count("st_prefetch(")
        for text in ("prefetch(j, X, 8)", "prefetch(j, X(j,k), 8)", "")
    )
    assert by_name == by_access > none


def test_workspaces_that_one_case_of_a_merge_does_not_read() -> None:
    """What fills them is kept as far as it has effects, and the count of their entries is left out."""
    b, c = sparse(4, 4, 5, seed=2, density=0.4), sparse(5, 4, 5, seed=3, density=0.4)
    d = sparse(4, 5, seed=4, density=0.4)
    kernel = st.compile(
        "A(i,j) = B(i,i,j) + C(j,i,j) * D(i,j)", {"A": "dcsr", "B": "csf", "C": "csf", "D": "sd"},
        schedule="split(j, v1, v2, 4); precompute(C(j,i,j), v2, v2, w); workspace(w, bitmap)",
    )  # fmt: skip
    np.testing.assert_allclose(kernel(B=b, C=c, D=d).to_numpy(), np.einsum("iij->ij", b) + np.einsum("jij->ij", c) * d)


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62])
def test_huge_numbers_take_no_time(size: int) -> None:
    for schedule in (f"split(r, a, b, {size}); parallelize(b, cpu_vector, no_races)", f"split_up(i, a, b, {size})"):
        assert st.compile(MTTKRP, {"B": "csf"}, schedule=schedule).source
    assert st.compile(MTTKRP, {"B": "csf"}, schedule=f"bound(r, a, {size}, max_exact)").source


def test_threads_share_no_pattern_in_semirings_that_share_none() -> None:
    """Only sums of products take an operand's pattern; others assemble their results, which threads do over the outermost level alone."""
    arguments = ("A(i,j) = B(j,i)", {"B": "dcsc", "A": "dcsr"})
    schedule = "pos(j, p, B); parallelize(p, cpu_thread, no_races)"
    compile_kernel(*arguments, None, schedule)
    with pytest.raises(st.ScheduleError, match="parallelize the outermost loop, over i"):
        compile_kernel(*arguments, None, schedule, semiring=("min", "max"))


@pytest.mark.parametrize("size", [5000, 2**31, 2**62])
def test_huge_tiles_and_numbers_of_tiles_are_run_through_quickly(size: int) -> None:
    matrix, x = sparse(9, 8, density=0.4), dense(8)
    tiles = (
        f"split_up(i, a, b, {size})",
        f"split(i, a, b, {size}); reorder(b, a, j)",
        f"split_up(j, a, b, {size}); split_up(b, c, d, {size})",
        f"split_up(i, a, b, {size}); split_up(a, c, d, {size})",
        f"split(i, a, b, {size}); split(b, c, d, {size}); reorder(d, a, c)",
        f"split(i, a, b, {size}); split(a, c, d, {size}); reorder(d, b, c)",
        f"split_up(i, a, b, {size}); split(a, c, d, {size}); reorder(b, c, d)",
        f"collapse(i, j, f); split(f, a, b, {size}); split(a, c, d, {size}); split(c, e, g, {size})",
    )
    for schedule in (*tiles, f"collapse(i, j, f); pos(f, p, A); split_up(p, a, b, {size})"):
        np.testing.assert_allclose(st.compile(SPMV, {"A": "csr"}, schedule=schedule)(A=matrix, x=x), matrix @ x)


def test_vector_loops_around_rows_in_registers() -> None:
    """Rows of registers are vectors already, which `omp simd` reduces none of."""
    schedule = (
        "split(k, a, b, 32); reorder(i, a, j, b); precompute(A(i,j) * X(j,k), b, b, w); parallelize(j, cpu_vector, parallel_reduction)"
    )
    matrix, other = sparse(9, 8, density=0.4), dense(8, 64)
    result = st.compile(SPMM, {"A": "csr"}, extents={"k": 64}, schedule=schedule)(A=matrix, X=other)
    np.testing.assert_allclose(result, matrix @ other)
