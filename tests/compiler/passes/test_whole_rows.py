"""Rows that only one tile of positions has are stored once, and zeros stand wherever tiles meet."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from sparsetune.compiler.format import Format
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.native.machine import Machine
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.aligned import aligned_copy, aligned_full
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.level_arrays import LevelArrays
from sparsetune.compiler.storage.tensor import Tensor

SPMM, SPMV = "Y(i,k) = A(i,j) * X(j,k)", "Y(i) = A(i,j) * X(j)"
COLUMNS = 9


def spmm(split: str, width: int | None = 8, race: str = "atomics") -> Kernel:
    """Return a product with a matrix of so many columns, or with a vector."""
    schedule = f"collapse(i, j, f); pos(f, p, A); {split}; parallelize(p0, cpu_thread, {race}, static)"
    return compile_kernel(SPMM if width else SPMV, {"A": "csr"}, extents={"k": width} if width else {}, schedule=schedule)


def shape(length: int, width: int | None) -> tuple[int, ...]:
    return (length, width) if width else (length,)


def updates(source: str) -> list[str]:
    """Return how each loop over rows that writes the result does so, in vectors or elements."""
    loops = re.split(r"for \(int64_t i = |while \(i_filled ", source[source.index("tiles of p") :])[1:]
    found = [" ".join(sorted(set(re.findall(r"Y_vals\[i[^\]]*\] (\+?=)", loop)))) for loop in loops]
    return [ways for ways in found if ways]


@pytest.mark.parametrize(("width", "whole"), [(8, 1), (7, 1), (None, 7)], ids=["lines", "short rows", "elements, seven ways"])
def test_only_rows_inside_a_tile_are_stored(width: int | None, whole: int) -> None:
    source = spmm("split_up(p, p0, p1, 2)", width).source
    assert updates(source) == ["=", *["="] * whole, "="]
    assert source.count("st_atomic_add") == 2  # in rows that are cut
    assert "where tiles of p0 meet" in source


@pytest.mark.parametrize("width", [7, 11])
def test_vectors_of_rows_overlap_as_without_tiles(width: int) -> None:
    """Rows at the ends of tiles, that may be cut, would add elements twice if they added vectors in place."""
    whole = compile_kernel(SPMM, {"A": "csr"}, extents={"k": width}).source
    added = re.compile(r"\w+ \+= A_vals_value\w* \*")
    assert len(added.findall(spmm("split_up(p, p0, p1, 2)", width).source)) == 3 * len(added.findall(whole))


@pytest.mark.parametrize(
    "kernel",
    [
        spmm("split(p, p0, p1, 16)"),
        spmm("split_up(p, p0, p1, 2)", race="temporary"),
    ],
    ids=["short tiles", "results of threads"],
)
def test_other_results_are_filled_and_added_to(kernel: Kernel) -> None:
    assert "=" not in updates(kernel.source)
    assert "meet" not in kernel.source


def test_whole_rows_of_large_results_go_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "last_level_cache", property(lambda _: 16))
    rng = np.random.default_rng(6)
    a = sp.random_array((3000, 90), density=0.1, format="csr", rng=rng)
    x, out = aligned_copy(rng.random((90, 32))).reshape(90, 32), aligned_full(3000 * 32, np.nan, np.float64).reshape(3000, 32)
    kernel = spmm("split_up(p, p0, p1, 5)", 32)
    bound = kernel.bind(A=a, X=x, threads=3, out=out)
    assert bound.arguments()[1][-1] == 1
    bound()
    np.testing.assert_allclose(out, a @ x)
    whole = kernel.source[kernel.source.index("i = i_whole") :].partition("for (int64_t i = i_cut")[0]
    assert "st_stream_" in whole
    assert "st_stream_" not in kernel.source.partition("int32_t st_kernel")[2].replace(whole, "")


LENGTHS = st.one_of(
    st.lists(st.sampled_from((0, 0, 0, 1, COLUMNS)), min_size=1, max_size=30),
    st.lists(st.integers(0, COLUMNS), min_size=1, max_size=14),
)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=st.integers(0, 99))
@pytest.mark.parametrize("width", [8, 7, None])
@pytest.mark.parametrize("split", ["split_up(p, p0, p1, 1)", "split_up(p, p0, p1, 3)", "split_up(p, p0, p1, 40)", "split(p, p0, p1, 300)"])
def test_every_row_is_written(split: str, width: int | None, lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.sort(rng.permutation(COLUMNS)[:length]) for length in lengths]).astype(int)
    dense = np.zeros((len(lengths), COLUMNS))
    dense[np.repeat(np.arange(len(lengths)), lengths), columns] = rng.random(len(columns))
    x, out = rng.random(shape(COLUMNS, width)), np.full(shape(len(lengths), width), np.nan)
    spmm(split, width)(A=tensor(dense, "csr"), X=x, threads=3, out=out)
    np.testing.assert_allclose(out, dense @ x)


@pytest.mark.parametrize("width", [32, None])
def test_large_rows_and_many_tiles(width: int | None) -> None:
    rng = np.random.default_rng(4)
    lengths = np.where(rng.random(4000) < 0.5, 0, rng.integers(0, 60, 4000))
    lengths[[0, 1, 1999, 3999]] = [0, 3000, 2500, 0]
    rows = np.repeat(np.arange(4000), lengths)
    columns = np.concatenate([np.sort(rng.choice(3000, length, replace=False)) for length in lengths])
    values, x = rng.random(len(rows)), rng.random(shape(3000, width))
    matrix = tensor((np.stack((rows, columns)), values), "csr", (4000, 3000))
    expected = matrix.to_scipy() @ x
    for split in ("split_up(p, p0, p1, 2)", "split_up(p, p0, p1, 64)", "split(p, p0, p1, 1024)"):
        out = np.full(shape(4000, width), np.nan)
        spmm(split, width)(A=matrix, X=x, threads=4, out=out)
        np.testing.assert_allclose(out, expected)


def fibres(split: str) -> Kernel:
    """Return a product with a tensor whose tiles cut fibres of rows."""
    schedule = f"collapse(i, j, f1); collapse(f1, k, f2); pos(f2, p, T); {split}; parallelize(p0, cpu_thread, atomics, static)"
    expression, formats = "Y(i,r) = T(i,j,k) * C(k,r)", {"T": "dense, compressed, compressed"}
    return compile_kernel(expression, formats, extents={"r": 8}, schedule=schedule)


def test_rows_of_fibres_that_are_inside_a_tile_are_stored() -> None:
    source = fibres("split_up(p, p0, p1, 2)").source
    assert updates(source) == ["=", "=", "="]
    assert source.count("st_atomic_add") == 2  # in rows that are cut
    assert "where tiles of p0 meet" in source


Lengths = list[list[int | None]]
ROW = st.lists(st.sampled_from((None, None, 0, 1, 2, 5)), min_size=4, max_size=4)
"""The numbers of elements of a row's fibres; None: it has no such fibre, 0: it has one without elements."""


