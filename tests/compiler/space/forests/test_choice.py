"""Forests on operands of known size: the search has those of least work, and they are as good as nests written by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from differential.interpreted import interpreted
from forest_samples import SPTTN, TTTC6, forests
from sparsetune.compiler.deadline import Deadline, TimeOver
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.forests.bound import LeastWork
from sparsetune.compiler.space.forests.choice import promising, sizes_of
from sparsetune.compiler.space.forests.contraction import Contraction
from sparsetune.compiler.space.forests.costs import costs_of
from sparsetune.compiler.space.forests.forest import Forest
from sparsetune.compiler.space.forests.optimum import Optimizer, evaluated
from sparsetune.compiler.space.forests.paths import PathRules, paths
from sparsetune.compiler.space.forests.peeling import ForestRules
from sparsetune.compiler.space.forests.space import Forests
from sparsetune.compiler.space.forests.work import Sizes, work
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.positions import stored_prefixes
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.datasets.generate import generate
from sparsetune.tuner.limits import workspace_elements
from sparsetune.tuner.model import model_choice, problem_candidates, rank
from sparsetune.tuner.prune import surviving_space
from sparsetune.tuner.resolve import make_problem

CHAIN = "A(i,m) = B(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)"
HAND = "loopfuse(4, true, []); loopfuse(3, true, [0])"


def chain_operands(rows: int, columns: int, entries: int, inner: tuple[int, int, int]) -> dict[str, Any]:
    source = np.random.default_rng(rows)
    coordinates = np.stack([source.integers(0, rows, entries), source.integers(0, columns, entries)])
    k, m, n = inner
    shapes = {"C": (rows, k), "D": (columns, k), "E": (columns, m), "F": (m, n)}
    dense = {name: source.integers(1, 4, shape).astype(float) for name, shape in shapes.items()}
    return {"B": tensor((coordinates, np.ones(entries)), "csr", (rows, columns)), **dense}


@pytest.mark.parametrize(
    ("rows", "columns", "entries", "inner"), [(60, 60, 600, (16, 16, 16)), (200, 200, 400, (16, 16, 4)), (30, 90, 400, (8, 32, 32))]
)
def test_the_search_has_nests_as_good_as_those_written_by_hand(rows: int, columns: int, entries: int, inner: tuple[int, int, int]) -> None:
    """Counted: the cheapest by the static model hardly does more operations than the nest of SparseAuto, and is right."""
    given = chain_operands(rows, columns, entries, inner)
    problem = make_problem(CHAIN, given, threads=1)
    best = rank(problem, problem_candidates(problem))[0]
    flops = {}
    for name, schedule in (("best", best.schedule), ("hand", HAND)):
        result, counts = interpreted(compile_kernel(CHAIN, {"B": "csr"}, schedule=schedule).bind_operands(given, 1))
        assert np.array_equal(result, np.einsum("ij,ik,jk,jl,lm->im", given["B"].to_numpy(), *(given[name] for name in "CDEF")))
        flops[name] = counts.flops
    assert flops["best"] <= 1.2 * flops["hand"]


def test_pruning_keeps_a_forest_among_the_best() -> None:
    """What ``tune`` searches holds a nest that the static model expects to be within 15% of the best candidate."""
    problem = make_problem(CHAIN, chain_operands(500, 500, 3000, (16, 32, 16)), threads=1)
    found = problem_candidates(problem)
    space, stages = surviving_space(problem)
    assert stages[-6]["stage"] == "generated"
    kept = [candidate for candidate in found if candidate.template in set(space.templates)]
    best, left = rank(problem, found)[0], rank(problem, kept)[0]
    assert "forest" in best.candidate.origin
    assert left.cost <= 1.15 * best.cost


def sizes(contraction: Contraction, extents: Mapping[str, int]) -> Sizes:
    return sizes_of(contraction, extents, {})


@pytest.mark.parametrize("name", SPTTN)
def test_the_cheapest_of_every_path(name: str) -> None:
    space = forests(name)
    extents = {index: 3 + place for place, index in enumerate(space.contraction.indices)}
    known = sizes(space.contraction, extents)
    found = list(promising(space.contraction, known, 10**6, lambda: None))
    costs = [evaluated(forest, work(known)) for forest in found]
    assert costs == sorted(costs)
    assert len({forest.path for forest in found}) == len(found) == len(tuple(paths(space.contraction, PathRules(pairwise=False))))


def test_pairwise_nests_over_stored_fibres_are_among_what_is_tried() -> None:
    """Counted as what they do: loops over positions of an operand that they do not read run no further than it stores."""
    source = np.random.default_rng(0)
    given = {"T": sampled_matrix(400, 3000), **{name: source.random((400, 16)) for name in "CDE"}}
    problem = make_problem(SPTTN["SDDMM-SpMM"], given, threads=1)
    ranked = rank(problem, problem_candidates(problem))
    over = next(found for found in ranked if "positions" in str(found.schedule))
    assert ranked[0].cost < over.cost < 1.5 * ranked[0].cost
    stored = given["T"].nnz
    assert workspace_elements(over.candidate.program, problem) == stored
    assert over.candidate.memory == str(stored)
    result, counts = interpreted(compile_kernel(problem.expression, {"T": "csr"}, schedule=over.schedule).bind_operands(given, 1))
    assert np.allclose(result, (given["T"].to_numpy() * (given["C"] @ given["D"].T)) @ given["E"])
    assert counts.flops <= stored * (3 * 16 + 2 * 16 + 1)


def sampled_matrix(extent: int, entries: int) -> Tensor:
    source = np.random.default_rng(1)
    places = np.unique(source.integers(0, extent, (2, entries)), axis=1)
    return tensor((places, np.ones(places.shape[1])), "csr", (extent, extent))


def test_buffers_that_no_memory_holds_are_left_out() -> None:
    contraction = forests("TTMc3").contraction
    huge = sizes(contraction, dict.fromkeys("ijkrs", 1_000_000))
    assert all(_elements(forest, 1_000_000) <= 2**27 for forest in promising(contraction, huge, 100, lambda: None))


def _elements(forest: Forest, extent: int) -> int:
    return max((extent ** edge.open.bit_count() for edge in forest.edges), default=1)


def test_a_deadline_ends_the_search() -> None:
    space = forests("MTTKRP4")
    known = sizes(space.contraction, {})
    assert not list(promising(space.contraction, known, 10, Deadline(0).watch))
    looks = iter(range(5))

    def watch() -> None:
        if next(looks, None) is None:
            raise TimeOver

    assert len(list(promising(space.contraction, known, 10, watch))) == 5


@pytest.mark.parametrize("extent", [1, 9, 1000])
@pytest.mark.parametrize("expression", [*SPTTN.values(), TTTC6])
def test_no_forest_of_a_path_takes_less_than_its_bound(expression: str, extent: int) -> None:
    space = forests(expression)
    known = sizes(space.contraction, {index: extent + place for place, index in enumerate(space.contraction.indices)})
    optimizer, bound = Optimizer(space.peeling, work(known)), LeastWork(space.contraction, known)
    every = list(space.peeling.paths())
    for path in random.Random(0).sample(every, min(20, len(every))):
        assert 0 < bound.of_path(path) <= optimizer.optimum(path).cost


def test_branch_and_bound_finds_what_looking_at_every_path_finds() -> None:
    """Of 1,620 paths of a contraction of six tensors a few dozen are looked at."""
    space = forests(TTTC6)
    known = sizes(space.contraction, dict.fromkeys(space.contraction.indices, 20))
    looked: list[int] = []
    found = list(promising(space.contraction, known, 4, lambda: looked.append(1)))
    optimizer = Optimizer(space.peeling, work(known, 2.0**27))
    costs = [evaluated(forest, work(known)) for forest in found]
    assert costs == sorted(costs)
    kept = {forest.path for forest in found}
    others = random.Random(0).sample([path for path in space.peeling.paths() if path not in kept], 100)
    assert all(optimizer.optimum(path).cost >= costs[-1] for path in others)
    assert len(looked) < 200


@pytest.mark.parametrize("factors", [2, 7, 9])
def test_products_of_other_lengths_are_left_to_others(factors: int) -> None:
    letters = [f"T{number}(i)" for number in range(factors)]
    contraction = forests(f"a(i) = {' * '.join(letters)}").contraction
    assert not list(promising(contraction, sizes(contraction, {}), 10, lambda: None))


def sampled(shape: tuple[int, int, int], entries: int) -> Tensor:
    source = np.random.default_rng(0)
    coordinates = np.unique(np.stack([source.integers(0, extent, entries) for extent in shape]), axis=1)
    return tensor((coordinates, np.ones(coordinates.shape[1])), "csf", shape)


def test_results_with_the_pattern_of_an_operand_take_no_lists() -> None:
    """A workspace that such a result is made from is read where the operand has entries: it is an array, small ones are registers."""
    stored = sampled((10, 12, 30), 1500)
    operands = {"T": stored, "U": np.ones((10, 16)), "V": np.ones((12, 16)), "W": np.ones((30, 16))}
    apart = "precompute(U(i,r) * V(j,r), [i, j, r], [i, j, r], w); join(i, [0], [1]); join(j, [0], [1])"
    space = forests(SPTTN["TTTP3"], ForestRules(PathRules(pairwise=False)))
    found = space.find(apart)
    assert found is not None
    spelled = space.spelled(found)
    assert "list" not in str(spelled)
    loads = [
        compile_kernel(SPTTN["TTTP3"], {"S": "csf", "T": "csf"}, {"r": 16}, schedule).bind(**operands, threads=1).count()["loads"]
        for schedule in (spelled, Schedule())
    ]
    assert loads[0] < loads[1]


def test_six_tensors_without_tuning() -> None:
    """The choice does what the best forest of least depth does, up to a third more."""
    source = np.random.default_rng(0)
    coordinates = np.unique(source.integers(0, 20, (6, 5000)), axis=1)
    shapes = {"A": (20, 4), "B": (4, 20, 4), "C": (4, 20, 4), "D": (4, 20, 4), "E": (4, 20, 4)}
    train = tensor((coordinates, np.ones(coordinates.shape[1])), "csf", (20,) * 6)
    operands = {"T": train, **{name: np.ones(shape) for name, shape in shapes.items()}}
    problem = make_problem(TTTC6, operands, threads=1)
    chosen = model_choice(problem, Deadline(60.0))
    counted = compile_kernel(TTTC6, {"T": "csf"}, None, chosen).bind(**operands, threads=1).count()["flops"]
    space = Forests(problem.assignment, problem.formats)
    fibres = stored_prefixes(train)
    known = sizes_of(space.contraction, problem.extents, {"T": fibres})
    symbols = {**problem.extents, **{f"nnz_T_{level}": count for level, count in enumerate(fibres, 1)}}
    costs = (costs_of(forest, problem.formats) for forest in promising(space.contraction, known, 10, lambda: None))
    shallow = [one.time.at(symbols) for one in costs if one.loop_depth == 7]
    assert counted <= 1.34 * min(shallow)


def test_a_core_goes_through_its_tensor_once() -> None:
    """Loops over a dense index around those of a sparse tensor would start many short loops, and a large buffer is far away."""
    text = "A(p,q,r,s) = T(i,j,k,l) * C(i,p) * D(j,q) * E(k,r) * F(l,s)"
    stored = generate("random:zipf:200x60x150x50:nnz=4e4", "csf")
    operands = {name: np.ones((extent, 8)) for name, extent in zip("CDEF", stored.shape, strict=True)}
    problem = make_problem(text, {"T": stored, **operands}, threads=1)
    chosen = model_choice(problem)
    assert chosen is not None
    kernel = compile_kernel(text, {"T": "csf"}, problem.constants, chosen)
    loops = [line.strip() for line in kernel.loop_nest.splitlines() if line.strip().startswith("for")]
    assert loops[0] == "for i:"
    assert kernel.bind(T=stored, **operands, threads=1).count()["workspace"] <= 2**13, "a core of 8**4 elements, and parts of it"
