"""Loops over the segments of a tile: only the first and the last segment are clipped, whatever the tiles cut."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.construct import tensor

SPMV = "y(i) = A(i,j) * x(j)"
TTV = "A(i,j) = B(i,j,k) * c(k)"
ROWS = "collapse(i, j, f); pos(f, p, A); {}; parallelize(p0, cpu_thread, {}, static)"
FIBRES = "collapse(i, j, f); collapse(f, k, g); pos(g, p, B); {}; parallelize(p0, cpu_thread, atomics, static)"


ONE_BY_ONE = "; unroll(p1, 1)"
"""Sums without batches of rows, so that the source shows one loop for each kind of segment."""


def spmv(split: str, race: str = "atomics", sums: str = "") -> Kernel:
    return compile_kernel(SPMV, {"A": "csr"}, schedule=ROWS.format(split, race) + sums)


def clips_of_row_loops(source: str) -> list[int]:
    """Return how many clips each loop over rows has."""
    loops = re.split(r"for \(int64_t i = ", source[source.index("tiles of p") :])[1:]
    return [len(re.findall(r"st_(?:max|min)_i64\(\(int64_t\)A2_pos", loop)) for loop in loops]


def test_rows_inside_a_tile_are_neither_clipped_nor_locked() -> None:
    source = spmv("split_up(p, p0, p1, 2)", sums=ONE_BY_ONE).source
    assert clips_of_row_loops(source) == [2, 0, 2]
    first, whole, last = re.split(r"for \(int64_t i = ", source[source.index("tiles of p") :])[1:]
    assert ["atomic" in part for part in (first, whole, last)] == [True, False, True]


@pytest.mark.parametrize("race", ["atomics", "temporary"])
def test_short_tiles_have_one_loop(race: str) -> None:
    """Whole tiles have no copy of their own, since a loop over a row ends with it in them, too."""
    assert clips_of_row_loops(spmv("split(p, p0, p1, 16)", race, ONE_BY_ONE).source) == [2]
    assert clips_of_row_loops(spmv("split(p, p0, p1, 4096)", race, ONE_BY_ONE).source) == [2, 0, 2]


def test_nothing_below_a_whole_row_is_clipped() -> None:
    formats = {"B": "dense, compressed, compressed", "A": "dense, compressed"}
    source = compile_kernel(TTV, formats, schedule=FIBRES.format("split_up(p, p0, p1, 3)") + ONE_BY_ONE).source
    _, whole, _ = re.split(r"for \(int64_t i = ", source[source.index("tiles of p") :])[1:]
    assert not re.search(r"st_(max|min)_i64", whole.partition("for (int64_t i")[0].replace("i_cut", ""))


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=14), seed=st.integers(0, 99))
@pytest.mark.parametrize("split", ["split_up(p, p0, p1, 1)", "split_up(p, p0, p1, 3)", "split_up(p, p0, p1, 40)", "split(p, p0, p1, 300)"])
@pytest.mark.parametrize("race", ["atomics", "temporary"])
def test_any_rows(split: str, race: str, lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.sort(rng.permutation(9)[:length]) for length in lengths])
    rows = np.repeat(np.arange(len(lengths)), lengths)
    dense = np.zeros((len(lengths), 9))
    dense[rows, columns.astype(int)] = rng.random(len(rows))
    x = rng.random(9)
    np.testing.assert_allclose(spmv(split, race)(A=tensor(dense, "csr"), x=x, threads=3), dense @ x)


@settings(max_examples=40, deadline=None)
@given(shape=st.tuples(*(st.integers(1, 5),) * 3), density=st.floats(0, 1), tiles=st.sampled_from((1, 2, 5, 30)), seed=st.integers(0, 99))
def test_any_fibres(shape: tuple[int, int, int], density: float, tiles: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < density, rng.random(shape), 0)
    c = rng.random(shape[2])
    formats = {"B": "dense, compressed, compressed", "A": "dense, compressed"}
    kernel = compile_kernel(TTV, formats, schedule=FIBRES.format(f"split_up(p, p0, p1, {tiles})"))
    np.testing.assert_allclose(kernel(B=tensor(dense, formats["B"]), c=c, threads=3).to_numpy(), dense @ c)
