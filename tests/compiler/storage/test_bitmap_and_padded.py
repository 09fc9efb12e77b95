"""Bitmap and padded levels: what they hold, what is refused, and that kernels read them under any schedule."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from level_cases import scattered
from sparsetune.compiler.errors import DataError, ResourceError
from sparsetune.compiler.format import parse_format
from sparsetune.compiler.storage.level_arrays import LevelArrays
from sparsetune.compiler.storage.positions import stored_prefixes
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner.features import operand_features

SCHEDULES = (
    "",
    "parallelize(j, cpu_vector, parallel_reduction)",
    "parallelize(i, cpu_thread, no_races, static); prefetch(j, A, 16)",
    "split(i, i0, i1, 4); parallelize(i0, cpu_thread, no_races, dynamic, 2)",
    "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 8); parallelize(p0, cpu_thread, atomics, static)",
    "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 5); reorder(p1, p0)",
    "pos(j, p, A); split(p, p0, p1, 3); unroll(p1, 3)",
    "pos(j, p, A); coord(p, jc)",
    "split(j, j0, j1, 10); reorder(j0, i, j1)",
    "protocol(A, step, locate)",
    "reorder(j, i); protocol(A, step, locate)",
    "precompute(A(i,j) * x(j), j, j, w); workspace(w, list)",
)


@pytest.mark.cc
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("form", ["db", "dp", "sb", "sp", "bp", "pb", "hb", "hp"])
def test_kernels_read_them_under_any_schedule(form: str, schedule: str) -> None:
    matrix, x = scattered(), np.random.default_rng(1).standard_normal(37)
    if (form[1] == "b" and schedule.startswith("parallelize(i, cpu_thread")) or (form[0] != "d" and "prefetch" in schedule):
        schedule = schedule.split(";")[0]
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": form}, schedule=schedule)
    assert np.allclose(kernel(A=st.tensor(matrix, form), x=x, threads=2), matrix @ x, rtol=1e-13, atol=1e-13)


@pytest.mark.cc
@pytest.mark.parametrize("made", ["compressed, compressed", "csr", "coo", "bitmap, bitmap"])
@pytest.mark.parametrize("form", ["db", "dp", "sb", "sp", "bb", "bp", "pb", "pp"])
def test_positions_that_are_taken_one_by_one_lead_to_results_in_order(form: str, made: str) -> None:
    """Rows are not gone through there, so that nothing would say where a row of the result ends."""
    matrix = scattered()
    found = st.evaluate(
        "C(i,j) = A(i,j) * 2", {"A": st.tensor(matrix, form)}, output_format=made, schedule="collapse(i, j, f); pos(f, p, A)", threads=2
    )
    assert found.format == parse_format(made, 2)
    assert np.array_equal(found.to_numpy(), 2 * matrix)


@pytest.mark.cc
@pytest.mark.parametrize("form", ["sb", "bb", "pb", "hb", "sp"])
def test_rows_that_are_not_stored_have_no_entries(form: str) -> None:
    """Sums read both levels of B in one loop, also at rows that only C and D store; what lies there is another row's."""
    first, c, third = np.zeros((6, 6)), np.zeros(6), np.zeros((6, 4))
    first[3, 4], first[5, 5], c[4], third[4, 2], third[0, 1] = 7.0, 2.0, 1.0, 3.0, 1.0
    kernel = st.compile("a(j) = B(j,j) + C(j) * D(j,i)", {"B": form, "C": "compressed", "D": "dcsr", "a": "compressed"})
    found = kernel(B=st.tensor(first, form), C=st.tensor(c, "compressed"), D=st.tensor(third, "dcsr"))
    assert np.array_equal(found.to_numpy(), [0.0, 0.0, 0.0, 0.0, 3.0, 2.0])
    assert found.nnz == 2


