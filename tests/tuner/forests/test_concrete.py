"""What is decided once sizes are known: time among what fits the cache, then how leaves access memory, then agreement of orders."""

from __future__ import annotations

from math import prod
from time import process_time
from timeit import repeat

import pytest
from forest_samples import forests
from sparsetune.compiler.errors import TuningError
from sparsetune.compiler.native.machine import this_machine
from sparsetune.compiler.space.forests.peeling import ForestRules
from sparsetune.tuner.explore import explore
from sparsetune.tuner.forests.concrete import access_cost, disagreements, fastest
from sparsetune.tuner.forests.exploration import ForestExploration

FIGURE_2 = "A(l,m,n) = B(i,j,k) * C(i,l) * D(j,m) * E(k,n)"


def found(**options: object) -> ForestExploration:
    exploration = explore(FIGURE_2, {"B": "csf"}, preset="sparseauto", **options)  # type: ignore[arg-type]
    assert isinstance(exploration, ForestExploration)
    return exploration


def sizes(share: float, **extents: float) -> dict[str, float]:
    i, j, k = (extents[name] for name in "ijk")
    entries = share * i * j * k
    return {**extents, "nnz_B_1": min(i, entries), "nnz_B_2": min(i * j, entries), "nnz_B_3": entries}


def test_least_time_among_what_fits() -> None:
    exploration = found()
    values = sizes(1e-3, i=200, j=300, k=400, l=16, m=32, n=64)
    best = exploration.chosen(values)
    assert best.costs.time.at(values) == min(one.costs.time.at(values) for one in exploration.classes)
    assert best.schedule in exploration.space


def test_buffers_beyond_the_cache_are_left_out() -> None:
    """Case 2 of section 3.1: the shallowest spills."""
    exploration = found()
    most = 0.5 * this_machine().last_level_cache / 8
    values = sizes(1e-12, i=2_000_000, j=int(4 * most), k=int(4 * most), l=8, m=8, n=8)
    best = exploration.chosen(values)
    assert best.costs.memory.at(values) <= most
    assert min(one.costs.memory.at(values) for one in exploration.classes) <= most


def test_memory_bounds_of_users() -> None:
    exploration = found()
    values = sizes(1e-3, i=200, j=300, k=400, l=16, m=32, n=64)
    assert exploration.chosen(values, memory_bound=100).costs.memory.at(values) <= 100
    with pytest.raises(TuningError, match="is missing; costs of the frontier depend on it"):
        exploration.chosen({"i": 3})
    matrix = explore("A(i,l) = B(i,j) * C(j,k) * D(k,l)", {"B": "csf"}, preset="spttn", cost="buffer_size")
    assert isinstance(matrix, ForestExploration)
    with pytest.raises(TuningError, match="at most -1 elements"):
        matrix.chosen(dict.fromkeys(("i", "j", "k", "l", "nnz_B_1", "nnz_B_2"), 9), memory_bound=-1)


def test_leaves_go_through_last_modes() -> None:
    """Of ``C(j,k) * D(k,l)`` the loop over the last mode is innermost, and loops follow the modes."""
    space = forests("A(i,l) = T(i,j) * C(j,k) * D(k,l)", ForestRules(fused=False))
    extents = {"i": 5.0, "j": 6.0, "k": 7.0, "l": 8.0}
    formats = space.default.formats
    everything = list(space.forests())
    best = fastest(dict.fromkeys(everything, formats), extents)
    assert access_cost(best, formats, extents) == min(access_cost(one, formats, extents) for one in everything) == 0
    by_hand = next(one for one in everything if one.orders == (("j", "k", "l"), ("i", "j", "l")))
    assert (access_cost(by_hand, formats, extents), disagreements(by_hand, formats)) == (0, 0)
    across = next(one for one in everything if one.orders == (("j", "l", "k"), ("i", "l", "j")))
    assert access_cost(across, formats, extents) == 8.0  # D(k,l), a row apart; T's entries are next to one another
    assert disagreements(across, formats) == 1


def test_the_choice_takes_under_a_millisecond() -> None:
    exploration = found()
    values = sizes(1e-3, i=200, j=300, k=400, l=16, m=32, n=64)
    exploration.chosen(values)
    seconds = repeat(lambda: exploration.chosen(values), timer=process_time, number=5, repeat=10)
    assert min(seconds) / 5 < 0.005  # of the processor; under 0.001 when idle


def test_shares_are_checked() -> None:
    assert found(cache_share=0.25).cache_share == 0.25
    assert prod((found().cache_share, 2)) == 1
    for share in (0, 2, "half"):
        with pytest.raises(TuningError, match="cache_share"):
            found(cache_share=share)
