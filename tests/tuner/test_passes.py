"""Lines that come again from caches farther away, by the static model and as a cache of that size would miss them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.addresses import leaves
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.distances import FAR
from sparsetune.tuner.passes import Passes
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem

ROWS, COLUMNS = 150_000, 8
"""Of a matrix whose column sums go to a result that is larger than the near caches."""

LINE, PRICE = 8, 6.0
"""Elements of a line, and operations that one of a result costs which comes again from caches beyond the second level and goes back."""

MATRIX = sp.csc_array(sp.random_array((ROWS, COLUMNS), density=0.5, format="csc", rng=np.random.default_rng(1)))
BY_COLUMNS = "y(i) = A(i,j) * x(j)"


def by_columns() -> Problem:
    return make_problem(BY_COLUMNS, {"A": MATRIX, "x": np.ones(COLUMNS)}, threads=1)


def charged(problem: Problem, schedule: str, iterations: float) -> float:
    """Return the operations that the model has for lines which come again, where loops run so many times."""
    found = problem.concretized()
    program = apply_schedule(found.program, Schedule(schedule), found.formats, problem.constants)
    passes = Passes(problem, program, found.sources)
    ((address, leaf),) = leaves(program.statement)
    return passes.passed_again(address, leaf, iterations)


def missed_again(touched: Iterable[int]) -> int:
    """Return how many lines a cache of ``FAR`` elements that forgets the one that was used longest ago must get a second time."""
    cache, known, missed = OrderedDict[int, None](), set[int](), 0
    for line in (element // LINE for element in touched):
        missed += line in known and line not in cache
        known.add(line)
        cache[line] = None
        cache.move_to_end(line)
        if len(cache) > FAR / LINE:
            cache.popitem(last=False)
    return missed


@pytest.mark.parametrize(
    "schedule",
    ["", "collapse(j, i, f)", "collapse(j, i, f); pos(f, p, A)", "collapse(j, i, f); pos(f, p, A); split(p, p0, p1, 16)"],
    ids=["nested", "collapsed", "positions", "split positions"],
)
def test_collapsed_loops_pass_over_a_result_again(schedule: str) -> None:
    """However the loops are written they do the same, as their counts say."""
    kernels = [compile_kernel(BY_COLUMNS, {"A": "csc"}, schedule=text) for text in (schedule, "")]
    one, other = (kernel.bind(A=MATRIX, x=np.ones(COLUMNS), threads=1).count() for kernel in kernels)
    assert one["flops"] == other["flops"] == 2 * MATRIX.nnz
    expected = PRICE * missed_again(MATRIX.indices.tolist())
    assert expected > 0
    assert charged(by_columns(), schedule, one["flops"] / 2) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("schedule", ["reorder(i, j)", "collapse(i, j, f)", "split(i, i0, i1, 1024); reorder(i0, j, i1)"])
def test_loops_that_stay_in_a_tile_of_a_result_pass_over_it_once(schedule: str) -> None:
    dense = np.ones((COLUMNS, ROWS))
    problem = make_problem("y(i) = B(j,i) * x(j)", {"B": dense, "x": np.ones(COLUMNS)}, threads=1)
    tile = 1024 if "1024" in schedule else 1
    touched = (row for start in range(0, ROWS, tile) for _ in range(COLUMNS) for row in range(start, min(start + tile, ROWS)))
    assert missed_again(touched) == 0
    assert charged(problem, schedule, dense.size) == 0


def test_a_pass_over_a_result_touches_the_rows_that_a_fibre_has() -> None:
    """A loop through stored fibres reaches few rows of the result in each pass, each of them in whole lines."""
    extents, columns, expression = (400, 8000, 50), 32, "A(j,r) = T(i,j,k) * V(k,r)"
    rng = np.random.default_rng(3)
    entries = np.unique(np.stack([rng.integers(0, extent, 150_000) for extent in extents], axis=1), axis=0)
    stored = st.tensor((tuple(entries.T), np.ones(len(entries))), "csf", shape=extents)
    problem = make_problem(expression, {"T": stored, "V": np.ones((extents[2], columns))}, threads=1)
    assert extents[1] * columns > 1.5 * FAR
    expected = PRICE * missed_again(row * columns + column for row in entries[:, 1].tolist() for column in range(0, columns, LINE))
    assert expected > 0
    assert charged(problem, "", len(entries) * columns) == pytest.approx(expected, rel=0.1)
