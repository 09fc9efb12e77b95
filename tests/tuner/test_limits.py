"""The user's bound on workspaces, and their share of the cache, hold whoever chooses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.errors import ScheduleError, TuningError
from sparsetune.compiler.native.machine import this_machine
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner import limits
from sparsetune.tuner.asking import lookup
from sparsetune.tuner.database import open_database
from sparsetune.tuner.kernels import compile_problem
from sparsetune.tuner.legality import is_legal
from sparsetune.tuner.limits import Limits, make_limits, workspace_elements
from sparsetune.tuner.measure.finals import Burst, play
from sparsetune.tuner.model import disagreements
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.prune import surviving_space
from sparsetune.tuner.records import Decision
from sparsetune.tuner.resolve import make_problem
from tuner_samples import of_this_version

WRONG = [("memory_bound", -1), ("memory_bound", "x"), ("memory_bound", True), ("cache_share", 0), ("cache_share", 2)]
TTMC = "A(i,r,s) = B(i,j,k) * C(j,r) * D(k,s)"
SPGEMM = "A(i,j) = B(i,k) * C(k,j)"


def operands() -> dict[str, Any]:
    source = np.random.default_rng(0)
    tensor = st.tensor(scipy.sparse.random_array((20, 30, 40), density=0.05, rng=source), "csf")
    return {"B": tensor, "C": source.random((30, 16)), "D": source.random((40, 12))}


def spgemm() -> dict[str, Any]:
    matrix = st.tensor(scipy.sparse.random_array((50, 50), density=0.1, rng=np.random.default_rng(0)), "csr")
    return {"B": matrix, "C": matrix}


def problem(bound: float | None = None, share: float | None = None) -> Problem:
    return make_problem(TTMC, operands(), threads=1, limits=make_limits(bound, share))


def elements(of: Problem, schedule: Schedule) -> float:
    return workspace_elements(compile_problem(of, schedule).compiled.concretized.program, of)


def test_elements_are_those_of_the_costs() -> None:
    schedule = "precompute(B(i,j,k) * D(k,s), s, s, w); precompute(w(s) * C(j,r), [r, s], [r, s], v)"
    kernel = st.compile(TTMC, {"B": "csf"}, schedule=schedule)
    assert eval(kernel.costs["memory"], {"r": 16, "s": 12}) == elements(problem(), Schedule(schedule)) == 12 + 12 * 16


@pytest.mark.parametrize(("order", "needed"), [("i, p, j, q", 0), ("i, j, p, q", 3), ("j, i, p, q", 3 + 18)])
def test_the_bound_counts_buffers_of_loops_through_subsections(order: str, needed: int) -> None:
    image = scipy.sparse.random_array((20, 30), density=0.1, rng=np.random.default_rng(0))
    given = {"A": st.tensor(image, "csr"), "F": np.ones((3, 4))}
    schedule, least = Schedule(f"reorder({order})"), max(0, needed - 1)
    within, below = (
        make_problem("Y(i,j) = A(i+p,j+q) * F(p,q)", given, threads=1, limits=make_limits(bound)) for bound in (needed, least)
    )
    assert elements(within, schedule) == needed
    assert is_legal(within, schedule)
    assert is_legal(below, schedule) == (needed <= least)


@pytest.mark.parametrize("bound", [0, 11, 12, 203, 204])
def test_the_choice_keeps_the_bound(bound: int, database: Path) -> None:
    found = lookup(TTMC, operands(), threads=1, database=database, memory_bound=bound)
    assert elements(problem(), found.schedule) <= bound
    least = lookup(TTMC, operands(), threads=1, database=database)
    assert elements(problem(), least.schedule) == 204
    assert (found.schedule == least.schedule) == (bound >= 204)


def test_a_small_share_of_the_cache_leaves_no_room(database: Path) -> None:
    found = lookup(TTMC, operands(), threads=1, database=database, cache_share=1e-9)
    assert elements(problem(), found.schedule) == 0


def test_what_is_searched_keeps_the_bound() -> None:
    of = problem(12)
    space, stages = surviving_space(of)
    default = concretize(of.assignment, of.formats)
    place = [stage["stage"] for stage in stages].index("memory_bound")
    assert stages[place - 1]["stage"] == "generated"
    assert stages[place]["kept"] < stages[place - 1]["kept"]
    for template in space.templates:
        program = apply_schedule(default.program, template.fill(), default.formats)
        assert workspace_elements(program, of) <= 12


def test_records_answer_under_the_limits_that_they_were_made_under(database: Path) -> None:
    """A campaign without limits answers where its schedule keeps them; one with limits only where they are the same."""
    large = "precompute(B(i,j,k) * D(k,s), s, s, w); precompute(w(s) * C(j,r), [r, s], [r, s], v)"
    free = problem()
    chosen = free.to_canonical(Schedule(large))
    decision = Decision(
        workload=free.workload, input=free.input, campaign="c", schedule=chosen, seconds=1e-3, default_seconds=2e-3, speedup_low=2.0,
        speedup_high=2.0, **of_this_version(free, chosen),
    )  # fmt: skip
    with open_database(database) as store:
        store.add(decision)
    assert lookup(TTMC, operands(), threads=1, database=database).origin == "exact"
    assert lookup(TTMC, operands(), threads=1, database=database, memory_bound=300).origin == "exact"
    assert elements(free, lookup(TTMC, operands(), threads=1, database=database, memory_bound=50).schedule) <= 50
    small = free.to_canonical(Schedule("precompute(B(i,j,k) * D(k,s), s, s, w)"))
    with open_database(database) as store:
        store.add(replace(decision, schedule=small, campaign="d", policy={"memory_bound": 50.0}))
        store.add(replace(decision, campaign="e"))
    assert elements(free, lookup(TTMC, operands(), threads=1, database=database).schedule) == 204
    found = lookup(TTMC, operands(), threads=1, database=database, memory_bound=50)
    assert (found.origin, elements(free, found.schedule)) == ("exact", 12)


def test_nothing_within_the_bound_is_said(database: Path) -> None:
    added = f"{SPGEMM} + B(i,j)"
    with pytest.raises(TuningError, match=r"no schedule of .* has workspaces of at most 0 elements; the least found has 50"):
        lookup(added, spgemm(), "csr", threads=1, database=database, memory_bound=0)
    with pytest.raises(TuningError, match="at most 0 elements"):
        st.evaluate(added, spgemm(), "csr", threads=1, database=database, memory_bound=0)
    with pytest.raises(ScheduleError, match="schedule 1 of those given has 12 elements of workspaces, and memory_bound is 3"):
        st.tune(TTMC, operands(), schedules=["precompute(B(i,j,k) * D(k,s), s, s, w)"], database=database, memory_bound=3)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_limits_are_checked(name: str, value: Any) -> None:
    for use in (st.lookup, st.evaluate, st.tune):
        with pytest.raises(TuningError, match=name):
            use(TTMC, operands(), **{name: value})
    assert make_limits(float("inf")).given == {}


def test_a_default_beyond_the_bound_is_compared_with_and_does_not_win() -> None:
    seconds = {"": 1.0, "slow": 2.0, "slower": 3.0}
    verdict = play(list(seconds), lambda name: Burst(seconds[name]), "", 6, is_eligible=False)
    assert verdict is not None
    assert (verdict.winner, verdict.against_default.ratio) == ("slow", 0.5)


def test_orders_that_agree_with_storage_disagree_nowhere() -> None:
    of = make_problem("y(i) = A(i,j) * x(j)", {"A": np.ones((3, 4)), "x": np.ones(4)}, threads=1)
    default = concretize(of.assignment, of.formats)
    turned = apply_schedule(default.program, Schedule("reorder(j, i)"), default.formats)
    assert disagreements(default.program, of.formats) == 0
    assert disagreements(turned, of.formats) == 1


def test_the_settings_of_a_machine_are_read_where_they_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(limits, "_workspace_share", lambda processor: asked.append(processor) or 0.5)  # type: ignore[func-returns-value]
    cache = this_machine().last_level_cache
    assert limits.NO_LIMITS.hold(cache, cache)
    assert Limits(cache_share=0.25).hold(cache // 4, 0)
    assert not Limits(cache_share=0.25).hold(cache // 4 + 1, cache)
    assert not asked
    assert limits.NO_LIMITS.hold(cache / 2, 0)
    assert not limits.NO_LIMITS.hold(cache / 2 + 1, 0)
    assert len(asked) == 2
