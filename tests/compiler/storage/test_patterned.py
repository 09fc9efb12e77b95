"""Patterned levels: what they hold, what they refuse, and that kernels read them as they read compressed ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from hypothesis import given, settings
from hypothesis import strategies as draws
from level_cases import SCHEDULES
from sparsetune.compiler.storage.tensor import Tensor
from storage_cases import stored_entries


def stencil(*shape: int, whole: bool = False) -> scipy.sparse.csr_array:
    """Return the matrix of a grid's points and their neighbours along axes, or of all around them; some rows are empty."""
    rng, places = np.random.default_rng(0), np.stack([axis.ravel() for axis in np.indices(shape)])
    rows, columns = [], []
    for step in itertools.product((-1, 0, 1), repeat=len(shape)):
        if not whole and np.abs(step).sum() > 1:
            continue
        there = places + np.array(step)[:, None]
        inside = ((there >= 0) & (there < np.array(shape)[:, None])).all(axis=0)
        rows.append(np.flatnonzero(inside))
        columns.append(np.ravel_multi_index(tuple(there[:, inside]), shape))
    row, column = np.concatenate(rows), np.concatenate(columns)
    kept = row % 11 != 3
    entries = rng.standard_normal(int(kept.sum())), (row[kept].astype(np.int32), column[kept].astype(np.int32))
    return scipy.sparse.coo_array(entries, shape=(np.prod(shape),) * 2).tocsr()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("matrix", [stencil(300, 400), stencil(9, 8, 7, whole=True)], ids=["5 points", "27 points"])
def test_kernels_read_patterns(matrix: scipy.sparse.csr_array, schedule: str) -> None:
    stored = st.tensor(matrix, "dense, patterned")
    x = np.random.default_rng(1).standard_normal(matrix.shape[1])
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "dense, patterned"}, schedule=schedule)
    assert np.allclose(kernel(A=stored, x=x, threads=2), matrix @ x, rtol=1e-13, atol=1e-13)


def test_what_is_read_ahead_belongs_to_the_row() -> None:
    """Behind the distances of the last pattern nothing stands; the interpreter checks every access."""
    matrix = stencil(4, 5)
    x = np.random.default_rng(1).standard_normal(20)
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "dt"}, schedule="prefetch(j, x, 40)", target="interpreter")
    assert np.allclose(kernel(A=st.tensor(matrix, "dt"), x=x), matrix @ x)


def test_a_stencil_has_a_few_patterns_and_converts_back() -> None:
    matrix = stencil(40, 50)
    rows, patterned = st.tensor(matrix, "csr"), st.tensor(matrix, "dense, patterned")
    assert len(patterned.levels[1].parts["distances"]) == 5 + 4 * 4 + 3 * 3  # inside, at sides, in corners but the empty one
    assert patterned.nbytes == rows.nbytes - 4 * matrix.nnz + 4 * 2000 + 4 * 30
    back = patterned.convert("csr")
    assert all(np.array_equal(back.levels[1].parts[part], array) for part, array in rows.levels[1].parts.items())
    assert abs(patterned.to_scipy() - matrix).max() == 0
    assert str((patterned + patterned).format) == "dense, compressed"
    assert str(patterned[3:90:2].format) == "dense, patterned"


@settings(max_examples=60, deadline=None)
@given(data=draws.data(), form=draws.sampled_from(["dt", "tt", "st", "dt; 1, 0", "tn; 1, 0", "tdt", "ttt; 2, 0, 1", "hst", "dqt", "t"]))
def test_any_pattern_is_held_and_read(data: draws.DataObject, form: str) -> None:
    order = len(form.partition(";")[0])
    shape = tuple(data.draw(draws.sampled_from((0, 1, 2, 5))) for _ in range(order))
    size = int(np.prod(shape))
    dense = np.array(data.draw(draws.lists(draws.sampled_from((0.0, 0.0, 1.0, -2.0)), min_size=size, max_size=size))).reshape(shape)
    entries = np.nonzero(dense >= 0) if data.draw(draws.booleans()) else np.nonzero(dense)  # explicit zeros, or none
    try:
        stored = st.tensor((np.stack(entries), dense[entries]), form, shape=shape)
    except st.FormatError:
        assert "q" in form
        return
    kept = np.zeros(shape)
    kept[entries] = dense[entries]
    assert np.array_equal(stored.to_numpy(), kept)
    assert {place: value for place, value in stored_entries(stored).items() if value} == dict(zip(
        zip(*(axis.tolist() for axis in np.nonzero(kept)), strict=True), kept[kept != 0].tolist(), strict=True))  # fmt: skip
    indices = "ijk"[:order]
    total = st.evaluate(f"s = T({','.join(indices)}) * T({','.join(indices)})", {"T": stored})
    assert float(total) == (kept * kept).sum()
    assert np.array_equal(Tensor(stored.shape, stored.format, stored.levels, stored.values).to_numpy(), kept)


