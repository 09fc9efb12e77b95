"""The space of whole schedules: the paper's counts, no duplicates, membership, and the right result for every schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from space_samples import KERNELS, MIN_DEPTH_COUNTS, SUMS, evaluate, random_operands, reference, sample_space
from sparsetune.compiler.concrete.nodes import Forall, Program, transform
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.space.protocolized import parse_protocolized, show_protocolized
from sparsetune.compiler.space.space import PIGEON, Rules

EXTENT = 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_min_depth_counts_of_figure_6(kernel):
    assert sample_space(kernel, PIGEON).count == MIN_DEPTH_COUNTS[kernel]


@pytest.mark.parametrize("kernel", ["SpMV", "SpMV2", "SpGEMM", "SpGEMM2", "SpGEMMH"])
def test_listing_agrees_with_counting(kernel):
    space = sample_space(kernel, PIGEON)
    assert sum(1 for _ in space) == MIN_DEPTH_COUNTS[kernel]


@pytest.mark.nightly
def test_listing_the_largest_space():
    assert sum(1 for _ in sample_space("SpMTTKRP", PIGEON)) == MIN_DEPTH_COUNTS["SpMTTKRP"]


def test_spgemm2_by_hand():
    # The issue's own derivation: for w = B*C the loops outside may be {}, {i}, {l}, {i,l}; w = C*D is its mirror image.
    programs = list(sample_space("SpGEMM2", Rules(depth="minimum", protocols=False, paper_operators=True)))
    modes = [len(indices) for schedule in programs for indices in schedule.layout.workspaces.values()]
    assert [modes.count(count) for count in (2, 1, 0)] == [2 * 36, 2 * 8, 2 * 2]


@pytest.mark.parametrize("expression", [*KERNELS, *SUMS])
def test_programs_are_all_different_and_recognised(expression):
    space = sample_space(expression, Rules(protocols=False))
    count = space.count
    schedules = list(space) if count <= 300 else space.sample(150, seed=1)
    texts = {show_protocolized(schedule.program.statement) for schedule in schedules}
    ranks = [space.rank(schedule) for schedule in schedules]
    if count <= 300:
        assert len(texts) == count
        assert ranks == list(range(count))
    assert [show_protocolized(space.member(rank).program.statement) for rank in ranks if rank is not None] == [
        show_protocolized(schedule.program.statement) for schedule in schedules
    ]


@pytest.mark.parametrize("expression", ["SpMV", "SpGEMM", "SpMV2", "A(i,j) = B(i,j) + C(i,j)"])
def test_protocols_are_part_of_schedules(expression):
    space = sample_space(expression, Rules(depth="minimum"))
    texts = [show_protocolized(schedule.program.statement) for schedule in space]
    assert len(set(texts)) == len(texts) == space.count
    assert all(parse_protocolized(text) == schedule.program.statement for text, schedule in zip(texts, space, strict=True))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*KERNELS, *SUMS]), st.integers(0, 10**6))
def test_every_schedule_computes_the_expression(expression, seed):
    for rules in (Rules(), PIGEON):
        space = sample_space(expression, rules)
        operands = random_operands(space.assignment, EXTENT)
        (schedule,) = space.sample(1, seed)
        found = evaluate(schedule.program, space.assignment.target, operands, EXTENT)
        text = show_protocolized(schedule.program.statement)
        np.testing.assert_allclose(found, reference(space.assignment, operands, EXTENT), err_msg=text)


def test_sampling_is_uniform_and_seeded():
    space = sample_space("SpGEMM", PIGEON)
    ranks = [space.rank(schedule) for schedule in space.sample(4800, seed=7)]
    counts = np.bincount(np.array(ranks, dtype=int), minlength=96)
    assert counts.min() > 20
    assert counts.max() < 90
    assert ranks == [space.rank(schedule) for schedule in space.sample(4800, seed=7)]


def test_membership_ignores_names_and_orders_of_operands():
    space = sample_space("SpMV2", PIGEON)
    text = (
        "(forall(i) forall(j) a(i:append) += tmp(j:step) * B(i:step,j:locate)"
        " where forall(k) forall(j) tmp(j:insert) += d(k:locate) * C(j:step,k:step))"
    )
    program = Program(parse_protocolized(text))
    assert program in space
    found = space.find(program)
    assert found is not None
    assert "w(j:insert) += C(j:step,k:step) * d(k:locate)" in show_protocolized(found.program.statement)


@pytest.mark.parametrize(
    "text",
    [
        "forall(i) forall(j) forall(k) a(i:append) += B(i:step,j:step) * C(j:step,k:step) * d(k:locate)",  # too deep
        "(forall(i) forall(j) a(i) += B(i,j) * w(j) where forall(k) forall(j) w(j) += C(j,k) * d(k))",  # no protocols
        "(forall(i,j) a(i:append) += B(i:step,j:step) * w(j:step) where forall(k,j) w(j:insert) = C(j:step,k:step) * d(k:locate))",
        "forall(i) forall(j) a(i:append) += B(i:step,j:step) * d(j:locate)",
        "(forall(i,j) a(i:append) += B(i:step,j:step) * w(j:step) * w(j:step) where forall(j) w(j:append) += d(j:locate))",
    ],
)
def test_what_is_not_in_the_space(text):
    space = sample_space("SpMV2", PIGEON)
    assert Program(parse_protocolized(text)) not in space
    assert "not a schedule" not in space


def test_depth_and_workspace_modes_are_switches():
    everything = sample_space("SpMV2", Rules())
    shallow = sample_space("SpMV2", Rules(depth="minimum"))
    two = sample_space("SpMV2", Rules(depth=2))
    assert shallow.depth == 2
    assert shallow.count == two.count < everything.count
    narrow = sample_space("SpGEMM2", Rules(workspace_modes=1))
    assert all(len(indices) <= 1 for schedule in narrow.sample(50, 2) for indices in schedule.layout.workspaces.values())
    assert sample_space("SpMV2", Rules(depth=1)).count == 0
    assert sample_space("SpMV2", Rules(depth=1)).sample(3) == []


def test_nesting_of_where_statements_without_loops_between_is_one_schedule():
    # a(i) = ((B c) d) e with one loop each: w2 reads w1, both before the consumer, or w1 inside w2's producer.
    space = sample_space("a = B(i,j) * c(j) * d(i)", Rules(protocols=False))
    texts = [show_protocolized(schedule.program.statement) for schedule in space]
    assert len(texts) == len(set(texts))
    chained = sample_space("a = b(i) * c(i) * d(i) * e(i)", Rules(protocols=False))
    outer = "((forall(i) a += w2(i) * e(i) where forall(i) w2(i) = w(i) * d(i)) where forall(i) w(i) = b(i) * c(i))"
    inner = "(forall(i) a += w2(i) * e(i) where (forall(i) w2(i) = w(i) * d(i) where forall(i) w(i) = b(i) * c(i)))"
    ranks = {chained.rank(Program(parse_protocolized(text))) for text in (outer, inner)}
    assert len(ranks) == 1
    assert None not in ranks


def test_names_of_workspaces_avoid_those_of_the_expression():
    space = sample_space("w(i) = t(i,j) * w2(j,t2) * x(t2)", Rules(depth="minimum"))
    for schedule in space.sample(20, 3):
        names = {workspace.name for workspace in schedule.program.workspaces}
        assert names.isdisjoint({"w", "t", "w2", "x", "i", "j", "t2"})


def test_a_dense_expression_has_no_protocols_to_choose():
    space = sample_space("a(i) = b(i) * c(i)", Rules())
    assert space.count == 1
    (schedule,) = space
    assert all(set(access.protocols) == {"locate"} for access in accesses(schedule.program.statement.children[0].value))


def test_foralls_keep_their_tags_when_rebuilt():
    (schedule,) = sample_space("a(i) = b(i)", Rules())
    rebuilt = transform(schedule.program.statement, lambda node: node if isinstance(node, Forall) else None)
    assert rebuilt == schedule.program.statement
