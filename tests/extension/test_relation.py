"""Four relations and their directives that no file of the compiler knows (``own_relations``) are lowered, compiled and refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from differential import scheduled
from differential.scheduled import Scheduled, kinds_of
from own_relations import Deal, Displace, Reverse, ShiftBy, deal, displace, reverse, shift
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.schedule.apply import register, unregister
from sparsetune.compiler.schedule.schedule import Schedule


@pytest.fixture(autouse=True)
def _directives() -> Iterator[None]:
    register(Reverse, reverse)
    register(ShiftBy, shift)
    register(Displace, displace)
    register(Deal, deal)
    yield
    unregister(Reverse)
    unregister(ShiftBy)
    unregister(Displace)
    unregister(Deal)


CASES = (
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(j, r)"),
    ("y(i) = A(i,j) * x(j)", "A=dcsr x=compressed", "reverse(i, r); reverse(j, s)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); split(r, a, b, 4)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 4); reverse(b, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 4); reverse(a, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); reverse(r, s)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); parallelize(r, cpu_thread, no_races)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); split(r, a, b, 2); parallelize(a, cpu_thread, no_races)"),
    ("y(i) = A(i,j) * x(j)", "A=csc", "reverse(j, r); parallelize(r, cpu_thread, atomics)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "reverse(i, r); collapse(r, j, f)"),
    ("y(i) = A(i,j) * x(j)", "A=csr y=compressed", "reverse(i, r)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "reverse(k, r)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "reverse(k, r); parallelize(r, cpu_vector, no_races)"),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "reverse(i, r)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "reverse(j, r)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr", "reverse(i, r); reverse(j, s)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "reverse(k, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "precompute(A(i,j) * x(j), j, j, w); reverse([0], j, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(i, s, 3)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(j, s, 5); shift(s, t, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(i, s, 3); reverse(s, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "shift(i, s, 3); split(s, a, b, 4); parallelize(a, cpu_thread, no_races)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "shift(i, s, 1); shift(j, t, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(j, s, 5)"),
    ("y(i) = A(i,j) * x(j)", "A=dcsr x=compressed", "displace(i, s, 3); displace(j, t, 1)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(i, s, 3); split(s, a, b, 4); displace(b, c, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(j, s, 3); split(s, a, b, 4); split(b, c, d, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 4); displace(b, c, 2); split(c, e, f, 3); reorder(f, e)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "displace(j, s, 3); reverse(s, r)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 5000); reorder(b, a); reverse(b, r)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "displace(j, s, 7)"),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", "displace(i, s, 7); parallelize(s, cpu_thread, no_races); assemble(Z, insert)"),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "displace(k, s, 7); displace([0], j, t, 3)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "displace(j, s, 1); displace(k, t, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "deal(i, w, t, 3)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "deal(i, w, t, 3); split(t, a, b, 2); deal(b, c, e, 4)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "split(i, a, b, 8); deal(b, w, t, 3); reorder(t, w)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "deal(i, w, t, 3); collapse(w, t, f)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "pos(j, p, A); deal(p, w, t, 3)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "pos(j, p, A); reverse(p, q)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "pos(j, p, A); shift(p, q, 2)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "collapse(i, j, f); pos(f, p, A); reverse(p, q); split(q, a, b, 3)"),
    ("y(i) = A(i,j) * x(j)", "A=csr", "collapse(i, j, f); pos(f, p, A); deal(p, w, t, 3); parallelize(w, cpu_thread, atomics)"),
    ("y(i) = A(i,j) * x(j)", "A=dcsr x=compressed", "deal(i, w, t, 4); deal(j, u, v, 2)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "deal(k, w, t, 4); reorder(t, w); parallelize(w, cpu_vector, no_races)"),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", "deal(i, v, t, 4)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "pos(j, p, B); deal(p, w, t, 4); parallelize(t, cpu_thread, no_races)"),
)


@pytest.mark.parametrize(("expression", "kinds", "schedule"), CASES)
def test_a_relation_of_ones_own_is_lowered_and_right(expression: str, kinds: str, schedule: str) -> None:
    case = Scheduled(0, expression, kinds_of(kinds), schedule)
    assert scheduled.interpreted_fault(case, case.compiled()) is None


@pytest.mark.cc
@pytest.mark.parametrize(
    "schedule", ["reverse(i, r); split(r, a, b, 2); parallelize(a, cpu_thread, no_races)", "shift(i, s, 3)", "deal(i, w, t, 3)"]
)
def test_it_is_compiled_too(schedule: str) -> None:
    case = Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), schedule)
    assert scheduled.fault(case, case.compiled()) is None


def test_what_goes_through_its_parent_steps_through_stored_levels() -> None:
    expression, kinds = "y(i) = A(i,j) * x(j)", kinds_of("A=csr")
    displaced = Scheduled(0, expression, kinds, "displace(j, s, 5)").compiled().source
    searched = Scheduled(0, expression, kinds, "shift(j, s, 5)").compiled().source
    assert "lower_bound" not in displaced.partition("static")[2]
    assert "lower_bound" in searched


def test_its_directive_has_a_text_and_reasons() -> None:
    assert str(Schedule("reverse( i,r )")) == "reverse(i, r)"
    with pytest.raises(ScheduleError, match="the name j is taken"):
        Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), "reverse(i, j)").compiled()
    with pytest.raises(ScheduleError, match="take the positions first"):
        Scheduled(0, "y(i) = A(i,j) * x(j)", kinds_of("A=csr"), "reverse(j, r); pos(r, p, A)").compiled()
    with pytest.raises(ValueError, match="there is a directive reverse already"):
        register(Reverse, reverse)
