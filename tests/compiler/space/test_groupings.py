"""Forms and where groupings."""

from __future__ import annotations

import pytest
from space_samples import csf_formats
from sparsetune.compiler.notation.parser import parse, parse_expression
from sparsetune.compiler.space.forms import canonical_text, expansions, rewritings
from sparsetune.compiler.space.groupings import groupings
from sparsetune.compiler.space.space import ScheduleSpace
from sparsetune.compiler.space.statements import Statements


def grouping_texts(expression: str) -> set[tuple[str, ...]]:
    assignment = parse(expression)
    space = ScheduleSpace(assignment, csf_formats(assignment))
    return {space.nestings.table.key(grouping) for grouping in space.groupings}


@pytest.mark.parametrize(("factors", "count"), [(1, 1), (2, 1), (3, 4), (4, 26), (5, 236)])
def test_ways_to_bracket_a_product(factors, count):
    # Schroeder's fourth problem: total partitions of a set. The last index keeps every factor distinct.
    product = " * ".join(f"B{number}(i,j{number})" for number in range(factors))
    assert len(grouping_texts(f"A(i) = {product}")) == count


def test_sums_distribute_at_every_subset_of_places():
    found = {canonical_text(value) for value in expansions(parse_expression("a(i) * (b(i) + c(i)) * (d(i) + e(i))"))}
    assert len(found) == 8  # nothing; one sum, and then the other in neither or one of the two addends; everything


def test_expansion_keeps_signs_and_quotients():
    found = {canonical_text(value) for value in expansions(parse_expression("-(a(i) - b(i)) / c(i)"))}
    assert "((-a(i) / c(i)) + (b(i) / c(i)))" in found


def test_addends_are_joined_or_accumulate_apart():
    forms = rewritings(parse("A(i,j) = B(i,k) * C(k,j) + D(i,j)"))
    assert [len(form.addends) for form in forms] == [2, 1]
    forms = rewritings(parse("a(i) = b(i) + c(i)"))
    assert [len(form.addends) for form in forms] == [1, 2]


def test_an_inner_sum_is_a_producer_of_its_own():
    assignment = parse("a(i) = b(i) + C(i,j) * d(j)")
    joined = rewritings(assignment)[-1]
    table = Statements(assignment.target, ("i", "j"))
    (only,) = groupings(table, joined)
    producer, consumer = (table[number] for number in only.statements)
    assert (producer.operator, producer.carries, producer.summed) == ("+=", {"i"}, {"j"})
    assert (consumer.root, consumer.needs) == (True, {"i"})


def test_operators_of_workspaces_follow_from_what_they_sum():
    table = Statements(parse("A(i,j) = B(i,k)").target, ("i", "j", "k"))
    assignment = parse("A(i,j) = B(i,k) * C(k,j) * D(k,j)")
    (form,) = rewritings(assignment)
    both = [table[number].operator for found in groupings(table, form, both_operators=True) for number in found.statements[:-1]]
    assert sorted(both) == ["+=", "+=", "+=", "=", "=", "="]
    own = [grouping for grouping in groupings(table, form) if len(grouping.statements) > 1]
    assert all(table[grouping.statements[0]].operator == "=" for grouping in own)  # every index is used outside


def test_equal_parts_of_one_grouping_are_different_statements():
    assignment = parse("a = B(i,j) * c(j) * B(i,j) * c(j)")
    space = ScheduleSpace(assignment, csf_formats(assignment))
    assert any(len(grouping.statements) == 3 for grouping in space.groupings)
    assert all(len(set(grouping.statements)) == len(grouping.statements) for grouping in space.groupings)


def test_constants_stay_where_they_are():
    assert grouping_texts("a = 2 * B(i,j) * c(j)") == {("(2 * B(i,j) * c(j))",)}


def test_denominators_are_never_summed_early():
    assignment = parse("a(i) = B(i,j) / (c(j) + D(i,k))")
    space = ScheduleSpace(assignment, csf_formats(assignment))
    statements = [space.nestings.table[number] for grouping in space.groupings for number in grouping.statements]
    assert {statement.operator for statement in statements if not statement.root} == {"="}
