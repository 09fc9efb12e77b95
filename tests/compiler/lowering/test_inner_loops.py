"""What stands in inner loops: no guards where tiles are full, and the prefetches that a schedule asks for."""

from __future__ import annotations

import re

import numpy as np
import pytest
from differential.interpreted import interpreted
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor

SPMM = "Y(i,k) = A(i,j) * X(j,k)"


def source(schedule: str, form: str = "csr", extents: dict[str, int] | None = None) -> str:
    text = compile_kernel(SPMM, {"A": form}, extents, schedule).source
    return text[text.index("for (") :]


@pytest.mark.parametrize("tag", ["unroll(k1, 4)", "parallelize(k1, cpu_vector, no_races)"])
def test_full_tiles_have_code_of_their_own(tag: str) -> None:
    """The guard is tested once a tile, outside the loop over the stored entries."""
    text = source(f"split(k, k0, k1, 8); reorder(i, k0, j, k1); {tag}")
    guard = text.index("if (k_low + 8 <= k_size)")
    full, rest = text[guard:].split("} else {", 1)
    assert text.index("tiles of k") < guard < text.index("j in A(i,j)")
    assert not re.search(r"k_size\)|if \(", full.split("{", 1)[1])
    assert "min" in rest


def test_known_multiples_need_no_guard() -> None:
    text = source("split(k, k0, k1, 8); reorder(i, k0, j, k1); unroll(k1, 4)", extents={"k": 32})
    assert not re.search(r"if \(|min", text)


@pytest.mark.parametrize(
    ("form", "schedule"),
    [
        ("csr", "prefetch(j, X, 8)"),
        ("csr", "split(j, a, b, 4); prefetch(b, X, 8)"),
        ("csr", "pos(j, p, A); split(p, a, b, 8); prefetch(b, X, 8)"),
        ("csr", "collapse(i, j, f); pos(f, p, A); prefetch(p, X, 8)"),
        ("csr", "collapse(i, j, f); pos(f, p, A); split(p, a, b, 64); prefetch(b, X, 8)"),
        ("coo", "collapse(i, j, f); pos(f, p, A); split(p, a, b, 64); prefetch(b, X, 8)"),
    ],
)
def test_prefetches_stand_in_the_loop_over_entries(form: str, schedule: str) -> None:
    """The rows that entries further on will need are asked for, up to the last entry."""
    asked = r"st_prefetch\(X_vals, .*_crd\[st_min_i64\(\w+ \+ 8, .* - 1\)\] \* 16, 16, 8, 1\);"
    found = re.findall(asked, source(schedule, form, {"k": 16}))
    assert found


@pytest.mark.parametrize(
    ("form", "schedule", "arrays"),
    [
        ("csr", "prefetch(j, A, 64)", {"A2_crd", "A_vals"}),
        ("csr", "prefetch(j, A, 64); parallelize(j, cpu_vector, parallel_reduction)", {"A2_crd", "A_vals"}),
        ("csr", "collapse(i, j, f); pos(f, p, A); split(p, a, b, 64); prefetch(b, A, 64)", {"A2_crd", "A_vals"}),
        ("coo", "collapse(i, j, f); pos(f, p, A); split(p, a, b, 64); prefetch(b, A, 64)", {"A1_crd", "A2_crd", "A_vals"}),
        ("dcsr", "prefetch(i, A, 64)", {"A1_crd", "A2_pos"}),
    ],
)
def test_entries_are_asked_for_where_a_loop_goes_through_them(form: str, schedule: str, arrays: set[str]) -> None:
    matrix = np.random.default_rng(3).integers(-4, 5, (40, 30)) * (np.random.default_rng(4).random((40, 30)) < 0.3)
    x = np.arange(30.0)
    compiled = compile_kernel("y(i) = A(i,j) * x(j)", {"A": form}, schedule=schedule)
    far = compile_kernel("y(i) = A(i,j) * x(j)", {"A": form}, schedule=schedule.replace("A, 64", "A, 1024"))
    for source, distance, cache in ((compiled.source, 64, 1), (far.source, 1024, 2)):
        assert set(re.findall(rf"st_prefetch\((\w+), [^;]* \+ {distance}, \d+, \d+, {cache}\)", source)) == arrays
    assert np.array_equal(compiled(A=tensor(matrix.astype(float), form), x=x), matrix @ x)


def test_dense_levels_have_no_coordinates_to_ask_for() -> None:
    schedule = "pos(j, p, B(i,j,j)); collapse(i, p, f); split_up(f, u, v, 3); prefetch(v, B(i,j,j), 64)"
    formats = {"B": "compressed, dense, compressed"}
    cube = np.random.default_rng(5).integers(-4, 5, (6, 7, 7)) * (np.random.default_rng(6).random((6, 7, 7)) < 0.4)
    compiled = compile_kernel("a(j) = B(i,j,j)", formats, schedule=schedule)
    assert re.findall(r"st_prefetch\((\w+), ", compiled.source) == ["B3_pos"]
    assert np.array_equal(compiled(B=tensor(cube.astype(float), formats["B"])), np.einsum("ijj->j", cube))



