"""Schedules over positions and tiles of them, on every kind of level, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from scheduled_operands import SPMV, dense, sparse

pytestmark = pytest.mark.cc


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


def test_positions_of_an_outer_level_do_not_tell_where_entries_of_a_result_stand() -> None:
    """The result has the pattern of B, but where it is written only the rows of B are known, and columns come first."""
    b = sparse(6, 9)
    schedule = "pos(j, p, B(j,i)); precompute(B(j,i), [i, p], [k, p], w); reorder(i, p)"
    kernel = st.compile("Z(i,j) = 2 * B(j,i)", {"B": "csr", "Z": "csr"}, schedule=schedule)
    assert np.array_equal(kernel(B=st.tensor(b, "csr")).to_numpy(), 2 * b.T)
