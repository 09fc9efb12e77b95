"""Sketches of operands answer every question as the tensors do that are made of the same data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st_draw
from sparsetune.compiler.space.joins import Joins
from sparsetune.compiler.space.relations import Scan, join
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.positions import level_extent
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner import facts, sketches
from sparsetune.tuner.features import operand_features
from sparsetune.tuner.row_ends import alone_over_batched
from sparsetune.tuner.scattering import scattered_share
from sparsetune.tuner.shares import chunks, dynamic_excess, largest_chunk, static_excess
from sparsetune.tuner.sketches import sketch


def told(operand: Any) -> list[Any]:
    """The answers to all questions."""
    found: list[Any] = [facts.shape(operand), facts.size(operand), facts.entries(operand), facts.positions(operand)]
    found.append([facts.segments(operand, level) for level in range(operand.order)])
    found.append(operand_features(operand).values)
    found.append(operand.format.is_dense)
    if not operand.format.is_dense:
        found += [static_excess(operand, 3, apart) for apart in (False, True)]
        found += [question(operand, chunk) for question in (largest_chunk, chunks) for chunk in (1, 16)]
        found += [dynamic_excess(operand, chunk, 2) for chunk in (1, 16)]
        levels = range(operand.order)
        found += [scattered_share(operand, level, rows, lines, 0.5) for level in levels for rows in (2.5, 64.0) for lines in (0.25, 4.0)]
        rows = (level for level in levels if facts.segments(operand, level))
        found += [alone_over_batched(operand, level, joined, 100.0) for level in rows for joined in (False, True)]
    return [*found, *sizes_of_joins(operand)]


def sizes_of_joins(operand: Any) -> list[float | None]:
    """How many combinations a matrix has together with itself, along either of its levels."""
    if operand.order != 2:
        return []
    outer, inner = (level_extent(operand, level) for level in (0, 1))
    extents = {"i": outer, "k": inner, "j": outer, "l": inner}
    joins, one = Joins({"A": operand, "B": operand}, extents), Scan("A", ("i", "k"))
    pairs = [join({one, other}) for other in (Scan("B", ("j", "k")), Scan("B", ("i", "l")))]
    return [joins.size(join({pair}, pair.kept & set(kept))) for pair in pairs for kept in ("ijkl", "ij", "jk", "k", "il")]


@given(
    seed=st_draw.integers(0, 1000), rows=st_draw.integers(0, 400), columns=st_draw.integers(1, 300), density=st_draw.floats(0, 0.3),
    form=st_draw.sampled_from(["csr", "csc", "coo"]), index=st_draw.sampled_from([np.int32, np.int64]),
)  # fmt: skip
def test_matrices(seed: int, rows: int, columns: int, density: float, form: str, index: type) -> None:
    made = scipy.sparse.random_array((rows, columns), density=density, rng=np.random.default_rng(seed), format=form)
    if form != "coo":
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    assert told(sketch(made)) == told(tensor(made))


@given(
    seed=st_draw.integers(0, 1000), shape=st_draw.lists(st_draw.integers(0, 9), min_size=1, max_size=4), count=st_draw.integers(0, 60),
    is_sorted=st_draw.booleans(), index=st_draw.sampled_from([np.int32, np.int64]),
)  # fmt: skip
def test_coordinates(seed: int, shape: list[int], count: int, is_sorted: bool, index: type) -> None:
    """Of any number of modes, with entries that are stored more than once."""
    source = np.random.default_rng(seed)
    columns = [source.integers(0, extent, count if 0 not in shape else 0).astype(index) for extent in shape]
    order = np.lexsort(columns[::-1]) if is_sorted else slice(None)
    made = scipy.sparse.coo_array((np.ones(len(columns[0])), tuple(column[order] for column in columns)), shape=tuple(shape))
    assert isinstance(sketch(made), Tensor) == (0 in shape)
    assert told(sketch(made)) == told(tensor(made))


@pytest.mark.parametrize(
    "data",
    [2, 2.5, 1j, np.float32(3), np.ones(()), np.ones(5), np.ones((3, 4, 2)).transpose(), np.ones((4, 6))[::2, ::3], np.zeros((0, 3))],
)
def test_dense_data(data: Any) -> None:
    assert told(sketch(data)) == told(tensor(data))


def test_what_is_not_sorted_or_large_is_made_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = scipy.sparse.random_array((30, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
    assert not isinstance(sketch(plain), Tensor)
    turned = plain.copy()
    turned.indices = turned.indices[::-1].copy()
    assert isinstance(sketch(turned), Tensor)
    assert told(sketch(turned)) == told(tensor(turned))
    longer = plain.copy()
    longer.data, longer.indices = np.append(longer.data, 1.0), np.append(longer.indices, longer.indices[-1])
    assert told(sketch(longer)) == told(tensor(longer))
    monkeypatch.setattr(sketches, "_MOST", 10)
    assert isinstance(sketch(plain), Tensor)


def test_coordinates_whose_numbers_do_not_fit_into_32_bits() -> None:
    source, shape = np.random.default_rng(4), (40, 2**18, 2**20)
    columns = tuple(source.integers(0, extent, 3000) for extent in shape)
    made = scipy.sparse.coo_array((np.ones(3000), columns), shape=shape)
    assert not isinstance(sketch(made), Tensor)
    assert told(sketch(made)) == told(tensor(made))