def tensor_of_fibres(lengths: Lengths, rng: np.random.Generator) -> tuple[Tensor, NDArray[np.float64]]:
    """Return a tensor with fibres of given lengths, and the same as an array."""
    at = [(i, j, n) for i, row in enumerate(lengths) for j, n in enumerate(row) if n is not None]
    columns = [np.sort(rng.permutation(COLUMNS)[:n]) for _, _, n in at]
    dense = np.zeros((len(lengths), 4, COLUMNS))
    for (i, j, n), found in zip(at, columns, strict=True):
        dense[i, j, found] = rng.random(n)
    rows = LevelArrays(pos=integers(np.searchsorted([i for i, _, _ in at], range(len(lengths) + 1))), crd=integers([j for _, j, _ in at]))
    fibres = LevelArrays(pos=integers(np.cumsum([0, *(n for _, _, n in at)])), crd=integers([k for found in columns for k in found]))
    return Tensor(dense.shape, Format("dense, compressed, compressed"), (LevelArrays(), rows, fibres), dense[dense != 0]), dense


def integers(numbers: ArrayLike) -> NDArray[np.int32]:
    return np.asarray(numbers, np.int32)


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(ROW, min_size=1, max_size=12), seed=st.integers(0, 99))
@pytest.mark.parametrize("split", ["split_up(p, p0, p1, 1)", "split_up(p, p0, p1, 3)", "split_up(p, p0, p1, 40)", "split(p, p0, p1, 300)"])
def test_every_row_of_fibres_is_written(split: str, lengths: Lengths, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stored, dense = tensor_of_fibres(lengths, rng)
    c, out = rng.random((COLUMNS, 8)), np.full((len(lengths), 8), np.nan)
    fibres(split)(T=stored, C=c, threads=3, out=out)
    np.testing.assert_allclose(out, np.einsum("ijk,kr->ir", dense, c))
