"""Loop nest forests: counts of the papers, the set against Definitions 4.2 to 4.5 carried out literally, texts that compile."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from pathlib import Path

import pytest
from forest_samples import SPTTN, TTTC6, forests, wrong
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.errors import ExpressionError
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.forests.forest import Forest
from sparsetune.compiler.space.forests.paths import PathRules, paths, term_indices
from sparsetune.compiler.space.forests.peeling import ForestRules, fused, path_depth
from sparsetune.compiler.space.forests.space import Forests

COUNTS = {
    "MTTKRP3": (48, 4, 48),
    "MTTKRP4": (3_510, 5, 3_510),
    "TTMc3": (576, 4, 96),
    "TTMc4": (11_138_400, 5, 36_000),
    "TTTP3": (1_680, 4, 1_680),
    "SDDMM-SpMM": (9_792, 3, 288),
    "SpTTM-TTM-TTM": (6_296_832, 4, 6_912),
}
PARTIAL = ForestRules(PathRules(pairwise=False), fused=False)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_the_papers(name: str) -> None:
    count, depth, shallow = COUNTS[name]
    space = forests(name)
    assert space.count() == count
    assert min(path_depth(space.contraction, path) for path in space.peeling.paths()) == depth
    assert forests(name, ForestRules(loop_depth=depth)).count() == shallow


def literal(space: Forests) -> list[Forest]:
    """Return the fully fused forests of all combinations of index orders in which stored levels come after their parents."""
    contraction = space.contraction
    found = []
    for path in paths(contraction):
        choices = []
        for term in path:
            numbers = [number for number in range(len(contraction.indices)) if term_indices(contraction, term) >> number & 1]
            levels = [number for operand, chain in contraction.chains if term.operands >> operand & 1 for number in chain]
            kept = [number for number in levels if number in numbers]
            choices.append([(term, order) for order in permutations(numbers) if [one for one in order if one in levels] == kept])
        found += [Forest(contraction, tuple(fused(list(orders)))) for orders in product(*choices)]
    return found


SMALL = ("MTTKRP3", "TTMc3", "SDDMM-SpMM", "a(i) = T(i,j) * b(j) * c(j)", "A(i,n) = T(i,j,k) * C(j,l) * D(k,l,n)")
NO_FORESTS = ("a(i) = T(i,j)", "a(i) = T(i,j) + B(i,j)", "a(i) = T(i,i) * b(i)", "a = b(i) * b(i)", "a(i) = 2 * b(i)")


@pytest.mark.parametrize("expression", SMALL)
def test_the_set_is_the_definition(expression: str) -> None:
    space = forests(expression)
    listed = list(space.forests())
    assert len(set(listed)) == len(listed) == space.count()
    assert set(listed) == set(literal(space))


@pytest.mark.parametrize("rules", [ForestRules(), PARTIAL], ids=["fused", "partial"])
@pytest.mark.parametrize("name", SPTTN)
def test_places_and_texts(name: str, rules: ForestRules) -> None:
    """The n-th forest is at place n, its text is in the space, and leads back to it."""
    space = forests(name, rules)
    for forest in space.sample_forests(12, seed=5):
        place = space.rank(forest)
        assert place is not None
        assert space.forest(place) == forest
        schedule = space.spelled(forest)
        assert space.find(str(schedule)) == forest
        assert str(space.spelled(forest)) == str(schedule)
    assert space.sample(3, seed=1) == space.sample(3, seed=1)


def test_what_is_no_member() -> None:
    space = forests("MTTKRP3")
    pairs = next(iter(space))
    assert pairs in space
    assert "" not in space  # one nest around all three factors
    assert "" in forests("MTTKRP3", PARTIAL)
    assert f"{pairs}; parallelize(i, cpu_thread, no_races)" not in space
    assert "reorder(nothing)" not in space
    assert 3 not in space


@pytest.mark.parametrize("expression", ["TTMc3", "SDDMM-SpMM"])
@pytest.mark.parametrize("rules", [ForestRules(), ForestRules(memory_depth=1), ForestRules(PathRules(reducing=True), derived=False)])
def test_membership_is_that_of_the_list(expression: str, rules: ForestRules) -> None:
    """Of all partially fused forests those of the rules are admitted, without counting."""
    space = forests(expression, rules)
    listed = set(space.forests())
    assert len(listed) == space.count()
    every = forests(expression, ForestRules(fused=False, derived=False))
    assert {forest for forest in every.sample_forests(300, seed=3) if space.peeling.admits(forest)} <= listed
    assert all(space.peeling.admits(forest) for forest in space.sample_forests(100, seed=4))


def test_storage_orders_that_no_loops_keep() -> None:
    """One operand stores i before k, the other k before i: no term can read both."""
    assignment = parse("A(i,l) = B(i,k) * C(k,i) * D(i,l)")
    space = Forests(assignment, formats_of(assignment, {"B": "csr", "C": "csr"}))
    assert space.count() == 0
    assert space.sample(3) == list(space) == []


def test_a_tensor_train_is_counted_at_once() -> None:
    space = forests(TTTC6)
    assert space.count() == 41_691_726_547_290_146_880
    forest = space.sample_forests(1, seed=1)[0]
    assert space.find(space.spelled(forest)) == forest


def test_partial_fusion_holds_full_fusion() -> None:
    partial = forests("TTMc3", ForestRules(fused=False))
    assert all(partial.rank(forest) is not None for forest in forests("TTMc3").forests())
    assert partial.count() == len(set(partial.forests())) > forests("TTMc3").count()


def test_memory_depth_bounds_every_buffer() -> None:
    every = Counter(forest.memory_depth for forest in forests("SDDMM-SpMM").forests())
    for most in range(4):
        assert forests("SDDMM-SpMM", ForestRules(memory_depth=most)).count() == sum(every[depth] for depth in range(most + 1))


def test_uniform_draws() -> None:
    space = forests("MTTKRP3")
    drawn = Counter(space.rank(forest) for forest in space.sample_forests(4800, seed=2))
    assert len(drawn) == 48
    assert max(drawn.values()) < 150 < 2 * min(drawn.values()) + 60


@pytest.mark.parametrize("rules", [ForestRules(), PARTIAL], ids=["fused", "partial"])
@pytest.mark.parametrize("expression", [*SPTTN, "S(i,j,m) = T(i,j,k) * C(k,l) * D(l,m)", "A(j,r) = T(i,j,k) * B(i,r) * C(k,r)"])
def test_samples_compile_and_are_right(expression: str, rules: ForestRules, tmp_path: Path) -> None:
    space = forests(expression, rules)
    assert not wrong(expression, space.sample(12, seed=9), tmp_path, "forests")


@pytest.mark.parametrize("name", ["TTMc3", "MTTKRP4", "TTTP3", "SDDMM-SpMM"])
def test_samples_over_stored_fibres_are_right(name: str, tmp_path: Path) -> None:
    """Their texts lead back to them, whatever the loops over positions are called; the sparse result of TTTP has the fibres' pattern."""
    spaces = [space for space in forests(name).over_fibres if space.count()]
    assert spaces
    for space in spaces:
        drawn = space.sample_forests(3, seed=2)
        schedules = list(map(space.spelled, drawn))
        assert [space.find(str(one)) for one in schedules] == drawn
        assert all("positions" in str(one) for one in schedules)
        assert all(forests(name).find(one) is None for one in schedules)
        assert not wrong(name, schedules, tmp_path, f"over{space.contraction.names(space.contraction.fibres.coordinates)}")


