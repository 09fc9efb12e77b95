"""Tree-separable costs: the dynamic program against listing everything, and against what the paper says of TTMc and TTTc."""

from __future__ import annotations

from math import inf
from time import process_time

import pytest
from contraction_sequences import sequences
from forest_samples import TTTC6, forests
from sparsetune.compiler.errors import TuningError
from sparsetune.compiler.space.forests.optimum import Optimizer, evaluated
from sparsetune.compiler.space.forests.paths import paths
from sparsetune.compiler.space.forests.peeling import path_depth
from sparsetune.compiler.space.forests.separable import (
    Peel,
    SeparableCost,
    buffer_dimension,
    buffer_size,
    cache_misses,
    cost_of,
    dense_loops,
)

EXTENTS = {"i": 11.0, "j": 7.0, "k": 5.0, "l": 3.0, "r": 2.0, "s": 13.0}


def uneven(peel: Peel, inner: float) -> float:
    """A cost of a user: loops are worth what their index, their depth and the buffers beside them are."""
    place = "ijklrsmn".index(peel.name) if peel.name else 3
    return (2 + place % 3) * (inner + len(peel.terms)) + 5 * sum(map(len, peel.buffers)) + peel.removed.bit_count() % 2


COSTS = {
    "buffer_dimension": buffer_dimension(),
    "buffer_size": buffer_size(EXTENTS),
    "cache": cache_misses(EXTENTS),
    "deep cache": cache_misses(EXTENTS, 2),
    "dense_loops": dense_loops(),
    "dense_loops, vectors": dense_loops(1),
    "uneven": SeparableCost("uneven", uneven, lambda one, other: one + other),
    "deepest": SeparableCost("deepest", lambda peel, inner: inner + 1 + peel.loop % 3, max),
}
SMALL = (
    "MTTKRP3",
    "TTMc3",
    "TTTP3",
    "a = T(i,j) * b(j) * c(i)",
    "A(i,j) = B(i,k) * C(k,l) * D(l,j)",
    "A(i,l) = T(i,j) * C(j,k) * D(k,l)",
)
LARGER = (
    "MTTKRP4",
    "SDDMM-SpMM",
    "A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)",
    "A(i,n) = T(i,j,k) * C(j,l) * D(k,l) * E(l,n)",
)


@pytest.mark.parametrize("expression", [*SMALL, *(pytest.param(expression, marks=pytest.mark.nightly) for expression in LARGER)])
def test_the_optimum_is_that_of_listing_all(expression: str) -> None:
    """For every path and every cost; the forest found has the cost that is claimed and is in the space."""
    space = forests(expression)
    optimizers = {name: Optimizer(space.peeling, cost) for name, cost in COSTS.items()}
    least: dict[tuple[object, str], float] = {}
    for forest in space.forests():
        for name, cost in COSTS.items():
            key = (forest.path, name)
            least[key] = min(least.get(key, inf), evaluated(forest, cost))
    for path in paths(space.contraction):
        for name, cost in COSTS.items():
            found = optimizers[name].optimum(path)
            assert found.cost == pytest.approx(least[path, name]), (path, name)
            if found.forest is not None:
                assert space.rank(found.forest) is not None
                assert evaluated(found.forest, cost) == pytest.approx(found.cost)


def test_tucker_of_order_four() -> None:
    space = forests("TTMc4")
    every = tuple(paths(space.contraction))
    assert Optimizer(space.peeling, buffer_dimension()).best(every).cost == 1
    assert Optimizer(space.peeling, dense_loops(2)).best(every).cost == -6


def test_buffers_are_charged_where_the_loops_part() -> None:
    """At the top of the forest too: nothing is shared in ``U V`` and then ``T``, so the buffer has all four modes."""
    space = forests("TTMc3")
    for forest in space.forests():
        dimension = evaluated(forest, buffer_dimension())
        assert dimension == forest.memory_depth
        size = 1.0
        for edge in forest.edges:
            elements = 1.0
            for name in space.contraction.names(edge.open):
                elements *= EXTENTS[name]
            size = max(size, elements)
        assert evaluated(forest, buffer_size(EXTENTS)) == size


@pytest.mark.parametrize("name", [name for name in COSTS if name != "uneven"])  # which knows fewer indices
def test_a_tensor_train_of_order_six(name: str) -> None:
    """All 213 sequences of least depth: a state of one serves the others (the time is that of the processor, with a margin)."""
    space = forests(TTTC6)
    shallow = [path for path in sequences(space.contraction.everything) if path_depth(space.contraction, path) == 7]
    start = process_time()
    found = Optimizer(space.peeling, COSTS[name]).best(shallow)
    assert process_time() - start < 8  # 0.2 to 0.3 when idle
    assert found.forest is not None
    assert found.forest.loop_depth == 7


def test_costs_by_name() -> None:
    assert cost_of("cache").name == "cache"
    assert cost_of((uneven, max)).name == "uneven"
    assert cost_of(COSTS["uneven"]) is COSTS["uneven"]
    for wish in ("speed", 3, (1, 2)):
        with pytest.raises(TuningError, match="unknown cost"):
            cost_of(wish)