def test_products_with_other_sparse_operands() -> None:
    left, right = stencil(12, 13), stencil(12, 13)
    right.data[::3] = 2.0
    patterned = {"A": st.tensor(left, "dense, patterned"), "B": st.tensor(right, "patterned, patterned")}
    for form in ("csr", "dense, patterned", "dcsr", "patterned, patterned"):
        for sign, expected in (("+", left + right), ("*", left * right)):
            made = st.evaluate(f"C(i,j) = A(i,j) {sign} B(i,j)", patterned, output_format=form)
            assert abs(made.to_scipy() - expected).max() == 0
    product = st.evaluate("C(i,k) = A(i,j) * B(k,j)", patterned, output_format="csr")
    assert np.allclose(product.to_numpy(), (left @ right.T).toarray())


def test_compound_subscripts_read_patterns() -> None:
    matrix = stencil(5, 6)
    x = np.random.default_rng(2).standard_normal(4)
    made = st.evaluate("y(i,j) = A(i,j+k) * x(k)", {"A": st.tensor(matrix, "dt"), "x": x})
    assert np.allclose(made, np.lib.stride_tricks.sliding_window_view(matrix.toarray(), 4, axis=1) @ x)


def test_vectors_take_distances_of_32_bits_from_the_row() -> None:
    source = st.compile("y(i) = A(i,j) * x(j)", {"A": "dense, patterned"}).source
    assert "int64_t shift_j = A2_start[i] - (int64_t)A2_pos[i];" in source
    assert "(&x_vals[i], j" in source
    assert "i64x" not in source


def test_wide_extents_have_distances_of_64_bits() -> None:
    far = 2**40
    entries = (np.array([[0, 0, 1], [far, far + 9, 3]]), np.array([1.0, 2.0, 4.0]))
    stored = st.tensor(entries, "dense, patterned", shape=(2, far + 10))
    assert stored.levels[1].parts["distances"].dtype == np.int64
    other = st.tensor(entries, "dcsr", shape=(2, far + 10))
    made = st.evaluate("C(i,j) = A(i,j) * B(i,j)", {"A": stored, "B": other}, output_format="dcsr")
    assert made.to_coordinates()[1].tolist() == [1.0, 4.0, 16.0]


def test_arrays_that_are_no_patterned_level_are_refused() -> None:
    stored = st.tensor(stencil(4, 5), "dense, patterned")
    arrays = stored.levels[1].parts
    wrong = {
        "starts from which on enough of 33 distances follow": {"start": arrays["start"] + 90},
        "coordinates below 20": {"distances": arrays["distances"] + 20},
        "as many starts": {"start": arrays["start"][1:]},
        "coordinates that increase inside each fibre": {"distances": arrays["distances"] * 0},
        "index arrays of int32 or int64": {"start": arrays["start"].astype(float)},
    }
    for fault, changed in wrong.items():
        with pytest.raises(st.DataError, match=f"level 2 is broken: a level that is patterned has .*{fault}"):
            Tensor(stored.shape, stored.format, (stored.levels[0], stored.levels[1].having(**changed)), stored.values)
    with pytest.raises(st.FormatError, match="singleton level cannot stand below a patterned one"):
        st.Format("patterned, singleton")


def test_a_schedule_may_convert_to_it() -> None:
    matrix = stencil(30, 40)
    x = np.random.default_rng(4).standard_normal(matrix.shape[1])
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule='convert(A, "dense, patterned")')
    assert "_distances[" in kernel.source
    assert str(st.Schedule(str(kernel.schedule))) == str(kernel.schedule)
    assert np.allclose(kernel(A=matrix, x=x), matrix @ x)
