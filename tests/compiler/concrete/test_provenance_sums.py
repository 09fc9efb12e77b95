"""Provenance of sums of indices and of their terms."""

from __future__ import annotations

from itertools import product

from csr_integers import COLUMNS, ROWS, CsrIntegers
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.concrete.arithmetic import INTEGERS
from sparsetune.compiler.concrete.provenance import Provenance, Recovery
from sparsetune.compiler.concrete.relations import (
    SplitRelation,
    SumRelation,
)
from sparsetune.compiler.notation.nodes import Affine

SUMS = st.builds(
    lambda factors, constant: Affine(tuple(zip("ijk", factors, strict=False)), constant),
    st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=3), st.integers(-4, 4),
)  # fmt: skip


@given(subscript=SUMS, values=st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1), st.integers(0, 6)))
def test_sums_and_their_terms_follow_from_one_another(subscript: Affine, values: tuple[int, ...]) -> None:
    known = dict(zip("ijk", values, strict=True))
    coordinate = subscript.constant + sum(factor * known[index] for index, factor in subscript.terms)
    relation = SumRelation(subscript)
    whole = Recovery(Provenance([relation]), CsrIntegers(), {index: known[index] for index in subscript.indices})
    assert whole.value(relation.coordinate) == coordinate
    for index in subscript.indices:
        others = {name: known[name] for name in subscript.indices if name != index}
        assert Recovery(Provenance([relation]), CsrIntegers(), {**others, relation.coordinate: coordinate}).value(index) == known[index]


@given(subscript=SUMS)
def test_sums_range_from_the_least_coordinate_to_the_greatest(subscript: Affine) -> None:
    machine, relation = CsrIntegers(), SumRelation(subscript)
    graph = Provenance([relation])
    spans = [[factor * value for value in range(machine.extents[index])] for index, factor in subscript.terms]
    reached = [subscript.constant + sum(parts) for parts in product(*spans)]
    assert Recovery(graph, machine, {}).bounds(relation.coordinate) == (min(reached), max(reached) + 1)
    assert graph.constant_extent(relation.coordinate, machine.extents) == max(reached) - min(reached) + 1


@given(factor=st.integers(1, 8), inner=st.booleans())
def test_terms_of_sums_may_be_cut_into_tiles(factor: int, inner: bool) -> None:
    graph = Provenance([SumRelation(Affine((("i", 1), ("k", -2)), 12)), SplitRelation("i", "i0", "i1", factor, inner)])
    assert graph.leaves("i") == ("i0", "i1")  # loops go over the terms
    assert graph.known_after(("i0", "k", "i1"))["i - 2*k + 12"] == 2  # the resolving edge
    assert graph.guards(("i0", "k", "i1")) == {"i1": ("i",)}
    found = {
        (recovery.value("i"), recovery.value("k"), recovery.value("i - 2*k + 12"))
        for i0, i1, k in product(range(ROWS), range(ROWS), range(7))
        for recovery in [Recovery(graph, CsrIntegers(), {"i0": i0, "i1": i1, "k": k})]
    }
    assert {(i, k, i - 2 * k + 12) for i, k in product(range(ROWS), range(7))} <= found


@given(subscript=SUMS.filter(lambda one: one.terms[0][1] > 0), stored=st.integers(-20, 30))
def test_reducing_loops_go_to_where_a_subsection_reaches_what_is_stored(subscript: Affine, stored: int) -> None:
    extents = CsrIntegers().extents
    (_, factor), *rest = subscript.terms
    left = SumRelation(subscript).known(INTEGERS, extents.__getitem__, (), {name: extents[name] for name, _ in rest})
    spans = [[one * value for value in range(extents[name])] for name, one in rest]
    reached = [subscript.constant + sum(parts) for parts in product(*spans)]
    assert (left.least, left.most, left.reach) == (min(reached), max(reached), max(reached) - min(reached))
    first = next(value for value in range(-100, 100) if factor * value + max(reached) >= stored)
    assert left.first(stored, factor) == first
    at = left.reduced(first, factor)
    assert (at.least, at.most) == (min(reached) + factor * first, max(reached) + factor * first)
    assert left.resolved(left.base + factor * 5, factor) == 5
