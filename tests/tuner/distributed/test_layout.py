"""Layouts of dense tensors against listing every element; grids against their definition."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from sparsetune.compiler.errors import DataError
from sparsetune.tuner.distributed.grid import checked_grid, choose_grid, coordinates_of, grid_shapes, local_extent, ranks_of
from sparsetune.tuner.distributed.layout import Layout, moved_elements


@some.composite
def layouts(draw: some.DrawFn, grid: tuple[int, ...] | None = None, shape: tuple[int, ...] | None = None) -> Layout:
    shape = tuple(draw(some.lists(some.integers(0, 7), max_size=3))) if shape is None else shape
    grid = tuple(draw(some.lists(some.integers(1, 4), min_size=1, max_size=3))) if grid is None else grid
    free: list[int | None] = list(range(len(grid)))
    dims: list[int | None] = []
    for _ in shape:
        dims.append(draw(some.sampled_from([None, *free])))
        free = [dim for dim in free if dim != dims[-1]]
    return Layout(shape, grid, tuple(dims))


@given(layouts())
def test_every_element_is_in_one_share_whose_owner_is_known(layout: Layout) -> None:
    ranks = math.prod(layout.grid)
    held = [layout.elements(rank) for rank in range(ranks)]
    assert sorted(np.concatenate(held)) == list(range(layout.size))
    for rank, elements in enumerate(held):
        assert (layout.owners(elements) == rank).all()
        assert layout.share_sizes(rank)[layout.position(rank)] == len(elements)


@given(layouts())
def test_shares_of_a_sub_grid_make_its_block(layout: Layout) -> None:
    whole = np.arange(layout.size).reshape(layout.shape)
    ranks = range(math.prod(layout.grid))
    for rank in ranks:
        places = coordinates_of(rank, layout.grid)
        group = [other for other in ranks if all(coordinates_of(other, layout.grid)[dim] == places[dim] for dim in layout.used)]
        assert [layout.position(other) for other in group] == list(range(layout.replicas))
        block = whole[layout.block(rank)]
        assert block.shape == layout.block_shape(rank)
        assert np.array_equal(np.concatenate([layout.elements(other) for other in group]), block.ravel())


@given(some.data())
def test_elements_that_move_are_those_with_another_owner(data: some.DataObject) -> None:
    grid, other = data.draw(some.sampled_from([((2, 3), (3, 2)), ((4,), (2, 2)), ((1, 5), (5, 1)), ((2, 2), (2, 2))]))
    source = data.draw(layouts(grid))
    target = data.draw(layouts(other, source.shape))
    moved = sum(len(np.setdiff1d(target.elements(rank), source.elements(rank))) for rank in range(math.prod(grid)))
    assert moved_elements(source, target) == moved


@pytest.mark.parametrize(("ranks", "modes"), [(1, 3), (7, 2), (12, 3), (64, 2)])
def test_grids_are_all_ordered_products(ranks: int, modes: int) -> None:
    expected = [shape for shape in product(range(1, ranks + 1), repeat=modes) if math.prod(shape) == ranks]
    assert list(grid_shapes(ranks, modes)) == expected


def test_ranks_stand_in_row_major_order() -> None:
    columns = [np.array([5, 4, 7]), np.array([3, 3, 1])]
    grid = (2, 3)
    assert ranks_of(columns, grid).tolist() == [1 * 3 + 0, 0 * 3 + 0, 1 * 3 + 1]
    assert [coordinates_of(rank, grid) for rank in range(6)] == list(product(range(2), range(3)))
    assert [local_extent(11, 4, place) for place in range(4)] == [3, 3, 3, 2]
    assert [local_extent(2, 5, place) for place in range(5)] == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("grid", [(2, 2), (1, 1, 3), (2, 0, 2), (2, "x", 1), 4, (1.5, 2, 2)])
def test_grids_that_do_not_fit_are_refused(grid: object) -> None:
    with pytest.raises(DataError):
        checked_grid(grid, 4, 3)  # type: ignore[arg-type]


def test_the_grid_that_holds_least_is_chosen_among_those_near_the_best() -> None:
    moved = {(1, 4): 100, (2, 2): 109, (4, 1): 111}
    held = {(1, 4): 9.0, (2, 2): 8.0, (4, 1): 1.0}
    assert choose_grid(list(moved), lambda grid: moved[grid], lambda grid: held[grid], lambda grid: held[grid]) == (2, 2)