@pytest.mark.parametrize("form", ["csr", "coo"])
def test_coordinates_of_positions_of_a_tile_count_like_their_index(form: str) -> None:
    """A collapse of them, cut again, goes through all tiles."""
    tiles = "split_up(k, v3, v4, 2); pos(v4, v5, A); coord(v5, v9); collapse(v9, j, v10); split(v10, v11, v12, 7)"
    left, right = (np.random.default_rng(seed).integers(0, 3, shape).astype(float) for seed, shape in ((5, (7, 5)), (6, (5, 11))))
    compiled = compile_kernel("C(i,j) = A(i,k) * B(k,j)", {"A": form, "B": "csr"}, schedule=tiles)
    assert np.array_equal(compiled(A=tensor(left, form), B=tensor(right, "csr")), left @ right)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("order", ["b, a", "b, a, l"])
def test_components_that_strides_of_a_collapse_reach_again_are_added_to(form: str, order: str) -> None:
    """The loops of a strided collapse go through i and j: each y(i) is reached for every j."""
    strided = f"collapse(i, j, f); split(f, a, b, 4); reorder({order})"
    left, right = (np.random.default_rng(seed).integers(1, 4, shape).astype(float) for seed, shape in ((7, (5, 7)), (8, (7, 6))))
    compiled = compile_kernel("y(i) = A(i,j) * B(j,l)", {"A": form}, {"l": 6}, strided)
    assert np.array_equal(compiled(A=tensor(left, form), B=right), (left @ right).sum(axis=1))


def test_components_that_a_clipped_nest_reaches_once_are_stored_without_zeros_before() -> None:
    tiles = "pos(j, p, A); collapse(i, p, f); split(f, a, b, 5)"
    rng = np.random.default_rng(9)
    mask = rng.random((6, 7)) < 0.5
    matrix, left, right = mask * rng.integers(1, 4, (6, 7)), *(rng.integers(1, 4, shape).astype(float) for shape in ((6, 3), (7, 3)))
    compiled = compile_kernel("Z(i,j) = A(i,j) * C(i,k) * D(j,k)", {"A": "csr", "Z": "csr"}, schedule=tiles)
    assert "Z_vals[p_A2] = " in compiled.source
    assert "Z_vals[p_A2] += " not in compiled.source
    found = compiled(A=tensor(matrix.astype(float), "csr"), C=left, D=right)
    assert np.array_equal(found.to_numpy(), matrix * (left @ right.T))


@pytest.mark.parametrize("expression", ["Y(i,j) = A(i,j) * b(j)", "Y(i,j) = A(i,j) * b(j) + C(i,j)"])
def test_entries_among_which_one_is_looked_up_are_leapt_over(expression: str) -> None:
    """The workspace has columns outside, and the loop over rows stands around: entries of a column were walked over for every row."""
    schedule = "precompute(A(i,j) * b(j), [j, i], [j, i], w); workspace(w, list)"
    kernel = compile_kernel(expression, {"A": "csr", "C": "csr"} if "C" in expression else {"A": "csr"}, schedule=schedule)
    work = []
    for rows in (30, 60):
        matrix, factor = np.random.default_rng(0).random((rows, 8)), np.arange(8.0)
        more = {"C": matrix} if "C" in expression else {}
        found, counts = interpreted(kernel.bind(A=matrix, b=factor, **more))
        np.testing.assert_array_equal(found, matrix * factor + (matrix if more else 0))
        work.append(counts.iterations + counts.comparisons)
    assert work[1] < 2.5 * work[0]


@pytest.mark.parametrize(
    ("expression", "schedule"),
    [("Y(i,r) = T(i,j,k) * B(j,r) * C(k,r)", "precompute(T(i,j,k) * C(k,r), r, r, w)"),
     ("Y(i) = T(i,j,k) * B(j) * C(k)", "precompute(T(i,j,k) * C(k), [], [], w)")],
)  # fmt: skip
def test_rows_that_are_summed_beside_a_workspace_are_stored_once(expression: str, schedule: str) -> None:
    """They are not filled with zeros and read back, although a producer runs between the loops that add to them."""
    rng = np.random.default_rng(3)
    dense = rng.random((40, 12, 30)) * (rng.random((40, 12, 30)) < 0.1)
    columns = (16,) if "r" in expression else ()
    operands = {"B": rng.random((12, *columns)), "C": rng.random((30, *columns)), "T": tensor(dense, "dense, compressed, compressed")}
    kernel = compile_kernel(expression, {"T": "dense, compressed, compressed"}, {"r": 16} if columns else None, schedule)
    assert "st_zero" not in kernel.source
    expected = np.einsum("ijk,jr,kr->ir" if columns else "ijk,j,k->i", dense, operands["B"], operands["C"])
    np.testing.assert_allclose(kernel(**operands), expected)
