"""Symmetric levels: halves of symmetric matrices, what they refuse, and products that add every stored entry twice."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from differential.interpreted import interpreted
from numpy.typing import NDArray
from sparsetune.compiler.concrete.mirrored import is_mirrored
from sparsetune.compiler.errors import DataError, FormatError, ScheduleError
from sparsetune.compiler.storage.level_arrays import LevelArrays

FORM = "dense, symmetric"
SCHEDULES = (
    "",
    "parallelize(i, cpu_thread, no_races, dynamic, 8)",
    "parallelize(i, cpu_thread, atomics, static)",
    "parallelize(i, cpu_thread, parallel_reduction)",
    "split(i, i0, i1, 7); parallelize(i0, cpu_thread, no_races)",
    "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 8); parallelize(p0, cpu_thread, atomics, static)",
    "split(j, j0, j1, 10); reorder(j0, i, j1)",
    "parallelize(j, cpu_vector, parallel_reduction)",
    "prefetch(j, A, 64); unroll(j, 4)",
)


def symmetric(extent: int, density: float = 0.1, seed: int = 0, dtype: Any = np.float64) -> scipy.sparse.csr_array:
    """Return a symmetric matrix with a part of its diagonal, and of small whole numbers where values are no floats."""
    drawn = np.random.default_rng(seed)
    square = (drawn.random((extent, extent)) < density) * drawn.integers(1, 9, (extent, extent))
    return scipy.sparse.csr_array((square + square.T).astype(dtype))


@pytest.mark.parametrize(("extent", "density"), [(0, 0.5), (1, 1.0), (1, 0.0), (7, 0.0), (8, 0.4), (60, 0.1)])
def test_halves_hold_the_whole(extent: int, density: float) -> None:
    matrix = symmetric(extent, density)
    stored = st.tensor(matrix, FORM)
    assert stored.format == st.Format("dm") == st.Format(FORM)
    assert str(stored.format) == FORM
    assert len(stored.values) == scipy.sparse.tril(matrix).nnz
    assert stored.nnz == matrix.nnz
    converted = [stored.convert(form) for form in ("csr", "csc", "coo")]
    for found in (stored, stored.T, *converted, pickle.loads(pickle.dumps(stored))):
        assert np.array_equal(found.to_numpy(), matrix.toarray())
    assert stored.to_coordinates()[0].shape == (2, matrix.nnz)
    for data in (matrix.tocoo(), matrix.tocsc(), matrix.toarray(), st.tensor(matrix, "dense, narrow")):
        assert np.array_equal(st.tensor(data, FORM).levels[1].parts["crd"], stored.levels[1].parts["crd"])
    assert np.array_equal(stored[: extent // 2].to_numpy(), matrix.toarray()[: extent // 2])
    assert np.array_equal((stored + stored).to_numpy(), 2 * matrix.toarray())
    assert np.array_equal((-stored).to_numpy(), -matrix.toarray())


def test_values_that_are_no_numbers_are_symmetric_too() -> None:
    assert np.isnan(st.tensor(np.array([[0, np.nan], [np.nan, 1]]), FORM).to_numpy()[0, 1])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[1.0, 0, 2]], "level 2 is symmetric, and the matrix is 1 x 3; use compressed"),
        ([[1.0, 2], [0, 1]], r"level 2 is symmetric, and there is 2.0 at \(0, 1\), but nothing at \(1, 0\); use compressed"),
        ([[1.0, 2], [3, 1]], r"level 2 is symmetric, and there is 2.0 at \(0, 1\), but 3.0 at \(1, 0\); use compressed"),
    ],
)
def test_what_is_not_symmetric_is_refused(rows: list[list[float]], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        st.tensor(scipy.sparse.csr_array(np.array(rows)), FORM)
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=f'convert(A, "{FORM}")')
    with pytest.raises(FormatError, match=reason):
        kernel(A=np.array(rows), x=np.ones(len(rows[0])))


@pytest.mark.parametrize("seed", range(200))
def test_the_entry_that_a_refusal_names_has_another_across(seed: int) -> None:
    """Of patterns that lack an entry here or there, in rows of all lengths."""
    generator = np.random.default_rng(seed)
    extent = int(generator.integers(2, 8))
    matrix = np.where(generator.random((extent, extent)) < generator.random(), generator.integers(1, 9, (extent, extent)), 0)
    matrix = matrix + matrix.T
    row, column = generator.integers(0, extent, 2)
    matrix[row, column] = generator.integers(0, 2)
    stored = st.tensor(scipy.sparse.csr_array(matrix.astype(np.float64)))
    if (matrix == matrix.T).all():
        assert (st.tensor(stored, FORM).to_numpy() == matrix).all()
        return
    with pytest.raises(FormatError, match="is symmetric, and there is") as refused:
        st.tensor(stored, FORM)
    found = re.search(r"there is (\S+) at \((\d+), (\d+)\), but (\S+) at", str(refused.value))
    assert found is not None
    here, there = matrix[int(found[2]), int(found[3])], matrix[int(found[3]), int(found[2])]
    assert here == float(found[1]) != 0
    assert here != there == (0 if found[4] == "nothing" else float(found[4]))


@pytest.mark.parametrize("form", ["symmetric", "dense, dense, symmetric", "compressed, symmetric", "symmetric, dense"])
def test_levels_that_are_no_rows_of_matrices_are_refused(form: str) -> None:
    with pytest.raises(FormatError, match="'dense, symmetric'"):
        st.Format(form)


def test_arrays_beyond_the_diagonal_are_refused() -> None:
    level = LevelArrays(np.array([0, 1, 1], np.int32), np.array([1], np.int32))
    with pytest.raises(DataError, match="has coordinates up to the row's own"):
        st.Tensor((2, 2), st.Format(FORM), (LevelArrays(), level), np.ones(1))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_products_with_vectors(schedule: str, dtype: Any) -> None:
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": FORM}, schedule=schedule)
    assert kernel.formats["A"] == st.Format(FORM)
    for seed, extent in enumerate((1, 9, 60)):
        matrix, x = symmetric(extent, 0.2, seed, dtype), np.arange(extent).astype(dtype)
        for threads in (1, 2, 3):
            assert np.array_equal(kernel(A=st.tensor(matrix, FORM), x=x, threads=threads), matrix @ x)


def test_every_stored_entry_is_read_once() -> None:
    matrix, x = symmetric(40), np.ones(40)
    bound = st.compile("y(i) = A(i,j) * x(j)", {"A": FORM}).bind(A=matrix, x=x)
    stored = st.tensor(matrix, FORM)
    assert bound.count()["iterations"] == 40 + len(stored.values)
    assert "unless i = j" in st.compile("y(i) = A(i,j) * x(j)", {"A": FORM}).loop_nest


@pytest.mark.parametrize("form", [FORM, st.Format("dm", order=(1, 0))])
@pytest.mark.parametrize("pattern", ["nothing", "one row", "dense row", "diagonal", "band", "arrow", "scattered"])
def test_threads_that_share_rows_add_to_earlier_ones_in_order(pattern: str, form: Any) -> None:
    extent, drawn = {"nothing": 9, "one row": 1}.get(pattern, 1500), np.random.default_rng(3)
    rows, columns = {
        "nothing": ([], []),
        "one row": ([0], [0]),
        "dense row": (np.full(extent, extent - 7), np.arange(extent)),
        "diagonal": (np.arange(extent), np.arange(extent)),
        "band": (np.arange(4, extent), np.arange(extent - 4)),
        "arrow": (np.arange(extent), np.zeros(extent, int)),
        "scattered": (drawn.integers(0, extent, 4000), drawn.integers(0, extent, 4000)),
    }[pattern]
    half = scipy.sparse.coo_array((drawn.random(len(rows)), (rows, columns)), (extent, extent)).tocsr()
    matrix, x, dense = scipy.sparse.csr_array(half + half.T), drawn.random(extent), drawn.random((extent, 3))
    schedule = "parallelize(i, cpu_thread, no_races, static)"
    vector = st.compile(
        "y(i) = A(i,j) * x(j)", {"A": form}, schedule=schedule if form == FORM else "reorder(j, i); parallelize(j, cpu_thread, temporary)"
    )
    several = st.compile("Y(i,k) = A(i,j) * X(j,k)", {"A": form}, schedule="" if form != FORM else schedule)
    stored = st.tensor(matrix, form)
    for threads in (1, 2, 3, 7):
        found = vector(A=stored, x=x, threads=threads)
        assert np.allclose(found, matrix @ x, 1e-12)
        assert np.array_equal(found, vector(A=stored, x=x, threads=threads))
        assert np.allclose(several(A=stored, X=dense, threads=threads), matrix @ dense, 1e-12)


@pytest.mark.parametrize("schedule", ["parallelize(i, cpu_thread, no_races, static)", "parallelize(i, cpu_thread, no_races, dynamic, 4)"])
@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_shares_write_nothing_that_others_use(schedule: str, threads: int) -> None:
    matrix, dense = symmetric(40), np.random.default_rng(1).random((40, 3))
    kernel = st.compile("Y(i,k) = A(i,j) * X(j,k)", {"A": FORM}, schedule=schedule)
    found, _ = interpreted(kernel.bind(A=matrix, X=dense, threads=threads))  # which refuses races
    assert np.allclose(found, matrix @ dense)


@pytest.mark.parametrize("schedule", ["parallelize(i, cpu_thread, no_races, static)", "parallelize(i, cpu_thread, parallel_reduction)"])
def test_shares_have_copies_of_what_they_add_to_in_earlier_rows_alone(schedule: str) -> None:
    extent, band = 1000, 10
    matrix = scipy.sparse.diags_array(np.ones((3, extent)), offsets=np.array([-band, 0, band]), shape=(extent, extent)).tocsr()
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": FORM}, schedule=schedule)
    one, four = (interpreted(kernel.bind(A=matrix, x=np.ones(extent), threads=threads))[1].stores for threads in (1, 4))
    assert one < 3 * extent + 10
    assert 0 < four - one < 3 * (3 * band + 2 * 4)  # zeros, sums and what is known of each share but the first


@pytest.mark.parametrize("race", ["temporary", "parallel_reduction, dynamic, 1"])
def test_copies_inside_a_loop_over_rows_have_what_is_added_across_the_diagonal(race: str) -> None:
    """The stored half adds to the row at hand alone, the other half to any row."""
    matrix, dense = symmetric(40), np.random.default_rng(1).random((40, 6))
    kernel = st.compile("y(i) = A(i,j) * X(j,k)", {"A": FORM}, schedule=f"reorder(i, k, j); parallelize(k, cpu_thread, {race})")
    for threads in (1, 2, 3):
        bound = kernel.bind(A=matrix, X=dense, threads=threads)
        found, _ = interpreted(bound)
        assert np.allclose(found, (matrix @ dense).sum(axis=1))
        assert np.allclose(bound(), found)


@pytest.mark.parametrize(
    "schedule", ["", "reorder(i, k, j)", "parallelize(i, cpu_thread, no_races, static)", "split(k, k0, k1, 4); reorder(k0, i, j, k1)"]
)
def test_products_with_rows(schedule: str) -> None:
    matrix, dense = symmetric(50), np.random.default_rng(1).random((50, 8))
    kernel = st.compile("Y(i,k) = A(i,j) * X(j,k)", {"A": FORM}, extents={"k": 8}, schedule=schedule)
    for threads in (1, 2):
        assert np.allclose(kernel(A=matrix, X=dense, threads=threads), matrix @ dense)


def _fused(A: NDArray[Any], W: NDArray[Any], x: NDArray[Any]) -> dict[str, Any]:  # noqa: N803
    return {
        "y(j) = A(i,j) * x(i)": A @ x,
        "s = A(i,j) * x(i) * x(j)": x @ A @ x,
        "y(i) = 2 * A(i,j) * W(j,k) * x(k)": 2 * A @ W @ x,
        "Y(i,j) = -A(i,j) * W(i,j)": -A * W,
    }


def _whole(A: NDArray[Any], W: NDArray[Any], x: NDArray[Any]) -> dict[str, Any]:  # noqa: N803
    return {
        "y(i) = A(i,j) * x(j) + x(i)": A @ x + x,
        "y(i) = A(i,i)": np.diag(A),
        "Y(i,j) = A(i,k) * A(k,j)": A @ A,
        "Y(i,j) = A(i,j) + W(i,j)": A + W,
        "Y(i,j) = exp(A(i,j))": np.exp(A),
        "y(i) = A(i,j + 1)": A[:, 1:].sum(axis=1),
    }


@pytest.mark.parametrize(("cases", "kept"), [(_fused, True), (_whole, False)])
def test_whatever_reads_them_is_right(cases: Any, kept: bool) -> None:
    matrix, drawn = symmetric(30), np.random.default_rng(2)
    square, x = drawn.random((30, 30)), drawn.random(30)
    for expression, expected in cases(matrix.toarray(), square, x).items():
        kernel = st.compile(expression, {"A": FORM})
        assert kernel.formats["A"].mirrors == kept
        operands = {name: data for name, data in {"W": square, "x": x}.items() if name in kernel._operand_names}
        assert np.allclose(kernel(A=st.tensor(matrix, FORM), **operands), expected), expression


@pytest.mark.parametrize("semiring", [("min", "+"), ("max", "*"), ("or", "and")])
def test_semirings(semiring: tuple[str, str]) -> None:
    matrix, x = symmetric(30), np.arange(30.0)
    operands = [{"A": st.tensor(matrix, form), "x": x} for form in (FORM, "csr")]
    halved, whole = (st.evaluate("y(i) = A(i,j) * x(j)", given, schedule="default", semiring=semiring) for given in operands)
    assert np.array_equal(halved, whole)


def test_results() -> None:
    matrix = symmetric(20)
    stored = st.tensor(matrix, FORM)
    squared = st.evaluate("C(i,j) = A(i,k) * A(k,j)", {"A": stored}, output_format=FORM)
    assert squared.format == st.Format(FORM)
    assert np.array_equal(squared.to_numpy(), (matrix @ matrix).toarray())
    masked = st.evaluate("C(i,j) = A(i,j) * W(i,k) * W(k,j)", {"A": stored, "W": np.ones((20, 20))}, output_format="csr")
    assert np.array_equal(masked.to_numpy(), 20 * matrix.toarray())
    added = st.evaluate("C(i,j) += A(i,j)", {"A": stored, "C": stored}, output_format=FORM)
    assert np.array_equal(added.to_numpy(), 2 * matrix.toarray())


def test_what_cannot_be_added_twice_says_so() -> None:
    with pytest.raises(ScheduleError, match=r"A\(i,k\) is half of a symmetric matrix, and is read several times"):
        st.compile("Y(i,j) = A(i,k) * A(k,j)", {"A": "csr"}, schedule=f'convert(A, "{FORM}")')
    with pytest.raises(ScheduleError, match=r'reads all of A, of which .* convert="never" forbids'):
        st.compile("Y(i,j) = A(i,k) * A(k,j)", {"A": FORM}, convert="never")
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": FORM}, schedule="precompute(A(i,j) * x(j), [], [], t)")
    assert is_mirrored(kernel.concretized.program, kernel.concretized.formats)
    matrix = symmetric(20)
    assert np.allclose(kernel(A=matrix, x=np.ones(20)), matrix.sum(axis=1))
