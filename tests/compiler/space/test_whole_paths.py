"""Loops over several indices at once in the whole space: collapsed, and ways through a matrix."""

from __future__ import annotations

import numpy as np
import pytest
from space_samples import random_operands, reference
from sparsetune.compiler.concrete.evaluate import evaluate
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.finding import found_in
from sparsetune.compiler.space.writing import written
from whole_spaces import KERNELS, whole

_PATH = "collapse(i, j, f); pos(f, p, A(i,j)); merge_path(p, m)"

_AFTER_PATH = "", "; split(m, b, t, 2)", "; split_up(m, t, e, 3); parallelize(t, cpu_thread, atomics)"

_COLLAPSED = [  # along merge paths; tiles with another index
    *((name, _PATH + rest) for name in ("SpMV", "SpMM", "SDDMM") for rest in _AFTER_PATH),
    ("SpMV", "split(j, j0, j1, 2); collapse(i, j0, c)"),
    ("SpMV", "split_up(j, j0, j1, 3); collapse(i, j0, c); parallelize(c, cpu_thread, atomics)"),
    ("SpMM", "split(k, k0, k1, 2); reorder(i, k0, j, k1); collapse(i, k0, c); parallelize(c, cpu_thread, no_races)"),
    ("SpMM", "split(k, k0, k1, 3); reorder(i, k0, j, k1); precompute(A(i,j) * X(j,k), k1, k1, w); collapse(i, k0, c)"),
]


@pytest.mark.parametrize(("name", "text"), _COLLAPSED)
def test_collapsed_loops_are_in_the_space_and_right(name: str, text: str) -> None:
    space, assignment = whole(name), parse(KERNELS[name][0])
    found = found_in(text, space)
    assert found is not None
    assert space.rank(*found) is not None
    assert any(one.path or one.before for one in found[0].treatments)
    schedule = written(found[0], space)
    again = found_in(schedule, space)
    assert again is not None
    assert set(again[0].treatments) == set(found[0].treatments)
    assert written(again[0], space) == schedule == Schedule(str(schedule))
    arrays = random_operands(assignment, 4, 1)
    arrays["A"] *= np.random.default_rng(2).random((4, 4)) < 0.5
    program = apply_schedule(space.default.program, schedule, space.default.formats)
    (result,) = evaluate(program, arrays, space.default.formats).values()
    np.testing.assert_array_equal(result, reference(assignment, arrays, 4), str(schedule))


def test_ways_through_a_matrix_are_counted_as_listed_by_hand() -> None:
    """Of (i, j) as one loop of positions, and as two of coordinates, entries, entries and ends of rows, or entries and coordinates again,
    or of coordinates and tiles of the last index with what a tile has inside."""
    pieces = whole("SpMV").pieces
    counts = {(len(run.loops), run.by_positions): run.treatments((2, 4)).count for run in pieces.becoming["i", "j"]}
    assert counts == {(1, False): 2, (1, True): 2 * 2, (2, False): 2 * 5 * (2 * 2)}
    rows = {(len(run.loops), run.by_positions): run.treatments((2, 4)).count for run in pieces.becoming["j",]}
    assert rows == {(1, False): 1, (1, True): 1, (2, False): 3 * (2 * 2)}
