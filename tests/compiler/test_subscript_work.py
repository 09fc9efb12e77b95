"""Work of compound subscripts: what is visited does not grow with what is not stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st
from numpy.typing import NDArray
from shifted_values import IMAGE

pytestmark = pytest.mark.cc


def counted(expression: str, formats: dict[str, str], **operands: Any) -> tuple[int, NDArray[Any]]:
    """Return how many bodies of loops are entered, and the result."""
    ready = {name: st.tensor(data, formats[name]) if name in formats else data for name, data in operands.items()}
    bound = st.compile(expression, formats).bind(**ready, threads=1)
    return bound.count()["iterations"], bound()


def test_only_windows_that_hold_something_are_visited() -> None:
    stored, weights = np.zeros(10), np.array([1.0, 10])
    stored[[2, 8, 9]] = 1, 2, 3
    visited, found = counted("y(i) = B(i+j) * F(j)", {"B": "s"}, B=stored, F=weights)
    assert np.flatnonzero(found).tolist() == [1, 2, 7, 8]
    assert visited == 4 + 5  # offsets, and what is stored in their windows
    visited, found = counted("y(i) = B(i+j) * F(j)", {"B": "s"}, B=stored[:9], F=weights)
    assert np.flatnonzero(found).tolist() == [1, 2, 7]
    assert visited == 3 + 3


@pytest.mark.parametrize("left", ["dense", "csr", "dcsr"])
@pytest.mark.parametrize(
    ("stored", "outer"),
    [((0, 1), (0, 1, 2)), ((1, 3), (1, 2, 3)), ((0, 2, 3), (0, 1, 2, 3)), ((), (1, 2))],
)
def test_unions_visit_offsets_of_subsections_and_coordinates(stored: tuple[int, ...], outer: tuple[int, ...], left: str) -> None:
    """The expression of Figures 8 and 9 of Liu et al.: C holds {2}, which offsets {1, 2} reach; they are united with what B holds."""
    column, shifted = np.zeros(4), np.zeros(5)
    column[list(stored)], shifted[2] = 7, 5
    kernel = st.compile("A(i,j) = B(i) + C(i+j)", {"A": left, "B": "s", "C": "s"}, shape={"j": 2})
    bound = kernel.bind(B=st.tensor(column, "s"), C=st.tensor(shifted, "s"), threads=1)
    found = bound()
    dense = found.to_numpy() if isinstance(found, st.Tensor) else found
    assert np.array_equal(dense, column[:, None] + np.lib.stride_tricks.sliding_window_view(shifted, 2))
    inner = 2 * len(stored) + len(set(outer) - set(stored))  # where B holds something all j count, elsewhere what C holds
    assert bound.count()["iterations"] == len(outer) + inner


GROWING: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("y(i) = B(i+j) * F(j)", {}, {}),
    ("y(i) = B(2*i+3*j) * F(j)", {}, {}),
    ("y(i) = B(i+j+k) * F(j) * F(k)", {}, {}),
    ("y(i) = B(i+j) * F(j) + B(i+2*j+1) * F(j)", {"y": "s"}, {}),
    ("y(i) = B(i+j) * F(j) + B(i+2*j+1) * F(j)", {}, {}),
    ("y(i) = B(i+j) * F(j)", {}, {"boundary": "wrap"}),
    ("y(i) = B(2*i+3*j-1) * F(j)", {}, {"boundary": "wrap"}),
    ("y(i) = B(i-1) - 2 * B(i) + B(i+1)", {"y": "s"}, {"boundary": "wrap"}),
]


@pytest.mark.parametrize(("expression", "formats", "options"), GROWING)
def test_work_does_not_grow_with_what_is_not_stored(expression: str, formats: dict[str, str], options: dict[str, Any]) -> None:
    rng, counts = np.random.default_rng(1), []
    apart = np.sort(rng.choice(1000, 100, replace=False)) * 90 + 5
    for extent, factor in ((10**5, 1), (10**6, 7), (10**7, 97)):  # which leave remainders by 2 and 3 what they are
        operands = {"B": st.tensor((apart[None] * factor, np.ones(100)), "s", (extent,))}
        if "F" in expression:
            operands["F"] = np.ones(3)
        shape = {"i": extent} if options else None
        kernel = st.compile(expression, {"B": "s", **formats}, shape=shape, **options)
        counts.append(kernel.bind(**operands, threads=1).count()["iterations"])
    assert max(counts) <= 100 * 3 * (1 + 3) * 4
    assert len(set(counts)) == 1


def stored_offsets(matrix: NDArray[Any], i: int) -> list[int]:
    """Return at which j something of rows i and i + 1 is stored in columns j to j + 2."""
    return [j for j in range(matrix.shape[1] - 2) if matrix[i : i + 2, j : j + 3].any()]


def test_offsets_below_many_parents_are_those_at_which_one_of_them_stores_something() -> None:
    """Case (c) of section 5.2 of Liu et al.: i leaves rows i and i + 1 open, in both of which j looks for columns j to j + 2."""
    matrix = 1.0 * (np.random.default_rng(5).random((12, 60)) < 0.05)
    matrix[3] = 0
    bound = st.compile(IMAGE, {"A": "dcsr"}, schedule="reorder(i, j, p, q)").bind(A=st.tensor(matrix, "dcsr"), F=np.ones((2, 3)), threads=1)
    wanted = 0
    for i in range(11):
        rows = [row for row in (i, i + 1) if matrix[row].any()]
        offsets = stored_offsets(matrix, i)
        entries = sum(np.count_nonzero(matrix[row, j : j + 3]) for j in offsets for row in rows)
        looked = len(rows) * (1 + len(offsets))  # at the parents, at first and for the next offset
        wanted += bool(rows) * (1 + looked + len(offsets) * (1 + len(rows)) + entries)
    assert bound.count()["iterations"] == wanted


def test_where_hardly_an_offset_is_empty_all_are_visited() -> None:
    """Looking for the next one at every parent costs more than a visit in vain."""
    kernel = st.compile(IMAGE, {"A": "dcsr"}, schedule="reorder(i, j, p, q)")
    bound = kernel.bind(A=st.tensor(np.ones((12, 60)), "dcsr"), F=np.ones((2, 3)), threads=1)
    assert bound.count()["iterations"] == 11 + 11 * 58 * (1 + 2 + 6)


@pytest.mark.parametrize(("form", "order"), [("dcsr", "i, j, p, q"), ("coo", "i, j, p, q"), ("dcsr", "j, i, p, q"), ("dcsr", "p, q, i, j")])
def test_work_below_many_parents_does_not_grow_with_what_is_not_stored(form: str, order: str) -> None:
    rng, counts = np.random.default_rng(1), []
    places = np.sort(rng.choice(3000, 100, replace=False)), rng.choice(3000, 100, replace=False)
    for extent in (10**5, 10**6, 10**7):
        stored = np.stack(places) * (extent // 10**4) + 10
        operands = {"A": st.tensor((stored, np.ones(100)), form, (extent, extent)), "F": np.ones((3, 3))}
        kernel = st.compile("s = A(i+p,j+q) * F(p,q)", {"A": form}, schedule=f"reorder({order})")
        counts.append(kernel.bind(**operands, threads=1).count()["iterations"])
    assert len(set(counts)) == 1


@pytest.mark.parametrize("form", ["csf", "sss", "dss", "coo", "ssd"])
@pytest.mark.parametrize("order", ["i, j, k, p, q, r", "j, i, k, p, q, r", "k, i, p, j, q, r", "p, i, j, k, q, r", "k, j, i, p, q, r"])
def test_loops_over_volumes_go_through_parents_of_parents(form: str, order: str) -> None:
    rng = np.random.default_rng(11)
    volume = rng.integers(1, 5, (5, 6, 7)) * (rng.random((5, 6, 7)) < 0.15) * 1.0
    weights = np.arange(1.0, 13).reshape(2, 2, 3)
    wanted = sum(weights[p, q, r] * volume[2 * p : 2 * p + 3, q : q + 5, r : r + 5] for p, q, r in np.ndindex(2, 2, 3))
    found = st.evaluate(
        "Y(i,j,k) = A(i+2*p,j+q,k+r) * F(p,q,r)", {"A": st.tensor(volume, form), "F": weights}, schedule=f"reorder({order})",
        target="interpreter",
    )  # fmt: skip
    assert np.array_equal(found, wanted)
