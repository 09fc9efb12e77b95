"""Spaces that are too large to be gone through: explorations end in time, and with what is known."""

from __future__ import annotations

import re

import pytest
from effort import Ticks
from space_samples import CSR, PRODUCT
from sparsetune.compiler.errors import TuningError
from sparsetune.tuner import stage_clock
from sparsetune.tuner.explore import explore


@pytest.mark.parametrize(
    "expression",
    [
        "A(i,j) = B(i,k) * C(k,l) * D(l,m) * E(m,n) * F(n,j)",
        "a = b(i) * c(i) * d(i) * e(i) * f(i) * g(i) * h(i) * p(i)",
        "a(i) = b(i) + c(i) + d(i) + e(i) + f(i) + g(i) + h(i) + p(i) + q(i)",
        "a(i) = b(i) * (c(i) + d(i)) * (e(i) + f(i)) * (g(i) + h(i)) * (p(i) + q(i))",
    ],
)
def test_spaces_that_are_too_large_end_in_time(expression, monkeypatch):
    monkeypatch.setattr(stage_clock, "perf_counter", Ticks(0.001))
    with pytest.raises(TuningError, match=r"too large to explore in 0.5 seconds \(not even counted\); give a larger time_limit"):
        explore(expression, time_limit=0.5)


def test_listing_what_taco_can_express_ends_in_time_too(monkeypatch):
    monkeypatch.setattr(stage_clock, "perf_counter", Ticks(0.001))
    with pytest.raises(TuningError, match=r"too large to explore in 1 seconds \(generated 2642411520, min_depth \d+\)"):
        explore("y(i) = b(i,j,k,l,m,n,o,p) * c(i,j,k,l,m,n,o,p)", preset="pigeon-taco", time_limit=1)


def test_a_search_gives_up_after_a_minute_unless_it_is_told_otherwise(monkeypatch):
    monkeypatch.setattr(stage_clock, "perf_counter", Ticks(0.2))
    with pytest.raises(TuningError, match="too large to explore in 60 seconds"):
        explore("a = b(i) * c(i) * d(i) * e(i) * f(i) * g(i) * h(i) * p(i)")


def test_what_was_found_in_time_is_listed_without_a_limit(monkeypatch):
    found = explore(PRODUCT, CSR)
    monkeypatch.setattr(stage_clock, "perf_counter", lambda: float("inf"))
    assert len(list(found.frontier)) == len(found.frontier)
    assert all(one.loop_nest and one.time for one in found.frontier)
    assert found.space.sample(3)[0] in found.space


def test_spaces_that_are_too_large_end_with_what_is_known(monkeypatch):
    monkeypatch.setattr(stage_clock, "perf_counter", Ticks(0.0004))
    product = "A(i,m) = B(i,j) * C(j,k) * D(k,l) * E(l,m)"
    found = explore(product, dict.fromkeys("ABCDE", "csr"), time_limit=2)
    generated, undominated = found.stages
    assert re.fullmatch(r"time over after \d+ of 59 ways to place workspaces", undominated["stopped"])
    assert undominated["stopped"] in repr(found)
    assert generated["kept"] <= 367056057856
    assert len(found.frontier) == undominated["kept"] == sum(len(list(one.schedules)) for one in found.classes)
    costs = [found.model.cost(one.first.program.statement) for one in found.classes]
    assert len(set(costs)) == len(costs) > 1
    assert not any(one != other and found.model.tasks.within(one, other) for one in costs for other in costs)
    assert found.frontier[0].schedule in found.space
    assert "cheaper" in found.why("")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("expression", "formats"),
    [
        ("A(i,n) = B(i,j) * C(j,k) * D(k,l) * E(l,m) * F(m,n)", dict.fromkeys("ABCDEF", "csr")),
        ("A(i,r) = B(i,j,k,l) * C(j,r) * D(k,r) * E(l,r)", {"B": "csf", **dict.fromkeys("ACDE", "csr")}),
    ],
)
def test_the_largest_products_have_an_answer_in_a_minute(expression, formats):
    """Chains of five have 792 ways to place workspaces, and the first takes seconds: what is known before the search answers then."""
    found = explore(expression, formats)
    assert sum(stage["seconds"] for stage in found.stages) < 60
    assert "stopped" in found.stages[-1]
    assert max(one.memory_depth for one in found.frontier[:50]) > 0
