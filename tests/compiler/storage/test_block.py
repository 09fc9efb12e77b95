"""Blocked tensors against slices of the dense array."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sparsetune.compiler.errors import ShapeError
from sparsetune.compiler.storage.block import block, unblock
from sparsetune.compiler.storage.construct import tensor


@pytest.mark.parametrize(("shape", "extents"), [((6, 8), (2, 4)), ((7, 5), (3, 2)), ((4,), (3,)), ((3, 4, 5), (2, 2, 2))])
def test_blocks(each_kernel: str, shape: tuple[int, ...], extents: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    dense = np.where(rng.random(shape) < 0.3, rng.random(shape), 0)
    padded = np.pad(dense, [(0, -extent % inner) for extent, inner in zip(shape, extents, strict=True)])
    blocked = block(tensor(dense, "coo"), extents)
    outer = tuple(extent // inner for extent, inner in zip(padded.shape, extents, strict=True))
    assert blocked.shape == outer + extents
    interleaved = [axis for pair in zip(outer, extents, strict=True) for axis in pair]
    order = [*range(0, 2 * len(shape), 2), *range(1, 2 * len(shape), 2)]
    assert np.array_equal(blocked.to_numpy(), padded.reshape(interleaved).transpose(order))
    plain = unblock(blocked, shape)
    assert np.array_equal(plain.to_numpy(), dense)
    assert plain.nnz == np.count_nonzero(dense)


def test_same_arrays_as_bsr(each_kernel: str) -> None:
    array = sp.random_array((40, 60), density=0.05, rng=np.random.default_rng(3)).tocsr()
    reference = sp.bsr_array(array, blocksize=(4, 5))
    reference.sort_indices()
    blocked = block(tensor(array), (4, 5))
    assert str(blocked.format) == "dense, compressed, dense, dense"
    assert np.array_equal(blocked.levels[1].pos, reference.indptr)
    assert np.array_equal(blocked.levels[1].crd, reference.indices)
    assert np.array_equal(blocked.values.reshape(-1, 4, 5), reference.data)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_many_blocks_both_ways(each_kernel: str, dtype: str, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_THREADS", threads)
    array = sp.random_array((1501, 997), density=0.06, rng=np.random.default_rng(5)).tocsr().astype(dtype)
    array.data[:] = np.arange(1, len(array.data) + 1) % 100 + 1
    packed = tensor(array)
    for extents in ((1, 1), (3, 2), (2, 7), (1, 4), (4, 4), (2, 8), (70, 3)):  # few and many entries to a row of blocks
        blocked = block(packed, extents)
        whole = unblock(blocked)
        assert whole.shape == tuple(-(-extent // inner) * inner for extent, inner in zip(array.shape, extents, strict=True))
        assert whole.nnz == packed.nnz
        same = unblock(blocked, array.shape)
        assert np.array_equal(same.levels[1].pos, packed.levels[1].pos)
        assert np.array_equal(same.levels[1].crd, packed.levels[1].crd)
        assert np.array_equal(same.values, packed.values)


def test_fill_values_pad_blocks(each_kernel: str) -> None:
    packed = tensor((np.array([[0, 3], [1, 2]]), np.array([0.0, 2.0])), "csr", shape=(4, 4), fill_value=np.inf)
    blocked = block(packed, (2, 2))
    assert np.count_nonzero(np.isinf(blocked.values)) == 6
    assert unblock(blocked).values.tolist() == [0.0, 2.0]
    zeros = tensor((np.array([[0, 1, 3], [1, 0, 2]]), np.array([-0.0, 0.0, 2.0])), "csr", shape=(4, 4))
    assert unblock(block(zeros, (2, 2))).values.tolist() == [2.0]


def test_bad_blocks() -> None:
    packed = tensor(np.eye(4), "csr")
    with pytest.raises(ShapeError, match="one extent from 1 on for each of the 2 modes"):
        block(packed, (2,))
    with pytest.raises(ShapeError, match="from 1 on"):
        block(packed, (0, 2))
    with pytest.raises(ShapeError, match="lie outside"):
        unblock(block(packed, (2, 2)), (3, 3))
    with pytest.raises(ShapeError, match="cover a tensor of shape"):
        unblock(block(packed, (2, 2)), (5, 4))
    with pytest.raises(ShapeError, match="two modes for each"):
        unblock(tensor(np.ones(3), "csf"))


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "int16", "complex128"])
def test_rows_full_and_padded_come_back(width: int, dtype: str) -> None:
    rng = np.random.default_rng(width)
    dense = rng.integers(1, 9, (6, 10 * width)) * (rng.random((6, 10 * width)) < 0.4)
    dense[0], dense[3] = 1, 0
    plain = tensor(dense.astype(dtype), "csr")
    found = unblock(block(plain, (2, width)))
    assert found.nnz == plain.nnz
    assert (found.to_numpy() == dense).all()
