"""Pruning keeps what could win; the model ranks as operation counts do."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.selection import DRAWN, UNDOMINATED
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.positions import stored_prefixes
from sparsetune.tuner import nests, prune
from sparsetune.tuner.limits import Limits
from sparsetune.tuner.model import model_choice, problem_candidates, rank
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.prune import Stage, counted_stages, run_stages, surviving_space, undominated
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.search.space import Point

RNG = np.random.default_rng(0)


def spmm(rows: int = 20_000, k: int = 32, threads: int = 2) -> Problem:
    matrix = scipy.sparse.random_array((rows, 1000), density=0.01, rng=RNG, format="csr")
    return make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((1000, k))}, threads=threads)


def ttmc(fibre: int, threads: int = 1) -> Problem:
    """A tensor whose fibres along the last mode hold ``fibre`` nonzeros."""
    i, j, k = (axis.ravel() for axis in np.meshgrid(np.arange(40), np.arange(30), np.arange(fibre), indexing="ij"))
    stored = tensor((np.array([i, j, k * 7 % 400]), np.ones(len(i))), "csf", (40, 30, 400))
    operands = {"B": stored, "C": np.ones((30, 16)), "D": np.ones((400, 16))}
    return make_problem("Y(i,r,s) = B(i,j,k) * C(j,r) * D(k,s)", operands, threads=threads)


def test_nests_leave_time_for_what_rules_find_on_a_busy_machine() -> None:
    """The budget is of a clock that runs ten times as fast as the processor works for us."""
    five = "A(i,m) = B(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)"
    matrix = scipy.sparse.random_array((200, 200), density=0.02, rng=RNG, format="csr")
    dense = {"C": np.ones((200, 8)), "D": np.ones((200, 8)), "E": np.ones((200, 8)), "F": np.ones((8, 8))}
    busy = Deadline(20.0, lambda: 10 * time.thread_time())
    space, _ = surviving_space(make_problem(five, {"B": matrix, **dense}, threads=1), deadline=busy)
    assert any("precompute" in template.text for template in space.templates)


def test_nests_are_sought_once_for_operands_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nests, "_found", OrderedDict())
    first = nests.nests_of(spmm(), (UNDOMINATED, DRAWN), Deadline(), 0)
    assert all(first.values())
    other = nests.nests_of(spmm(), (DRAWN,), Deadline(), 1)
    monkeypatch.setattr(nests, "undominated_schedules", None)
    monkeypatch.setattr(nests, "drawn_nests", None)
    assert nests.nests_of(spmm(300, 7, 1), (UNDOMINATED, DRAWN), Deadline(), 0) == first
    assert nests.nests_of(spmm(300, 7, 1), (DRAWN,), Deadline(), 1) == other


def test_nests_that_were_cut_short_are_sought_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nests, "_found", OrderedDict())
    assert nests.nests_of(spmm(), (UNDOMINATED,), Deadline(0.0), 0) == {UNDOMINATED: []}
    assert nests.nests_of(spmm(), (UNDOMINATED,), Deadline(), 0)[UNDOMINATED]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_undominated_is_what_nothing_beats(vectors: list[tuple[int, int]]) -> None:
    kept = undominated(vectors, lambda vector: vector)
    for vector in vectors:
        beaten = any(other != vector and other[0] <= vector[0] and other[1] <= vector[1] for other in vectors)
        assert (vector in kept) == (not beaten)
    assert len(kept) == sum(vector in kept for vector in vectors)


def test_stages_report_what_they_kept() -> None:
    stages: list[Stage[int]] = [Stage("even", lambda items: [item for item in items if item % 2 == 0]), Stage("none", lambda items: [])]
    kept, report = run_stages([1, 2, 4], stages)
    assert kept == []
    assert [(stage["stage"], stage["kept"]) for stage in report] == [("even", 2), ("none", 0)]
    assert all(stage["seconds"] >= 0 for stage in report)


def test_the_whole_space_is_counted() -> None:
    stages = counted_stages(make_problem("y(i) = A(i,j) * x(j)", {"A": np.ones((3, 4)), "x": np.ones(4)}))
    assert [stage["stage"] for stage in stages][:4] == ["rewrites", "groupings", "nestings", "loop transformations"]
    kept = [stage["kept"] for stage in stages][:4]
    assert kept == sorted(kept)
    assert all(stage["seconds"] >= 0 for stage in stages)


def test_stages_of_a_problem() -> None:
    space, stages = surviving_space(ttmc(20))
    names, kept = ([stage[key] for stage in stages] for key in ("stage", "kept"))
    assert names == ["generated", "memory", "asymptotic", "loop depth", "legal", "ranked"]
    assert kept == sorted(kept, reverse=True)
    assert kept[2] < kept[0]
    assert len(space.templates) == kept[-1]


def test_default_and_library_are_never_dropped() -> None:
    problem = ttmc(20, threads=2)
    given_ones = [item.template.text for item in problem_candidates(problem) if item.is_given]
    templates = [template.text for template in surviving_space(problem)[0].templates]
    assert "" in templates
    assert set(given_ones) <= set(templates)


def test_workspaces_that_do_not_fit_are_dropped() -> None:
    problem = replace(ttmc(20), limits=Limits(cache_share=1e-12))
    kept = {template.text for template in surviving_space(problem)[0].templates}
    elements = {
        item.template.text: item.elements(problem.extents)
        for item in problem_candidates(problem)
        if not item.origin.startswith("library")
    }
    assert all(elements[text] == 0 for text in kept & elements.keys())
    assert any(elements[text] > 0 for text in elements.keys() - kept)


def test_points_of_the_space_have_canonical_texts() -> None:
    problem = spmm()
    space, _ = surviving_space(problem)
    for number, template in enumerate(space.templates):
        text = space.schedule(Point(number, tuple(template.usual.values())))
        assert problem.to_canonical(problem.from_canonical(text)) == text


def test_schedules_of_what_is_added_to_have_canonical_texts() -> None:
    """The given value has a name of its own in schedules, which goes with that of the result."""
    found = [
        make_problem(f"{y}({i}) += A({i},j) * x(j)", {y: np.ones(3), "A": np.ones((3, 2)), "x": np.ones(2)}, threads=1)
        for y, i in (("y", "i"), ("b", "r"))
    ]
    texts = [f"addends({y}_initial({i}), A({i},j) * x(j)); join({i}, [0], [1])" for y, i in (("y", "i"), ("b", "r"))]
    canonical = [problem.to_canonical(Schedule(text)) for problem, text in zip(found, texts, strict=True)]
    assert canonical[0] == canonical[1]
    assert [str(problem.from_canonical(canonical[0])) for problem in found] == texts


def test_every_usual_point_is_legal() -> None:
    from sparsetune.tuner.legality import is_legal

    for problem in (spmm(), ttmc(20, threads=2)):
        space, _ = surviving_space(problem)
        assert all(is_legal(problem, problem.from_canonical(space.schedule(point))) for point in space.usual_points())


def test_what_cannot_be_lowered_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "lowers", lambda problem, program, default: not program.relations)
    coordinates = np.array([[0, 0, 1], [1, 2, 0]])
    operands = {"A": tensor((coordinates, np.ones(3)), "coo", (1000, 1000)), "x": np.ones(1000)}
    problem = make_problem("y(i) = A(i,j) * x(j)", operands, threads=2)
    space, stages = surviving_space(problem)
    kept = {stage["stage"]: stage["kept"] for stage in stages}
    assert kept["legal"] < kept["loop depth"]
    assert "" in [template.text for template in space.templates]
    choice = model_choice(problem)
    assert choice is None or choice.directives


def test_stored_prefixes() -> None:
    stored = tensor((np.array([[0, 0, 1, 1], [0, 0, 2, 3], [1, 2, 0, 0]]), np.ones(4)), "csf", (5, 4, 3))
    assert stored_prefixes(stored) == (2, 3, 4)
    assert stored_prefixes(tensor(np.eye(3), "csr")) == (3, 3)


def test_model_prefers_the_factorized_nest_on_long_fibres() -> None:
    long, short = (rank(problem, problem_candidates(problem)) for problem in (ttmc(20), ttmc(1)))
    assert "precompute" in str(long[0].schedule)
    gain = {name: _cost(found, "") / found[0].cost for name, found in (("long", long), ("short", short))}
    assert gain["long"] > gain["short"]


def test_model_prefers_threads_where_there_is_work() -> None:
    assert "cpu_thread" in str(model_choice(spmm(20_000)))
    assert "cpu_thread" not in str(model_choice(spmm(20)))


def test_model_is_silent_where_it_expects_nothing() -> None:
    matrix = scipy.sparse.random_array((50, 40), density=0.1, rng=RNG, format="csr")
    assert model_choice(make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(40)}, threads=1)) is None


def test_columns_first_is_ranked_last() -> None:
    """A dense loop outside the sparse ones reads the whole matrix again for each of its iterations."""
    found = rank(spmm(threads=1), problem_candidates(spmm(threads=1)))
    order = [str(item.schedule) for item in found]
    assert order.index("") < next(place for place, text in enumerate(order) if text.startswith("reorder(k, i, j)"))


def test_default_is_always_ranked() -> None:
    problem = ttmc(3)
    assert any(item.schedule == Schedule() for item in rank(problem, problem_candidates(problem)))
    assert {access.tensor for access in accesses(problem.assignment.value)} == set(problem.operands)


def _cost(found, text: str) -> float:
    return next(item.cost for item in found if str(item.schedule) == text)


def test_absurd_candidates_are_not_measured_even_if_the_library_has_them() -> None:
    """Threads that start anew in every row cost more than the rows."""
    matrix = scipy.sparse.random_array((200_000, 1000), density=1e-5, rng=RNG, format="csr")
    problem = make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(1000)}, threads=2)
    absurd = "parallelize(j, cpu_thread, atomics, dynamic, "
    assert any(item.template.text.startswith(absurd) for item in problem_candidates(problem))
    templates = [template.text for template in surviving_space(problem)[0].templates]
    assert "" in templates
    assert not any(text.startswith(absurd) for text in templates)


def long_chain() -> Problem:
    names = {f"A{number}": np.ones((2, 2)) for number in range(12)}
    text = "Y(i0,i12) = " + " * ".join(f"A{number}(i{number},i{number + 1})" for number in range(12))
    return make_problem(text, names, threads=2)


def test_pruning_ends_in_time_with_the_default_and_says_so() -> None:
    space, stages = surviving_space(long_chain(), deadline=Deadline(0))
    assert [template.text for template in space.templates] == [""]
    assert {stage["stage"]: stage["stopped"] for stage in stages if "stopped" in stage}.keys() >= {"generated", "asymptotic"}
    assert all("stopped" not in stage for stage in surviving_space(ttmc(20))[1])


def test_asymptotic_cost_of_many_stored_factors_is_cut_off() -> None:
    names = [f"a{number}" for number in range(40)]
    text = "y(i) = " + " * ".join(f"{name}(i)" for name in names)
    problem = make_problem(text, dict.fromkeys(names, tensor(np.ones(3), "s")), threads=1)
    stages = {stage["stage"]: stage for stage in surviving_space(problem, deadline=Deadline(0.5))[1]}
    assert (stages["asymptotic"]["kept"], "stopped" in stages["asymptotic"]) == (stages["memory"]["kept"], True)


def test_model_says_that_it_had_no_time() -> None:
    over = Deadline(0)
    assert model_choice(long_chain(), over) is None
    assert over.cut


def test_ways_to_keep_writes_apart_are_structures_of_their_own() -> None:
    matrix = scipy.sparse.random_array((200, 300), density=0.05, rng=RNG, format="csc")
    problem = make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((300, 8))}, threads=2)
    space, stages = surviving_space(problem)
    texts = [template.text for template in space.templates]
    assert all(hole.name != "race" for template in space.templates for hole in template.holes)
    assert any(text.startswith("parallelize(j, cpu_thread, temporary, {chunking})") for text in texts)
    assert any(text.startswith("parallelize(j, cpu_thread, atomics, {chunking})") for text in texts)
    assert len(set(texts)) == len(texts) == stages[-1]["kept"]
