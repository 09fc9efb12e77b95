"""Steps in the whole space: what is drawn is in it, differs from where it started, and says little of what it need not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.choices import All, OneOf, perhaps
from sparsetune.compiler.space.full import FullSpace
from sparsetune.compiler.space.grammar import Grammar
from sparsetune.compiler.space.moves import Moves
from sparsetune.compiler.space.options import everything
from sparsetune.compiler.space.whole import WholeSpace

KERNELS = {
    "SpMV": ("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}),
    "SpGEMM": ("C(i,k) = A(i,j) * B(j,k)", {"A": "csr", "B": "csr", "C": "csr"}),
    "SDDMM": ("Z(i,j) = A(i,j) * C(i,k) * D(j,k)", {"A": "csr"}),
    "sum": ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "dcsr", "C": "csr"}),
}


def narrowed(name: str) -> FullSpace:
    expression, formats = KERNELS[name]
    assignment = parse(expression)
    options = replace(everything(), protocols=False, formats=False, calls=(), divided=1, outermost=True, fitting=True, in_order=True)
    return FullSpace(WholeSpace(assignment, formats_of(assignment, formats), options=options, extents={"k": 32}), {"k": 32})


@pytest.mark.parametrize("name", KERNELS)
def test_neighbours_are_in_the_space(name: str) -> None:
    space = narrowed(name)
    moves, schedule, found = Moves(space.whole, 1), Schedule(), 0
    for _ in range(20):
        other = space.near(schedule, moves)
        if other is not None:
            assert other in space
            assert other != schedule
            schedule, found = other, found + 1
    assert found >= 6


def test_neighbours_hang_on_the_seed() -> None:
    space = narrowed("SpMM")
    first, again, other = ([space.near(Schedule(), moves) for _ in range(6)] for moves in (Moves(space.whole, seed) for seed in (1, 1, 2)))
    assert first == again != other


def test_what_is_drawn_from_anywhere_is_in_the_space_and_says_who_runs_loops_alone() -> None:
    space = narrowed("SpMM")
    moves = Moves(space.whole, 3)
    drawn = [one for one in (space.anywhere(moves) for _ in range(20)) if one is not None]
    assert len(set(drawn)) > 5
    assert all(one in space for one in drawn)
    assert not any(word in str(one) for one in drawn for word in ("unroll", "prefetch", "merge", "bound", "assemble", "build"))


def test_what_is_no_schedule_of_the_space_has_no_neighbours() -> None:
    space = narrowed("SpMV")
    assert space.near(Schedule("split(i, i0, i1, 4); split(i1, i2, i3, 2)"), Moves(space.whole, 0)) is None


def test_filters_on_what_loops_are_told_leave_what_can_mean_something() -> None:
    space = narrowed("SpMM")
    assert "prefetch(j, X, 8); parallelize(i, cpu_thread, no_races)" in space
    refused = ("reorder(j, i, k)", "merge(j, gallop)", "parallelize(i, cpu_thread, atomics)", "split(i, i0, i1, 4); split(k, k0, k1, 8)")
    wide = FullSpace(space.whole.with_options(everything()), {"k": 32})
    for text in refused:
        assert text not in space
    assert all(text in wide for text in refused[1:])


@pytest.mark.parametrize("name", KERNELS)
def test_draws_of_what_fits_are_legal_now_and_then(name: str) -> None:
    assert len(narrowed(name).sample(2, seed=1)) == 2


def test_neighbours_of_values() -> None:
    choice, source = All((perhaps(OneOf(range(1, 100))), OneOf(("a", "b")))), random.Random(1)
    assert choice.plainest(source) in {(None, "a"), (None, "b")}
    for _ in range(50):
        other = choice.near((8, "a"), source)
        assert choice.rank(other) is not None
        assert sum(one != was for one, was in zip(other, (8, "a"), strict=True)) == 1
    assert OneOf(("a",)).near("a", source) == "a"
    assert {OneOf(range(1, 9)).near(8, source) for _ in range(20)} == {4, 7}


@pytest.mark.parametrize("name", KERNELS)
def test_loops_that_are_counted_as_alike_are(name: str) -> None:
    """Nests of a few starts, all of them with what is known of loops, are as many as those that are counted one by one."""
    whole = narrowed(name).whole
    one_by_one = Grammar(whole.nests._alternatives)
    for start in whole.starts[:: max(1, len(whole.starts) // 12)]:
        assert whole.nests.grammar.count(whole.top(start)) == one_by_one.count(whole.top(start))