def test_a_loop_over_positions_may_have_any_name() -> None:
    _, pairs, _ = forests("TTMc3").over_fibres
    text = "collapse(i, j, f); pos(f, {0}, T(i,j,k)); precompute(T(i,j,k) * V(k,s), [{0}, s], [{0}, s], w); workspace(w, positions)"
    assert pairs.find(text.format("p")) == pairs.find(text.format("fibre")) is not None
    assert pairs.find("collapse(i, j, f); precompute(T(i,j,k) * V(k,s), [f, s], [f, s], w)") is None


def test_stored_fibres_that_loops_cannot_go_through() -> None:
    """Dense levels are no fibres, COO has no position for a row, and operands that meet go by coordinates."""

    def levels(text: str, **formats: str) -> list[tuple[str, ...]]:
        assignment = parse(text)
        space = Forests(assignment, formats_of(assignment, formats))
        return [one.contraction.names(one.contraction.fibres.coordinates) for one in space.over_fibres if one.contraction.fibres]

    matrices = "A(i,l) = T(i,j) * C(i,k) * D(j,k) * E(j,l)"
    assert levels(matrices, T="csr") == levels(matrices, T="csc") == levels(matrices, T="coo") == [("i", "j")]
    assert levels(matrices, T="dcsc") == [("j",), ("i", "j")]
    assert levels("a(l) = T(i,j) * S(j,l) * c(i)", T="dcsr", S="dcsr") == [("i",)]


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, (count, *_) in COUNTS.items() if count <= 5_000])
def test_all_forests_are_right(name: str, tmp_path: Path) -> None:
    every = list(forests(name))
    for start in range(0, len(every), 500):
        assert not wrong(name, every[start : start + 500], tmp_path, f"forests{start}")


@pytest.mark.parametrize("expression", NO_FORESTS)
def test_what_has_no_forests(expression: str) -> None:
    with pytest.raises(ExpressionError, match="loop nest forests"):
        forests(expression)


def test_a_buffer_that_stands_still_where_it_is_read_has_its_last_mode_along_the_loop_that_fills_it() -> None:
    """With l outermost in the reading loops the buffer had l first, so that the vectors of the filling loop stored to one place each."""
    space = forests("SpTTM-TTM-TTM", PARTIAL)
    found = space.find("precompute(T(i,j,k) * C(i,l), [l, j, k], [l, j, k], w); reorder([1], l, j, m, k, n)")
    assert found is not None
    assert "[j, k, l], [j, k, l], w)" in str(space.spelled(found))
    again = space.find(str(space.spelled(found)))
    assert again == found
