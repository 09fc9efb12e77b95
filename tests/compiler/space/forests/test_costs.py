"""Symbolic costs: the papers' formulas, Figure 2 of SparseAuto, and operations counted in generated code."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from differential.interpreted import interpreted
from forest_samples import EXTENTS, SPTTN, forests, operands, sparse_formats
from sparsetune.compiler.format import csf_format
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.space.forests.costs import Costs, costs_of, driven_iterations, elements
from sparsetune.compiler.space.forests.forest import Forest
from sparsetune.compiler.space.forests.paths import PathRules
from sparsetune.compiler.space.forests.peeling import ForestRules
from sparsetune.compiler.space.forests.posynomial import Peak, Posynomial
from sparsetune.compiler.space.forests.priced import PricedForests

ANY = ForestRules(PathRules(pairwise=False), fused=False, derived=False)
FIGURE_2 = "A(l,m,n) = T(i,j,k) * C(i,l) * D(j,m) * E(k,n)"


def costs(expression: str, schedule: str) -> Costs:
    space = forests(expression, ANY)
    forest = space.find(schedule)
    assert forest is not None, schedule
    return costs_of(forest, space.default.formats)


@pytest.mark.parametrize(
    ("schedule", "depths", "time", "memory"),
    [
        ("", (6, 0), "4 * l * m * n * nnz_T_3", "0"),
        ("reorder(l,m,i,j,k,n); loopfuse(3,true,[]); reorder([1],n,k)", (5, 1), "2 * k * l * m * n + 3 * l * m * nnz_T_3", "k"),
        ("reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,k,j,n)", (5, 2), "3 * j * k * l * m * n + 2 * l * nnz_T_3", "j * k"),
        (
            "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,k,j,n); loopfuse(2,true,[1])",
            (4, 2),
            "2 * j * k * l * m + 2 * k * l * m * n + 2 * l * nnz_T_3",
            "j * k",
        ),
        (
            "reorder(l,i,j,k,m,n); loopfuse(2,true,[]); reorder([1],m,j,k,n); loopfuse(2,true,[1])",
            (4, 2),
            "2 * j * k * l * m + 2 * k * l * m * n + 2 * l * nnz_T_3",
            "j * k + k",
        ),
    ],
    ids="abcde",
)
def test_figure_2_of_sparseauto(schedule: str, depths: tuple[int, int], time: str, memory: str) -> None:
    found = costs(FIGURE_2, schedule)
    assert (found.loop_depth, found.memory_depth) == depths
    assert (str(found.time), str(found.memory)) == (time, memory)


def best(expression: str) -> set[str]:
    """Return the times of the forests of least depth whose buffers have one mode at most."""
    space = forests(expression)
    found = (costs_of(forest, space.default.formats) for forest in space.forests())
    return {str(one.time) for one in found if one.loop_depth == 4 and one.memory_depth <= 1}


def test_formulas_of_spttn() -> None:
    """Section 2.4: unfactorized, and factorize and fuse."""
    assert str(costs("TTMc3", "").time) == "3 * nnz_T_3 * r * s"
    assert "2 * nnz_T_2 * r * s + 2 * nnz_T_3 * s" in best("TTMc3")
    assert str(costs("MTTKRP3", "").time) == "3 * nnz_T_3 * r"
    assert "2 * nnz_T_2 * r + 2 * nnz_T_3 * r" in best("MTTKRP3")


def ends_in_sums(forest: Forest) -> Posynomial:
    """Return how often innermost loops that sum into one component are entered: their sums are added to it one by one."""
    entered = Posynomial()
    for place in forest.placed:
        kept = forest.contraction.written(place.term.operands)
        trailing = next((count for count, index in enumerate(reversed(place.order)) if kept >> index & 1), len(place.order))
        for removed in range(1, trailing + 1):
            formats = {"T": csf_format(len(forest.contraction.levels(0)))}
            entered += driven_iterations(forest, place, formats, len(place.order) - removed)
    return entered


@pytest.mark.parametrize("rules", [ForestRules(), ANY], ids=["fused", "partial"])
@pytest.mark.parametrize("name", SPTTN)
def test_time_is_what_generated_code_counts(name: str, rules: ForestRules) -> None:
    """Exactly where no term ends in a loop that sums; elsewhere the sum of such a loop is added to its component once more.

    Where the result is sparse, workspaces know their entries, and what reads them may visit fewer.
    """
    space, assignment = forests(name, rules), parse(SPTTN[name])
    given = operands(assignment, 3)
    sizes = dict(EXTENTS)
    for number, level in enumerate(given["T"].levels, 1):
        sizes[f"nnz_T_{number}"] = len(level.crd)
    for forest in space.sample_forests(2, seed=4):
        compiled = compile_kernel(SPTTN[name], sparse_formats(assignment), schedule=space.spelled(forest))
        flops = interpreted(compiled.bind_operands(given, 1))[1].flops
        time = costs_of(forest, space.default.formats).time.at(sizes)
        assert flops <= time + ends_in_sums(forest).at(sizes), str(forest)
        assert flops >= time or name == "TTTP3", str(forest)


@pytest.mark.parametrize("name", ["TTMc3", "MTTKRP4", "SDDMM-SpMM"])
def test_pairwise_nests_over_stored_fibres_cost_what_is_counted(name: str) -> None:
    """Operations as above; buffers have as many slots as the operand stores fibres."""
    assignment = parse(SPTTN[name])
    given = operands(assignment, 3)
    sizes = EXTENTS | {f"nnz_T_{number}": len(level.crd) for number, level in enumerate(given["T"].levels, 1)}
    for space in forests(name).over_fibres:
        for forest in space.sample_forests(2, seed=4) if space.count() else ():
            compiled = compile_kernel(SPTTN[name], sparse_formats(assignment), schedule=space.spelled(forest))
            counted, found = compiled.bind_operands(given, 1).count(), costs_of(forest, space.default.formats)
            assert found.time.at(sizes) <= counted["flops"] <= (found.time + ends_in_sums(forest)).at(sizes), str(forest)
            assert counted["workspace"] == found.memory.at(sizes)
            assert (compiled.costs["time"], compiled.costs["memory"]) == (str(found.time), str(found.memory))


def test_pairwise_tucker_costs_what_the_formula_of_spttn_says() -> None:
    over = "collapse(i, j, f); pos(f, p, T(i,j,k)); precompute(T(i,j,k) * V(k,s), [p, s], [p, s], w); workspace(w, positions)"
    costs = compile_kernel(SPTTN["TTMc3"], {"T": "csf"}, schedule=over).costs
    assert (costs["time"], costs["memory"]) == ("2 * nnz_T_2 * r * s + 2 * nnz_T_3 * s", "nnz_T_2 * s")
    within = "pos(j, p, T(i,j,k)); precompute(T(i,j,k) * V(k,s), [p, s], [p, s], w); workspace(w, positions)"
    assert compile_kernel(SPTTN["TTMc3"], {"T": "csf"}, schedule=within).costs["memory"] == "nnz_T_2 * s"


def test_posynomials() -> None:
    one = Posynomial.of([(("i", "j"), 2), (("j", "i"), 1), ((), 4)])
    assert str(one) == "3 * i * j + 4"
    assert str(one * one) == "9 * i**2 * j**2 + 24 * i * j + 16"
    assert one.at({"i": 2, "j": 5}) == eval(str(one), {"i": 2, "j": 5}) == 34
    assert one.symbols == {"i", "j"}
    assert str(Posynomial()) == "0"
    assert str(one.scaled(2) + one) == "9 * i * j + 12"


CHAIN = "A(i,n) = B(i,j) * C(j,k) * D(k,l) * E(l,m) * F(m,n)"
APART = (
    "precompute(B(i,j) * C(j,k) * D(k,l) * E(l,m), [i, m], [i, m], w3); precompute([0], B(i,j) * C(j,k) * D(k,l), [i, l], [i, l], w2);"
    " precompute([0, 0], B(i,j) * C(j,k), [i, k], [i, k], w1)"
)


def test_what_no_later_nest_reads_is_in_memory_no_longer() -> None:
    """One nest after another fills and reads the buffers of a chain: two of them are there at one time, in costs and in code."""
    kernel = compile_kernel(CHAIN, schedule=APART)
    sizes = {"i": 3, "j": 4, "k": 7, "l": 6, "m": 5, "n": 2}
    assert set(kernel.costs["memory"].removeprefix("max(").removesuffix(")").split(", ")) == {"i * k + i * l", "i * l + i * m"}
    given = {access.tensor: np.ones([sizes[index] for index in access.indices]) for access in accesses(parse(CHAIN).value)}
    bound = kernel.bind(**given, threads=1)
    assert bound.count()["workspace"] == 3 * (7 + 6)
    np.testing.assert_array_equal(bound(), np.full((3, 2), 4.0 * 7 * 6 * 5))


@pytest.mark.parametrize("text", [CHAIN, "A(i,m) = T(i,j) * C(j,k) * D(j,l) * E(k,l) * F(l,m)"])
def test_workspaces_of_five_factors_are_what_is_counted(text: str) -> None:
    space = forests(text, ANY)
    given = operands(parse(text), 3)
    peaks = 0
    for forest in space.sample_forests(12, seed=4):
        found = costs_of(forest, space.default.formats).memory
        every = [elements(space.contraction, edge.open) for edge in forest.edges if edge.open]
        kernel = compile_kernel(text, sparse_formats(parse(text)), schedule=space.spelled(forest))
        assert kernel.costs["memory"] == str(found)
        assert kernel.bind_operands(given, 1).count()["workspace"] == found.at(EXTENTS), str(forest)
        peaks += found != Peak((sum(every, Posynomial()),))
    assert peaks


def test_costs_of_spaces_are_those_of_their_forests() -> None:
    """Also where buffers follow one another, as they can among five factors."""
    space = forests("A = B(i) * C(i) * D(j) * E(j) * F(i,j)", ForestRules(PathRules(), fused=False))
    priced = PricedForests(space.peeling, space.formats)
    listed = Counter(costs_of(forest, space.default.formats) for forest in space.forests())
    assert {costs: priced.count(costs) for costs in priced.costs()} == listed
    assert sum(len(costs.memory.parts) > 1 for costs in listed)
