"""Counting, listing, unranking and ranking of trees agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.space.grammar import Alternative, Derivation, Grammar, subsets


def binary_trees(size: int) -> list[Alternative[int]]:
    """Trees with ``size`` inner nodes; every leaf has two kinds."""
    if size == 0:
        return [Alternative("leaf", (), 2)]
    return [Alternative((left, size - 1 - left), (left, size - 1 - left)) for left in range(size)]


def test_counts_are_catalan_numbers_times_choices():
    grammar = Grammar(binary_trees)
    assert [grammar.count(size) for size in range(6)] == [2, 4, 16, 80, 448, 2688]


@given(st.integers(0, 4))
def test_ranks_are_places_in_the_listing(size):
    grammar = Grammar(binary_trees)
    listed = list(grammar.derivations(size))
    assert len(listed) == len(set(listed)) == grammar.count(size)
    assert [grammar.derivation(size, rank) for rank in range(len(listed))] == listed
    assert [grammar.rank(size, tree) for tree in listed] == list(range(len(listed)))


def test_what_is_not_in_the_set_has_no_rank():
    grammar = Grammar(binary_trees)
    leaf = Derivation("leaf", 0, ())
    assert grammar.rank(1, leaf) is None
    assert grammar.rank(0, Derivation("leaf", 2, ())) is None
    assert grammar.rank(1, Derivation((0, 0), 0, (leaf,))) is None
    assert grammar.rank(1, Derivation((0, 0), 0, (leaf, Derivation("other", 0, ())))) is None


@pytest.mark.parametrize("rank", [-1, 4])
def test_ranks_outside_are_refused(rank):
    with pytest.raises(IndexError):
        Grammar(binary_trees).derivation(1, rank)


def test_alternatives_that_lead_nowhere_are_dropped():
    dead_end = Grammar(lambda symbol: [Alternative("on", (symbol + 1,)), Alternative("end")] if symbol < 3 else [])
    assert dead_end.count(0) == 3
    assert [option.label for option, _ in dead_end.alternatives(2)] == ["end"]


def test_subsets_count_in_binary():
    assert list(subsets("ab")) == [(), ("a",), ("b",), ("a", "b")]
