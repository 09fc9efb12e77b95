"""Lookup: each rung, what it says, and that it costs little."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats
from lookup_records import EXPRESSION, PARALLEL, UNROLLED, add, decided, look, measured, operands, problem
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.errors import DatabaseError, ExpressionError, ShapeError
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner import environment, prospects, urls
from sparsetune.tuner import lookup as module
from sparsetune.tuner import shipped as shipping
from sparsetune.tuner.asking import choose, lookup
from sparsetune.tuner.database import legality
from sparsetune.tuner.lookup import NOTHING, lookup_problem
from sparsetune.tuner.match import Match
from sparsetune.tuner.model import Choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.records import Decision, to_json

pytestmark = pytest.mark.usefixtures("no_model")


def test_nothing_known_is_the_default(database: Path) -> None:
    match = look(database)
    assert (match.origin, match.schedule, match.time, match.distance) == ("default", Schedule(), None, None)
    assert not database.exists()


def test_model_comes_before_the_default(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "static_choice", lambda problem, deadline: Choice(Schedule("unroll(j, 2)"), 2.1))
    match = look(database)
    assert (match.origin, str(match.schedule), match.time) == ("model", "unroll(j, 2)", None)


def test_decisions_are_told_where_that_is_asked_for(
    database: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add(database, decided(problem(), PARALLEL))
    look(database)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("SPARSETUNE_VERBOSE", "1")
    look(database)
    look(database, rows=40)
    first, second = capsys.readouterr().err.splitlines()
    assert first == (
        f"sparsetune: '{EXPRESSION}': parallelize(i, cpu_thread, no_races) (exact: tuned on this very input, where it took 0.001 s)"
    )
    assert "the default schedule (default: nothing similar was tuned" in second or "similar: tuned on a similar input at" in second


def test_exact(database: Path) -> None:
    add(database, decided(problem(), PARALLEL))
    match = look(database)
    assert (match.origin, str(match.schedule), match.time, match.distance) == ("exact", "parallelize(i, cpu_thread, no_races)", 1e-3, 0.0)


def test_exact_may_be_the_default(database: Path) -> None:
    add(database, decided(problem(), "", 1.0))
    assert look(database).origin == "exact"
    assert look(database).schedule == Schedule()


def test_latest_decision_counts(database: Path) -> None:
    late, early = "2026-02-01T00:00:00.000+00:00", "2026-01-01T00:00:00.000+00:00"
    add(database, decided(problem(), PARALLEL, created=late), decided(problem(), UNROLLED, created=early))
    assert "parallelize" in str(look(database).schedule)


def test_similar(database: Path) -> None:
    add(database, decided(problem(), PARALLEL))
    match = look(database, rows=120, seed=5)
    assert match.origin == "similar"
    assert match.distance is not None
    assert 0 < match.distance < module.SIMILAR_BOUND
    assert "parallelize" in str(match.schedule)


def test_nearest_of_equals_is_named(database: Path) -> None:
    add(database, decided(problem(90), PARALLEL, seconds=9e-3, default_seconds=18e-3), decided(problem(200), PARALLEL))
    assert look(database, rows=100, seed=5).time == 9e-3


def test_what_ships_counts_where_this_machine_knows_nothing(database: Path, shipped: Path) -> None:
    own = problem()
    elsewhere = replace(own.workload, machine="another")
    won = decided(own, PARALLEL, workload=elsewhere, environment=environment.describe_environment({}), policy={"max_seconds": 1})
    other = replace(won, input=problem(3000).input, environment={"system": "Plan 9", "vector_bytes": 64}, schedule=UNROLLED)
    strange = replace(won, workload=replace(elsewhere, kernel="T0 = T1"), input=replace(own.input, extents=()), schedule="")
    with shipped.open("w") as stream:
        slow = replace(won, input=problem(5).input, speedup_low=0.9)
        assert shipping.write_shipped([won, replace(won, seconds=2e-3), other, strange, slow], stream) == 3
    match = look(database, rows=110, seed=4)
    assert (match.origin, str(match.schedule)) == ("similar", "parallelize(i, cpu_thread, no_races)")
    assert match.note.endswith("as published with the package")
    assert lookup_problem(problem(110, 4), NOTHING, ()).origin == "default"
    assert (look(database, rows=3000).origin, look(database, rows=3000).schedule) == ("default", Schedule())  # of another kind of machine
    assert shipping.shipped_decisions(own.workload)[0].policy == {}
    others = replace(own.workload, threads=own.workload.threads + 1)
    assert shipping.shipped_decisions(others) == ()
    assert len(shipping.shipped_decisions(others, any_threads=True)) == len(shipping.shipped_decisions(own.workload))
    assert shipping.shipped_decisions(replace(own.workload, semiring="min,+")) == ()
    add(database, decided(problem(120, 9), "", 1.0))
    assert (look(database, rows=110, seed=4).origin, look(database, rows=110, seed=4).schedule) == ("similar", Schedule())  # knows better


@pytest.mark.parametrize("code", ["", "0.0.9+12345678"], ids=["this version", "another version"])
def test_what_ships_is_never_exact(database: Path, shipped: Path, code: str) -> None:
    """Not even for this very input on this machine; of another version it says so."""
    here = environment.describe_environment({})
    won = decided(problem(), PARALLEL, environment=here, **({"code": code} if code else {}))
    with shipped.open("w") as stream:
        shipping.write_shipped([won], stream)
    match = look(database)
    assert (match.origin, str(match.schedule), match.distance) == ("similar", "parallelize(i, cpu_thread, no_races)", 0.0)
    assert match.note == f"tuned on {here['processor']}{' by version ' + code if code else ''}, as published with the package"


def test_what_ships_is_judged_where_it_is_used(database: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging all of it would take longer than the rest of a first lookup."""
    here, own = environment.describe_environment({}), problem()
    broken = decided(own, "reorder(i1, i0, i9)", environment=here)
    far = decided(problem(3000), PARALLEL, environment=here)
    shipped.write_text("".join(json.dumps(to_json(one)) + "\n" for one in (broken, far)))
    judged: list[str] = []
    monkeypatch.setattr(legality, "apply_schedule", lambda program, schedule, *_: judged.append(str(schedule)))
    match = look(database)
    assert match.schedule == Schedule()
    assert judged == []
    assert len(shipping.shipped_decisions(own.workload)) == 2


