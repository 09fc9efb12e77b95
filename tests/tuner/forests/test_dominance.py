"""Costs over a domain: intervals and Z3 agree, and neither says what sizes disprove."""

from __future__ import annotations

import pytest
from forest_samples import SPTTN, forests
from sparsetune.compiler.space.forests.paths import PathRules
from sparsetune.compiler.space.forests.peeling import ForestRules
from sparsetune.compiler.space.forests.posynomial import Posynomial
from sparsetune.compiler.space.forests.priced import PricedForests
from sparsetune.tuner.forests.domain import Domain, domain_of
from sparsetune.tuner.forests.dominance import Dominance

RULES = ForestRules(PathRules(pairwise=False, reducing=True), fused=False, derived=False, memory_depth=2)
KERNELS = {
    "SpMM-GEMM": "A(i,l) = T(i,j) * C(j,k) * D(k,l)",
    "SDDMM-SpMM": SPTTN["SDDMM-SpMM"],
    "MTTKRP3": SPTTN["MTTKRP3"],
    "MTTKRP-GEMM": "A(i,m) = T(i,k,l) * C(l,j) * D(k,j) * E(j,m)",
}
OTHERS = {
    "SpMMH-GEMM": "A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)",
    "SpTTM-TTM": "A(i,l,m) = T(i,j,k) * C(j,l) * D(k,m)",
    "SpTTM-SpTTM": "S(i,j,m) = T(i,j,k) * C(k,l) * D(l,m)",
    "SpTTM-TTM-TTM": SPTTN["SpTTM-TTM-TTM"],
    "SDDMM-SpMM-GEMM": "A(i,m) = T(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)",
}
"""The other kernels of SparseAuto's Table 2."""


def priced(name: str) -> PricedForests:
    space = forests((KERNELS | OTHERS)[name], RULES)
    return PricedForests(space.peeling, space.default.formats)


def domain(name: str, **ranges: tuple[float, float]) -> Domain:
    return domain_of(forests((KERNELS | OTHERS)[name], RULES).contraction, ranges)


@pytest.mark.parametrize("name", KERNELS)
def test_costs_are_those_of_listing(name: str) -> None:
    from collections import Counter

    from sparsetune.compiler.space.forests.costs import costs_of

    found, space = priced(name), forests(KERNELS[name], RULES)
    counted = Counter(costs_of(forest, space.default.formats) for forest in space.forests())
    assert counted == {one: found.count(one) for one in found.costs()}
    for one in found.costs()[:3]:
        listed = list(found.forests(one))
        assert len(set(listed)) == found.count(one)
        assert {costs_of(forest, space.default.formats) for forest in listed} == {one}


@pytest.mark.parametrize(
    "name", [*KERNELS, *list(OTHERS)[:3], *(pytest.param(name, marks=pytest.mark.nightly) for name in list(OTHERS)[3:])]
)
def test_survivors_are_those_of_z3_alone(name: str) -> None:
    pytest.importorskip("z3")
    costs = priced(name).costs()
    for ranges in ({}, {"i": (1e2, 1e4), "j": (1e2, 1e4), "k": (8.0, 64.0)}):
        quick, plain = Dominance(domain(name, **ranges)), Dominance(domain(name, **ranges), plain=True)
        assert quick.undominated(costs) == plain.undominated(costs)
        assert quick.asked <= plain.asked


def test_the_least_of_each_cost_survives_everywhere() -> None:
    costs = priced("MTTKRP-GEMM").costs()
    space = domain("MTTKRP-GEMM")
    left = Dominance(space).undominated(costs)
    for sizes in space.points(1000, seed=7):
        for part in ("time", "memory"):
            least = min(getattr(one, part).at(sizes) for one in costs)
            assert min(getattr(one, part).at(sizes) for one in left) <= least * (1 + 1e-9)


def test_intervals() -> None:
    found = Dominance(domain("MTTKRP3", r=(4.0, 8.0), k=(16.0, 32.0)))

    def cost(*terms: tuple[str, int]) -> Posynomial:
        return Posynomial.of((symbols.split(), count) for symbols, count in terms)

    assert found.never_above(cost(("nnz_T_2 r", 2)), cost(("nnz_T_3 r", 2)))  # every fibre has an entry
    assert found.never_above(cost(("nnz_T_3 r", 2)), cost(("i j k r", 2)))
    assert found.never_above(cost(("nnz_T_3 r", 1)), cost(("nnz_T_2 k r", 1)))
    assert found.never_above(cost(("i r", 2), ("i", 1)), cost(("i k", 2)))  # 2 * 8 + 1 < 2 * 16
    assert not found.never_above(cost(("i k", 1)), cost(("i r", 3)))
    assert not found.never_above(cost(("nnz_T_3", 1)), cost(("nnz_T_2 r", 1)))
    before = found.asked
    assert found.never_above(cost(("nnz_T_2 r", 2)), cost(("nnz_T_3 r", 2)))
    assert found.asked == before


def test_quotients_bound_what_is_admitted() -> None:
    space = domain("MTTKRP3", **{"i/k": (2.0, 3.0)})
    assert all(1.99 <= sizes["i"] / sizes["k"] <= 3.01 for sizes in space.points(50))
    pytest.importorskip("z3")
    assert Dominance(space).never_above(Posynomial.of([(("k",), 2)]), Posynomial.of([(("i",), 1)]))
