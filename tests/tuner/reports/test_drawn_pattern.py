"""Numbers of fibres and entries that are drawn without a tensor, against tensors drawn cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner.distributed.grid import grid_shapes
from sparsetune.tuner.reports.drawn_pattern import DrawnPattern, drawn_levels

SHAPE = (9, 7, 5)


@pytest.mark.parametrize("density", [0.002, 0.03, 0.4])
def test_levels_are_those_of_tensors_drawn_cell_by_cell(density: float) -> None:
    rng, draws = np.random.default_rng(1), 4000
    found = np.array([drawn_levels(SHAPE, density, rng) for _ in range(draws)])
    cells = rng.random((draws, *SHAPE)) < density
    counted = np.stack([cells.any((2, 3)).sum(1), cells.any(3).sum((1, 2)), cells.sum((1, 2, 3))], axis=1)
    error = np.sqrt((found.var(0) + counted.var(0)) / draws)
    assert (abs(found.mean(0) - counted.mean(0)) < 5 * error + 1e-9).all()
    np.testing.assert_allclose(np.cov(found.T), np.cov(counted.T), rtol=0.2, atol=0.1)


@pytest.mark.parametrize("ranks", [1, 4, 7])
def test_full_tensors_take_what_they_take(ranks: int) -> None:
    expression, full = "a = B(i,j,k)", DrawnPattern(SHAPE, 1.0)
    stored: Tensor = st.tensor(np.ones(SHAPE), "csf")
    for grid in grid_shapes(ranks, 3):
        found = st.distributed.volume(expression, {"B": full}, grid=grid)
        assert found == st.distributed.volume(expression, {"B": stored}, grid=grid)


def test_places_that_no_coordinate_reaches_are_empty() -> None:
    counts = DrawnPattern((2, 3, 50), 0.5).counts((4, 1, 1))
    assert (counts[2:] == 0).all()
    assert (counts[:2] > 0).all()


def test_billions_of_entries_are_spread_evenly() -> None:
    pattern = DrawnPattern((80,) * 6, 0.01)
    counts = pattern.counts((1, 4, 4, 4, 4, 1))
    assert len(counts) == 256
    assert counts.sum() == pytest.approx(pattern.nnz, rel=1e-4)
    assert counts.max() == pytest.approx(0.01 * 80**6 / 256, abs=6 * math.sqrt(0.01 * 80**6 / 256))
    assert (pattern.bytes((1, 4, 4, 4, 4, 1)) > 12 * counts).all()
