"""Sliced levels: what they hold, what is refused, and that kernels read them under any schedule."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from hypothesis import given, settings
from hypothesis import strategies as hs
from level_cases import scattered
from sparsetune.compiler.errors import DataError, ScheduleError
from sparsetune.compiler.levels.sliced import ROWS
from sparsetune.compiler.storage.level_arrays import LevelArrays
from sparsetune.compiler.storage.positions import stored_prefixes
from sparsetune.compiler.storage.tensor import Tensor
from storage_cases import stored_entries

SCHEDULES = (
    "",
    "parallelize(j, cpu_vector, parallel_reduction)",
    "parallelize(i, cpu_thread, no_races, static); prefetch(j, A, 16)",
    "parallelize(i, cpu_thread, no_races, dynamic, 8)",
    "parallelize(i, cpu_thread, no_races, dynamic, 3)",
    "parallelize(j, cpu_thread, atomics)",
    "split(i, i0, i1, 8); parallelize(i0, cpu_thread, no_races, dynamic, 2)",
    "split(i, i0, i1, 6)",
    "split(j, j0, j1, 10); reorder(j0, i, j1)",
    "protocol(A, step, locate)",
    "reorder(j, i); protocol(A, step, locate)",
    "prefetch(j, x, 4)",
    "precompute(A(i,j) * x(j), j, j, w); workspace(w, list)",
)


@hs.composite
def matrices(draw: hs.DrawFn) -> np.ndarray:
    """Draw a matrix with rows of any length, also none; extents from 0 on."""
    rows, columns, seed = draw(hs.integers(0, 3 * ROWS + 1)), draw(hs.integers(0, 9)), draw(hs.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    filled = rng.random((rows, columns)) < rng.random((rows, 1))
    return np.where(filled & (rng.random((rows, 1)) < 0.7), rng.standard_normal((rows, columns)), 0.0)


@settings(deadline=None, max_examples=60)
@given(matrices(), hs.sampled_from(["dl", "ll", "sl", "hl", "ls", "ld", "dense, sliced; 1, 0"]))
def test_what_is_stored_comes_back(dense: np.ndarray, form: str) -> None:
    stored = st.tensor(dense, form)
    assert np.array_equal(stored.to_numpy(), dense)
    assert {place: value for place, value in stored_entries(stored).items() if value} == {
        tuple(map(int, place)): dense[tuple(place)] for place in np.argwhere(dense)
    }
    for other in ("csr", "csc", "dp", "coo", "dl"):
        assert np.array_equal(stored.convert(other).to_numpy(), dense)
        assert np.array_equal(st.tensor(dense, other).convert(form).to_numpy(), dense)
    again = Tensor(stored.shape, stored.format, stored.levels, stored.values)  # whose arrays are checked
    assert np.array_equal(again.to_numpy(), dense)


@pytest.mark.cc
@settings(deadline=None, max_examples=40)
@given(matrices(), hs.sampled_from([None, 1]), hs.booleans())
def test_sums_of_rows_are_those_of_numpy(dense: np.ndarray, columns: int | None, infinite: bool) -> None:
    """What stands behind the end of a row is read and must not be added, be it infinite."""
    x = np.random.default_rng(1).standard_normal((dense.shape[1], columns) if columns else dense.shape[1])
    if infinite and len(x):
        x[0] = np.inf
    expected = np.zeros((dense.shape[0], *x.shape[1:]))
    for row, column in np.argwhere(dense):
        expected[row] += dense[row, column] * x[column]
    text = "y(i,k) = A(i,j) * x(j,k)" if columns else "y(i) = A(i,j) * x(j)"
    kernel = st.compile(text, {"A": "dl"}, extents={"k": columns} if columns else None)
    found = kernel(A=st.tensor(dense, "dl"), x=x, threads=1)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.cc
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("form", ["dl", "sl", "ll", "bl", "hl"])
def test_kernels_read_them_under_any_schedule(form: str, schedule: str) -> None:
    matrix, x = scattered(), np.random.default_rng(1).standard_normal(37)
    if (form == "bl" and schedule.startswith("parallelize(i, cpu_thread")) or (form[0] != "d" and "prefetch(j, A" in schedule):
        schedule = ""
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": form}, schedule=schedule)
    assert np.allclose(kernel(A=st.tensor(matrix, form), x=x, threads=2), matrix @ x, rtol=1e-13, atol=1e-13)


@pytest.mark.cc
@pytest.mark.parametrize("text", ["y(i) = A(i+j,j)", "y(i) = A(i,i+j) * x(j)", "y(i) = A(2*i+1,j) * x(j)", "R(i,j) = A(i,j+2) * A(i,j)"])
def test_compound_subscripts_find_them(text: str) -> None:
    operands = {"A": scattered(), "x": np.random.default_rng(1).standard_normal(37)}
    operands = {name: operand for name, operand in operands.items() if name in text}
    expected = st.evaluate(text, operands, schedule="default")
    found = st.evaluate(text, {**operands, "A": st.tensor(operands["A"], "dl")}, schedule="default")
    assert np.allclose(found, expected)


@pytest.mark.cc
@pytest.mark.parametrize("form", ["dls", "lls", "lll"])
def test_subsections_below_many_parents_skip_none(form: str) -> None:
    """Positions of other parents stand between those of one: loops through parents do not go from one position to the next."""
    stored = np.where(np.random.default_rng(0).random((9, 14, 900)) < 0.002, 1.5, 0.0)
    weights = np.random.default_rng(1).standard_normal((3, 3))
    expected = sum(weights[j, k] * stored[:, j : 12 + j, k : 898 + k] for j in range(3) for k in range(3))
    kernel = st.compile("y(i,l,m) = T(i,l+j,m+k) * w(j,k)", {"T": form}, schedule="reorder(i, l, m, j, k)")
    assert np.allclose(kernel(T=st.tensor(stored, form), w=weights), expected)


@pytest.mark.cc
@pytest.mark.parametrize("left", ["dl", "csr", "ll"])
@pytest.mark.parametrize("right", ["dl", "dp"])
@pytest.mark.parametrize("made", ["dl", "csr", "ll", "dense"])
def test_sums_and_products_meet(left: str, right: str, made: str) -> None:
    first, second = scattered(), scattered(seed=5)
    operands = {"A": st.tensor(first, left), "B": st.tensor(second, right)}
    for sign, expected in (("+", first + second), ("*", first * second)):
        found = st.evaluate(f"C(i,j) = A(i,j) {sign} B(i,j)", operands, output_format=made, schedule="default")
        assert np.allclose(found if made == "dense" else found.to_numpy(), expected)


def test_arrays_have_a_slot_for_every_row_of_a_slice() -> None:
    matrix = np.zeros((6, 5))
    matrix[0, [1, 3]], matrix[2, 4], matrix[5, [0, 2, 4]] = 1.0, 2.0, 3.0
    stored = st.tensor(matrix, "dense, sliced")
    parts = {name: array.tolist() for name, array in stored.levels[1].parts.items()}
    assert parts["slices"] == [0, 2, 5]
    assert parts["ends"] == [2, 0, 1, 0, 2, 5]
    assert parts["crd"] == [1, 0, 4, 0, 3, 0, 4, 0, *(0, 0, 0, 0), *(0, 2, 0, 0), *(0, 4, 0, 0)]
    assert stored.nnz == 6
    assert stored_prefixes(stored) == (6, 20)


def test_explicit_zeros_and_fill_values_are_kept() -> None:
    entries = (np.array([[0, 2], [1, 3]]), np.array([0.0, np.inf]))
    stored = st.tensor(entries, "dl", shape=(3, 4), fill_value=np.inf)
    assert stored.nnz == 2
    assert stored.to_numpy()[0, 1] == 0.0
    assert stored.convert("csr").to_coordinates()[1].tolist() == [0.0, np.inf]


@pytest.mark.cc
@pytest.mark.parametrize("semiring", ["min,+", "max,+", "or,and"])
def test_other_additions_than_plus(semiring: str) -> None:
    pattern, x = scattered() != 0, np.random.default_rng(1).standard_normal(37)
    entries = np.nonzero(pattern)
    values = np.random.default_rng(2).standard_normal(len(entries[0]))
    if semiring == "or,and":
        values, x = values > 0, x > 0
    fill = {"min,+": np.inf, "max,+": -np.inf, "or,and": False}[semiring]
    found = []
    for form in ("csr", "dl"):
        operands = {"A": st.tensor((np.stack(entries), values), form, shape=pattern.shape, fill_value=fill), "x": x}
        found.append(st.evaluate("y(i) = A(i,j) * x(j)", operands, semiring=tuple(semiring.split(",")), schedule="default"))
    assert np.array_equal(*found)


def test_positions_are_not_gone_through() -> None:
    with pytest.raises(ScheduleError, match=r"A\(i,j\) has positions of other fibres between those of one; iterate coordinates"):
        st.compile("y(i) = A(i,j) * x(j)", {"A": "dl"}, schedule="pos(j, p, A)")


def test_arrays_that_are_none_are_refused() -> None:
    stored = st.tensor(scattered(5, 5), "dl")
    parts = {name: array.copy() for name, array in stored.levels[1].parts.items()}
    for changed, fault in (
        ({"slices": np.array([0, 5])}, "has 2 slices of 4 parents"),
        ({"slices": parts["slices"] + 1}, "has 2 slices of 4 parents"),
        ({"ends": parts["ends"][:-1]}, "has an end for each of 5 parents"),
        ({"ends": parts["ends"] + 7}, "has an end for each of 5 parents"),
        ({"crd": np.full(len(parts["crd"]), 9)}, "has coordinates below 5"),
        ({"crd": np.zeros_like(parts["crd"])}, "has coordinates that increase"),
        ({"crd": np.zeros(len(parts["crd"]))}, "has index arrays"),
    ):
        with pytest.raises(DataError, match=fault):
            Tensor(stored.shape, stored.format, (LevelArrays(), stored.levels[1].having(**changed)), stored.values)
