"""Containment against brute force, and against an exhaustive test on canonical databases."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query_samples import answers, canonical_database, clause, contained_on, typed
from sparsetune.tuner.asymptotic.homomorphism import find_homomorphism, implies
from sparsetune.tuner.asymptotic.normal_form import canonical, core, renamed, shifted
from sparsetune.tuner.asymptotic.premises import Premises, Rule
from sparsetune.tuner.asymptotic.query import Clause, Query, Variable

# Every predicate's modes have dimensions; a variable may only stand where its dimension does.
PREDICATES = {"B": ("I", "I"), "C": ("I", "J"), "d": ("J",)}
NAMES = {"I": ("i", "i2"), "J": ("j", "j2")}
HEADS = [Variable(name, dimension) for dimension, names in NAMES.items() for name in names]
EXTENT = 2


@st.composite
def queries(draw: st.DrawFn) -> Query:
    head = draw(st.lists(st.sampled_from(HEADS), unique=True, max_size=3))
    hidden = {"I": (0, 1), "J": (2, 3)}
    clauses = []
    for _ in range(draw(st.integers(0, 4))):
        predicate = draw(st.sampled_from(sorted(PREDICATES)))
        choices = [[*(one.name for one in head if one.dimension == dimension), *hidden[dimension]] for dimension in PREDICATES[predicate]]
        clauses.append(Clause(predicate, tuple(draw(st.sampled_from(options)) for options in choices)))
    return Query(tuple(head), frozenset(clauses))


@st.composite
def relations(draw: st.DrawFn) -> dict[str, frozenset[tuple]]:
    found = {}
    for predicate, modes in PREDICATES.items():
        coordinates = st.tuples(*(st.integers(0, EXTENT - 1) for _ in modes))
        found[predicate] = draw(st.frozensets(coordinates, max_size=EXTENT ** len(modes)))
    return found


@settings(max_examples=250, deadline=None)
@given(queries(), queries(), relations())
def test_a_claimed_containment_never_fails(container, contained, entries):
    if find_homomorphism(container, contained) is not None:
        assert contained_on(contained, container, entries, range(EXTENT))


@settings(max_examples=250, deadline=None)
@given(queries(), queries())
def test_verdict_equals_that_of_the_canonical_database(container, contained):
    # Exhaustive: the contained query's own tuple, on its own clauses as the input, is there or not there.
    entries, values = canonical_database(contained)
    own = tuple(f"<{name}>" for name in contained.names)
    assert own in answers(contained, entries, values)
    inside = any(
        _covers(typed(container, answer), typed(contained, own)) for answer in answers(container, entries, values)
    )
    assert (find_homomorphism(container, contained) is not None) == inside


def _covers(whole: tuple, part: tuple) -> bool:
    rest = list(whole)
    for item in part:
        if item not in rest:
            return False
        rest.remove(item)
    return True


@settings(max_examples=120, deadline=None)
@given(queries(), queries(), relations())
def test_assumptions_only_add_what_they_say(container, contained, entries):
    facts = (frozenset([clause("B", 0, 1)]), frozenset([clause("d", 0)]))
    premises = Premises(facts=facts, rules=(Rule(frozenset([clause("B", "x", "y")]), clause("B", "y", "x")),))
    symmetric = {**entries, "B": entries["B"] | {(second, first) for first, second in entries["B"]}}
    if not symmetric["B"] or not symmetric["d"]:
        return
    if find_homomorphism(container, premises.assuming(contained)) is not None:
        assert contained_on(contained, container, symmetric, range(EXTENT))


@pytest.mark.parametrize(
    ("container", "contained", "expected"),
    [
        # {[j,i] | exists k A(i,j,k)} is within {[i,j,k] | A(i,j,k)}: section 5.1
        (Query((Variable("i", "I"), Variable("j", "J"), Variable("k", "K")), frozenset([clause("A", "i", "j", "k")])),
         Query((Variable("j", "J"), Variable("i", "I")), frozenset([clause("A", "i", "j", 0)])), True),
        # a whole dimension is not within the rows of a matrix
        (Query((Variable("i", "I"), Variable("j", "J")), frozenset([clause("C", "i", "j")])), Query((Variable("i", "I"),)), False),
        # dimensions are respected, names are not
        (Query((Variable("x", "I"),)), Query((Variable("i", "I"),)), True),
        (Query((Variable("x", "J"),)), Query((Variable("i", "I"),)), False),
        # two heads of one dimension need two
        (Query((Variable("x", "I"),)), Query((Variable("i", "I"), Variable("i2", "I"))), False),
        # other resources are never compared
        (Query((Variable("x", "I"),), resource="memory"), Query((Variable("x", "I"),)), False),
    ],
)
def test_heads(container, contained, expected):
    assert (find_homomorphism(container, contained) is not None) == expected


@settings(max_examples=120, deadline=None)
@given(queries())
def test_the_core_is_equivalent_and_minimal(query):
    small = core(query.clauses)
    assert small <= query.clauses
    assert implies(query.clauses, small)
    assert implies(small, query.clauses)
    assert all(not implies(small - {one}, small) for one in small)


@settings(max_examples=120, deadline=None)
@given(queries(), st.permutations(range(4)), st.integers(0, 5))
def test_canonical_numbers_do_not_depend_on_the_given_ones(query, order, by):
    other = shifted(renamed(query.clauses, dict(enumerate(order))), by)
    assert canonical(query.clauses) == canonical(other)
    assert implies(canonical(query.clauses), query.clauses)


def test_the_core_with_assumptions():
    rule = Premises(rules=(Rule(frozenset([clause("B", "x", "y")]), clause("C", "x", "y")),))
    both = frozenset([clause("B", "i", 0), clause("C", "i", 0)])
    assert core(both, rule.saturated) == {clause("B", "i", 0)}
    assert core(both) == both


def test_parts_that_are_assumed_anyway_are_left_out():
    premises = Premises(facts=(frozenset([clause("B", 0, 1)]),))
    chain = frozenset([clause("B", 0, 1), clause("B", 1, 2)])
    assert premises.unassumed(frozenset([clause("B", 0, 1), clause("C", "i", 2)])) == {clause("C", "i", 2)}
    assert premises.unassumed(chain) == chain  # a path of two is more than an entry
    assert premises.unassumed(frozenset([clause("B", 0, 0)])) == {clause("B", 0, 0)}  # so is an entry on the diagonal
