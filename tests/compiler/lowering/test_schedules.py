"""Scheduled kernels against NumPy: every kind of directive, on shapes that divide by nothing, with one and several threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st
from numpy.typing import NDArray
from plain_code import plain
from sparsetune.compiler.pipeline import compile_kernel

pytestmark = pytest.mark.cc

SPMV = "y(i) = A(i,j) * x(j)"
SPMM = "Y(i,k) = A(i,j) * X(j,k)"
SPGEMM = "C(i,j) = A(i,k) * B(k,j)"
SDDMM = "S(i,j) = A(i,j) * U(i,k) * V(j,k)"
MTTKRP = "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"
TTV = "A(i,j) = B(i,j,k) * c(k)"
TTM = "A(i,j,r) = B(i,j,k) * D(k,r)"
TTMC = "A(i,r,s) = B(i,j,k) * C(j,r) * D(k,s)"
NONZEROS = "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 16); parallelize(p0, cpu_thread, atomics)"
REGISTERS = (
    "precompute(B(i,j,k)*C(j,r)*D(k,r), [r], [r], acc); precompute([0], B(i,j,k)*D(k,r), [r], [r], w); parallelize(i, cpu_thread, no_races)"
)


def sparse(*shape: int, seed: int = 0, density: float = 0.12) -> NDArray[np.float64]:
    """Return a dense array with few nonzeros, an empty first and last slice and a full second one."""
    rng = np.random.default_rng(seed)
    array = rng.random(shape) * (rng.random(shape) < density)
    array[0] = array[-1] = 0
    array[1] = rng.random(shape[1:])
    return array


def dense(*shape: int, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal(shape)


A, B = sparse(57, 43), sparse(43, 35, seed=2)
T = sparse(20, 13, 25, seed=3)
OPERANDS: dict[str, tuple[dict[str, Any], NDArray[np.float64]]] = {}


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


def test_prefetch_names_an_operand_or_one_access_of_it() -> None:
    by_name, by_access, none = (
        st.compile(SPMM, {"A": "csr"}, schedule=text).source.count("st_prefetch(")
        for text in ("prefetch(j, X, 8)", "prefetch(j, X(j,k), 8)", "")
    )
    assert by_name == by_access > none


@pytest.mark.parametrize("stored", [(), (0,), (6,), (2, 5)])
def test_coordinates_of_positions_are_collapsed(stored: tuple[int, ...]) -> None:
    """Coordinates run through the whole range, not through as many as are stored."""
    b, c = np.zeros(7), dense(11)
    b[list(stored)] = 2.0
    whole = "pos(i, p, b); coord(p, q); collapse(q, j, f)"
    for schedule in (whole, f"{whole}; split(f, f0, f1, 3)", f"{whole}; split_up(f, f0, f1, 4); precompute(b(i) * c(j), [f1], [f2], w)"):
        kernel = st.compile("Z(i,j) = b(i) * c(j)", {"b": "compressed"}, schedule=schedule)
        np.testing.assert_array_equal(kernel(b=b, c=c), np.outer(b, c))


@pytest.mark.parametrize("form", ["compressed", "dense"])
@pytest.mark.parametrize("tiles", ["", "split_up(p, p0, p1, 2); "])
@pytest.mark.parametrize("pieces", ["split_up(i, a, b, 2)", "split(i, a, b, 3)", "split(i, o, t, 6); split(t, a, b, 3)"])
def test_coordinates_in_tiles_are_those_of_the_index(pieces: str, tiles: str, form: str) -> None:
    """A workspace was filled by the whole coordinate, and read by that in its tile: nothing was found in any tile but the first."""
    values = np.array([0, 2.0, 3, 0, 5, 7, 0, 1, 4, 0, 6, 8, 9])
    last = "p1" if tiles else "p"
    schedule = f"{pieces}; pos(b, p, B); {tiles}coord({last}, q); precompute(B(i) * B(i), [q], [q], w)"
    kernel = st.compile("A(i) = B(i) * B(i)", {"B": "compressed", "A": form}, schedule=schedule)
    result = kernel(B=st.tensor(values, "compressed"))
    np.testing.assert_array_equal(result if form == "dense" else result.to_numpy(), values * values)


@pytest.mark.parametrize("form", ["dense, hashed", "hashed, compressed", "hashed, hashed", "compressed, hashed"])
@pytest.mark.parametrize(
    "schedule",
    [
        "split(j, a, b, 3)",
        "split(i, a, b, 3); parallelize(a, cpu_thread, no_races)",
        "split_up(j, a, b, 2); parallelize(a, cpu_thread, atomics)",
        "collapse(i, j, f); split(f, a, b, 4)",
        "pos(j, p, A); split(p, a, b, 2)",
        "pos(j, p, A); coord(p, q); split(q, a, b, 3)",
    ],
)
def test_tiles_of_hashed_levels_hold_their_own_coordinates(form: str, schedule: str) -> None:
    """Coordinates in no order are looked up inside a tile, not searched for."""
    matrix, x = sparse(9, 8, density=0.4), dense(8)
    result = st.compile(SPMV, {"A": form}, schedule=schedule)(A=matrix, x=x, threads=3)
    np.testing.assert_allclose(result, matrix @ x)


@pytest.mark.parametrize("form", ["sd", "sds", "sdd", "dds"])
def test_positions_of_levels_below_a_dense_one(form: str) -> None:
    """Positions of a dense level follow from those above it by its extent."""
    tensor = sparse(5, 4, 3, density=0.4) if len(form) == 3 else sparse(5, 4, density=0.4)
    expression = "y(i) = A(i,j,k)" if len(form) == 3 else "y(i) = A(i,j)"
    schedule = "collapse(i, j, f); pos(f, p, A); split(p, a, b, 3); parallelize(a, cpu_thread, atomics)"
    result = st.compile(expression, {"A": form}, schedule=schedule)(A=tensor, threads=3)
    np.testing.assert_allclose(result, tensor.reshape(5, -1).sum(axis=1))


def test_prefetch_by_positions_of_a_dense_level() -> None:
    """The coordinates of a dense level follow from its positions: they are not loaded."""
    matrix, x = sparse(9, 8, density=0.4), dense(8)
    schedule = "collapse(i, j, f); pos(f, p, A); split_up(p, a, b, 3); prefetch(b, x, 2)"
    np.testing.assert_allclose(st.compile(SPMV, {"A": "sd"}, schedule=schedule)(A=matrix, x=x), matrix @ x)


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


@pytest.mark.parametrize("form", ["dense, hashed", "hashed, hashed", "compressed, hashed"])
@pytest.mark.parametrize("more", ["", "; split(p, a, b, 3)", "; split_up(p, a, b, 4); parallelize(a, cpu_thread, atomics)"])
def test_positions_of_hashed_levels_pass_over_empty_slots(form: str, more: str) -> None:
    """A slot without an entry has no coordinate, at which nothing is read: infinity before the first element would show."""
    matrix = sparse(9, 8, density=0.3)
    x = np.full(9, np.inf)
    x[1:] = dense(8)
    kernel = st.compile(SPMV, {"A": form}, schedule=f"collapse(i, j, f); pos(f, p, A){more}")
    np.testing.assert_allclose(kernel(A=matrix, x=x[1:], threads=3), matrix @ x[1:])


def test_slots_of_positions_are_read_at_stored_positions_alone() -> None:
    b = sparse(9, 9, density=0.4)
    schedule = "collapse(i, j, f); pos(f, p, B(i,j)); precompute(-(1.5 * B(i,j)), p, q, w)"
    result = st.compile("A(j) = B(i,j) * B(j,j) - 1.5 * B(i,j)", {"B": "compressed, hashed"}, schedule=schedule)(B=b)
    np.testing.assert_allclose(result, (b * np.diag(b) - 1.5 * b).sum(axis=0))


def test_halves_that_become_known_inside_a_tile_count_from_it() -> None:
    b = dense(9)
    schedule = "split_up(i, a, c, 3); split(c, d, e, 2); collapse(d, e, f); split(f, g, h, 7); reorder(h, a, g)"
    np.testing.assert_array_equal(st.compile("y(i) = b(i)", {}, schedule=schedule)(b=b), b)


def test_vector_loops_around_rows_in_registers() -> None:
    """Rows of registers are vectors already, which `omp simd` reduces none of."""
    schedule = (
        "split(k, a, b, 32); reorder(i, a, j, b); precompute(A(i,j) * X(j,k), b, b, w); parallelize(j, cpu_vector, parallel_reduction)"
    )
    matrix, other = sparse(9, 8, density=0.4), dense(8, 64)
    result = st.compile(SPMM, {"A": "csr"}, extents={"k": 64}, schedule=schedule)(A=matrix, X=other)
    np.testing.assert_allclose(result, matrix @ other)


def test_positions_of_an_outer_level_do_not_tell_where_entries_of_a_result_stand() -> None:
    """The result has the pattern of B, but where it is written only the rows of B are known, and columns come first."""
    b = sparse(6, 9)
    schedule = "pos(j, p, B(j,i)); precompute(B(j,i), [i, p], [k, p], w); reorder(i, p)"
    kernel = st.compile("Z(i,j) = 2 * B(j,i)", {"B": "csr", "Z": "csr"}, schedule=schedule)
    assert np.array_equal(kernel(B=st.tensor(b, "csr")).to_numpy(), 2 * b.T)