@pytest.mark.cc
@pytest.mark.parametrize("left", ["db", "dp", "csr", "pp"])
@pytest.mark.parametrize("right", ["db", "dp"])
@pytest.mark.parametrize("made", ["db", "dp", "csr", "bb", "dense"])
def test_sums_and_products_meet(left: str, right: str, made: str) -> None:
    first, second = scattered(), scattered(seed=5)
    operands = {"A": st.tensor(first, left), "B": st.tensor(second, right)}
    for sign, expected in (("+", first + second), ("*", first * second)):
        found = st.evaluate(f"C(i,j) = A(i,j) {sign} B(i,j)", operands, output_format=made, schedule="default")
        if made == "dense":
            assert np.allclose(found, expected)
            continue
        assert found.format == parse_format(made, 2)
        assert np.allclose(found.to_numpy(), expected)
        pattern = (first != 0) | (second != 0) if sign == "+" else (first != 0) & (second != 0)
        assert found.nnz == pattern.sum()


def test_what_is_stored() -> None:
    matrix = scattered()
    bits, slots = st.tensor(matrix, "dense, bitmap"), st.tensor(matrix, "dense, padded")
    assert len(bits.values) == matrix.size
    assert bits.levels[1].nbytes == 8 * -(-matrix.size // 64)  # one bit a position
    assert len(slots.values) == 23 * 37  # the longest row is full
    assert slots.levels[1].parts["width"].tolist() == [37]
    assert bits.nnz == slots.nnz == np.count_nonzero(matrix)
    assert stored_prefixes(bits) == stored_prefixes(slots) == (23, 23 * 37)
    assert operand_features(bits).values[0] == operand_features(st.tensor(matrix, "csr")).values[0]
    for tensor in (bits, slots):
        assert all(np.array_equal(*pair) for pair in zip(tensor.to_coordinates(), st.tensor(matrix, "csr").to_coordinates(), strict=True))
        assert (abs(tensor.to_scipy() - st.tensor(matrix, "csr").to_scipy())).max() == 0


def test_explicit_zeros_and_fill_values_are_kept() -> None:
    entries = (np.array([[0, 2], [1, 3]]), np.array([0.0, np.inf]))
    for form in ("db", "dp", "bb", "pp"):
        stored = st.tensor(entries, form, shape=(3, 4), fill_value=np.inf)
        assert stored.nnz == 2
        assert stored.to_numpy()[0, 1] == 0.0
        assert stored.convert("csr").to_coordinates()[1].tolist() == [0.0, np.inf]


def test_arrays_that_are_none_are_refused() -> None:
    matrix = scattered(3, 5)
    bits, slots = st.tensor(matrix, "db"), st.tensor(matrix, "dp")
    for stored, parts, fault in (
        (bits, {"bits": np.zeros(2, np.uint64)}, "has words of 64 bits for 15 positions"),
        (bits, {"bits": np.array([2**63], np.uint64)}, "has bits for no more than 15 positions"),
        (bits, {"bits": np.zeros(1, np.int64)}, "has words of 64 bits"),
        (slots, {"width": np.array([3])}, "has one width"),
        (slots, {"width": np.array([5, 5])}, "has one width"),
        (slots, {"crd": np.full(15, 9)}, "has coordinates up to 5"),
        (slots, {"crd": np.full(15, -1)}, "has coordinates up to 5"),
        (slots, {"crd": np.full(15, 2)}, "has coordinates that increase"),
        (slots, {"crd": np.tile([5, 5, 5, 5, 0], 3)}, "has coordinates that increase"),
        (slots, {"crd": np.zeros(15)}, "has index arrays"),
    ):
        with pytest.raises(DataError, match=fault):
            Tensor(stored.shape, stored.format, (LevelArrays(), stored.levels[1].having(**parts)), stored.values)


def test_what_one_long_row_would_take_is_refused_in_a_line() -> None:
    count = 2**22  # of rows, and slots in each
    columns = np.concatenate([np.arange(count), np.zeros(count)])
    rows = np.concatenate([np.zeros(count), np.arange(count)])
    with pytest.raises(ResourceError, match="an array of 17592186044416 int32 does not fit"):
        st.tensor((np.stack([rows, columns]).astype(np.int64), np.ones(2 * count)), "dp", shape=(count, count))
    with pytest.raises(ResourceError, match="format 'dense, bitmap'"):
        st.tensor((np.zeros((2, 1), np.int64), np.ones(1)), "db", shape=(2**24, 2**24))