def test_nothing_ships_where_that_is_asked_for(database: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shipped.open("w") as stream:
        shipping.write_shipped([decided(problem(), PARALLEL, environment=environment.describe_environment({}))], stream)
    monkeypatch.setenv(urls.SHIPPED, "")
    assert look(database).origin == "default"


def test_the_model_is_asked_beside_what_is_far(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "static_choice", lambda problem, deadline: Choice(Schedule("unroll(j, 2)"), 2.1))
    monkeypatch.setattr(module, "MODEL_ASKED_FROM", 0.0)
    add(database, decided(problem(), PARALLEL, 1.1))
    assert look(database, rows=120, seed=5).origin == "model"
    add(database, decided(problem(130), PARALLEL, 2.5))
    assert look(database, rows=124, seed=5).origin == "similar"
    monkeypatch.setattr(module, "MODEL_ASKED_FROM", 9.0)
    monkeypatch.setattr(module, "static_choice", None)
    assert look(database, rows=121, seed=5).origin == "similar"


@pytest.mark.parametrize(("is_slight", "origin"), [(True, "model"), (False, "similar")])
def test_a_gain_that_needs_no_other_loops_is_doubted_less(
    database: Path, monkeypatch: pytest.MonkeyPatch, is_slight: bool, origin: str
) -> None:
    """Such as that of a prefetch: the default won on what is near, where nothing else was tried."""
    monkeypatch.setattr(module, "static_choice", lambda problem, deadline: Choice(Schedule("unroll(j, 2)"), 1.25, is_slight))
    monkeypatch.setattr(module, "MODEL_ASKED_FROM", 0.0)
    add(database, decided(problem(), ""))
    assert look(database, rows=120, seed=5).origin == origin


@pytest.mark.parametrize(("rows", "origin"), [(110, "similar"), (230, "model")])
def test_where_no_winner_convinces_the_model_is_believed_the_more_the_farther_the_evidence(
    database: Path, monkeypatch: pytest.MonkeyPatch, rows: int, origin: str
) -> None:
    """A default that won on an input of another size says little of prefetches on this one."""
    monkeypatch.setattr(module, "static_choice", lambda problem, deadline: Choice(Schedule("unroll(j, 2)"), 1.065, is_slight=True))
    monkeypatch.setattr(module, "MODEL_ASKED_FROM", 0.0)
    add(database, decided(problem(), ""))
    assert look(database, rows=rows, seed=5).origin == origin
    add(database, decided(problem(rows - 1, 7), PARALLEL, 1.5), measured(problem(rows - 1, 7), "unroll(i1, 2)", 10e-3))
    assert look(database, rows=rows, seed=5).origin == "similar"


@cache
def winner() -> Decision:
    return decided(problem(), PARALLEL)


@given(gain=floats(0.0, 1.0), doubt=floats(0.01, 0.5), low=floats(0.5, 3.0), wide=floats(1.0, 2.0), away=floats(0.0, 2.0))
def test_what_is_weighed_lies_between_both_and_nearer_to_the_surer(
    gain: float, doubt: float, low: float, wide: float, away: float
) -> None:
    decision = replace(winner(), speedup_low=low, speedup_high=low * wide)
    chosen, measured = prospects.Prospect(Match(Schedule(), "model"), gain, doubt), math.log(low) + math.log(wide) / 2
    found = prospects.weighed(chosen, away, decision, 0.0)
    assert min(gain, measured) - 1e-9 <= found <= max(gain, measured) + 1e-9
    farther = prospects.weighed(chosen, away + 0.5, decision, 0.0)
    assert abs(farther - gain) <= abs(found - gain) + 1e-9


def test_far_inputs_do_not_count(database: Path) -> None:
    add(database, decided(problem(100_000), PARALLEL))
    assert look(database).origin == "default"


OTHERS = {"threads": 1, "dtype": "float32", "target": "cuda", "machine": "other", "formats": "dense | coo | dense", "kernel": "T0 = T1"}


@pytest.mark.parametrize("change", [{name: value} for name, value in OTHERS.items()], ids=str)
def test_other_workloads_do_not_count(database: Path, change: dict[str, object]) -> None:
    known = problem()
    add(database, replace(decided(known, PARALLEL), workload=replace(known.workload, **change)))
    assert look(database).origin == "default"


def test_default_is_kept_without_a_clear_gain(database: Path) -> None:
    add(database, decided(problem(), PARALLEL, speedup=prospects.LEAST_GAIN - 0.01))
    match = look(database, rows=110)
    assert (match.origin, match.schedule) == ("similar", Schedule())


def test_evidence_of_all_neighbours_counts(database: Path) -> None:
    near, far = problem(100), problem(130)
    add(database, decided(near, PARALLEL, 1.2), measured(far, PARALLEL, 10e-3))
    add(database, decided(far, UNROLLED, 2.0), measured(near, UNROLLED, 0.8e-3))
    assert "unroll" in str(look(database, rows=128, seed=9).schedule)


def test_schedules_that_are_not_legal_are_passed_over(database: Path) -> None:
    add(database, decided(problem(), "reorder(i1, i0, i9)"), decided(problem(101), "no_such_directive(i0)"))
    assert look(database).origin in ("similar", "default")
    assert look(database).schedule == Schedule()


def test_other_names_find_it(database: Path) -> None:
    add(database, decided(problem(), PARALLEL))
    match = lookup("o(r) = M(r,c) * v(c)", {"M": operands()["A"], "v": np.ones(80)}, threads=2, database=database)
    assert (match.origin, str(match.schedule)) == ("exact", "parallelize(r, cpu_thread, no_races)")


def test_names_that_a_schedule_makes_give_way(database: Path) -> None:
    add(database, decided(problem(), "split(i0, d1, d2, 16)"))
    match = lookup("o(d1) = M(d1,d2) * v(d2)", {"M": operands()["A"], "v": np.ones(80)}, threads=2, database=database)
    assert match.origin == "exact"
    made = match.schedule.made_names
    assert not set(made) & {"d1", "d2"}


def test_errors_come_through(database: Path, tmp_path: Path) -> None:
    with pytest.raises(ExpressionError, match=r"operand 'x' of .* is missing"):
        lookup(EXPRESSION, {"A": operands()["A"]}, database=database)
    with pytest.raises(ShapeError, match="index j"):
        lookup(EXPRESSION, {"A": operands()["A"], "x": np.ones(3)}, database=database)
    (tmp_path / "no.sqlite").write_text("not a database" * 100)
    with pytest.raises(DatabaseError, match="is not a database"):
        lookup(EXPRESSION, operands(), database=tmp_path / "no.sqlite")


def test_choose_leaves_unknown_extents_to_the_caller(database: Path) -> None:
    assert choose("A(i,j) = b(i)", {"b": np.ones(3)}, database=database) == Schedule()


def test_choice_that_was_cut_short_says_so(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried(problem: Problem, deadline: Deadline) -> None:
        while not deadline.over:
            pass

    monkeypatch.setattr(module, "CHOICE_SECONDS", 0.01)
    assert look(database).note == ""
    monkeypatch.setattr(module, "_modelled", OrderedDict())
    monkeypatch.setattr(module, "static_choice", hurried)
    assert look(database, rows=120).note == "the static model stopped after 0.01 s, before it had seen all candidates"
