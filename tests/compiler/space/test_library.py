"""The library: every named schedule applies, computes the same, and fits expressions with other names."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.concrete.evaluate import evaluate
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space import library
from sparsetune.compiler.space.library import LIBRARY, NamedSchedule, same_form, schedules_for


@pytest.mark.parametrize("named", LIBRARY, ids=lambda named: f"{named.name}: {named.expression}")
def test_applies_and_computes_the_same(named: NamedSchedule) -> None:
    assignment = parse(named.expression)
    found = concretize(assignment, formats_of(assignment, dict(named.formats)))
    assert Schedule(str(named.schedule)) == named.schedule
    apply_schedule(found.program, named.schedule, found.formats, dict(named.extents))
    small = named.text.replace("8192", "8").replace("512", "4").replace("16)", "3)").replace("32)", "3)").replace("lanes, 3)", "lanes, 4)")
    draw = np.random.default_rng(3)
    extents = {name: 3 for access in accesses(assignment.value) for name in access.indices} | {"k": 12 if named.extents else 4}
    arrays = {}
    for access in accesses(assignment.value):
        values = draw.integers(1, 9, [extents[name] for name in access.indices])
        arrays[access.tensor] = values * (draw.random(values.shape) < (0.5 if access.tensor in dict(named.formats) else 1))
    program = apply_schedule(found.program, small, found.formats)
    (result,) = evaluate(program, arrays, found.formats).values()
    subscripts = ",".join("".join(access.indices) for access in accesses(assignment.value))
    np.testing.assert_array_equal(result, np.einsum(f"{subscripts}->{''.join(assignment.target.indices)}", *arrays.values()))


def test_schedules_fit_the_same_form_under_other_names() -> None:
    wanted = parse("out(row, f) = dense(col, f) * graph(row, col)")
    found = {named.name: str(schedule) for named, schedule in schedules_for(wanted)}
    assert found["rows in registers"] == (
        "precompute(graph(row,col) * dense(col,f), f, f, w); prefetch(col, dense, 12); parallelize(row, cpu_thread, no_races, dynamic, 64)"
    )
    assert "two fused loops" not in found


def test_same_form() -> None:
    assert same_form(parse("a(i) = B(i,j) * c(j)"), parse("x(j) = A(j,k) * v(k)")) == {"a": "x", "i": "j", "B": "A", "j": "k", "c": "v"}
    assert same_form(parse("a(i) = B(i,j) * c(j)"), parse("x(j) = A(k,j) * v(k)")) is None
    assert same_form(parse("a(i) = B(i,j) * c(j)"), parse("x(j) = A(j,k) + v(k)")) is None
    assert same_form(parse("a = b(i) * c(i)"), parse("a = b(i) * b(i)")) is None


def test_the_evaluation_of_the_paper_is_there() -> None:
    origins = " ".join(named.origin for named in LIBRARY)
    assert all(figure in origins for figure in ("Figure 2d", "Figure 2e", "Figures 4 and 5", "section 7.2", "section 7.3"))


@pytest.mark.parametrize("text", sorted({named.expression for named in LIBRARY}))
def test_brackets_of_expressions_are_those_of_tensors_with_indices(text: str) -> None:
    """``schedules_for`` reads no expression with more or fewer of them than the one that is asked for has."""
    known = parse(text)
    assert text.count("(") == sum(bool(access.subscripts) for access in (known.target, *accesses(known.value)))


def test_only_expressions_that_may_fit_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_read", lambda text: pytest.fail(f"{text} has more tensors"))
    assert list(schedules_for(parse("y(i) = x(i)"))) == []
