"""Concordant programs: conversions, workspace kinds, workspaces for results; the result stays right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from space_samples import KERNELS, SUMS, evaluate, random_operands, reference, sample_space
from sparsetune.compiler.concrete.nodes import Program, Workspace, reads
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.parser import parse_expression
from sparsetune.compiler.space.protocolized import parse_protocolized, show_protocolized
from sparsetune.compiler.space.reformat import concordant_format, lowerable, reformatted, required_conversions, workspace_kind
from sparsetune.compiler.space.space import PIGEON, Rules

DCSR = {name: Format("cc") for name in "ABC"}


def test_gustavson_gets_a_workspace_over_the_last_mode_only():
    # Section 6.8: the last mode of A is inserted, i is outermost, so the workspace is a vector.
    program = Program(parse_protocolized("forall(i,k,j) A(i:append,j:insert) += B(i:step,k:step) * C(k:step,j:step)"))
    found = reformatted(program, DCSR)
    assert show_protocolized(found.statement) == (
        "forall(i) (forall(j) A(i:append,j:append) = w(j:step)"
        " where forall(k) forall(j) w(j:insert) += B(i:step,k:step) * C(k:step,j:step))"
    )
    assert found.workspaces == (Workspace("w", ("j",), "list"),)
    assert found.conversions == ()


def test_outer_products_get_a_workspace_over_both_modes():
    program = Program(parse_protocolized("forall(k,i,j) A(i:insert,j:insert) += B(i:step,k:step) * C(k:step,j:step)"))
    found = reformatted(program, DCSR)
    assert found.workspaces == (Workspace("w", ("i", "j"), "hashed"),)
    assert found.conversions == ((parse_expression("B(i,k)"), Format("compressed, compressed", (1, 0))),)
    assert "A(i:append,j:append) = w(i:step,j:step)" in show_protocolized(found.statement)


def test_a_result_in_order_needs_no_workspace():
    program = Program(parse_protocolized("forall(i,j,k) A(i:append,j:append) += B(i:step,k:step) * C(k:locate,j:locate)"))
    found = reformatted(program, DCSR)
    assert found.statement == program.statement
    assert found.workspaces == ()
    assert found.conversions == ((parse_expression("C(k,j)"), Format("dense, hashed", (1, 0))),)
    dense = {**DCSR, "A": Format("dd")}
    scattered = Program(parse_protocolized("forall(k,i,j) A(i:insert,j:insert) += B(i:step,k:step) * C(k:step,j:step)"))
    assert reformatted(scattered, dense).statement == scattered.statement


def test_writers_one_after_another_are_gathered():
    program = Program(parse_protocolized("forall(i) {forall(j) A(i,j) += B(i,j); forall(j) A(i,j) += C(i,j)}"))
    found = reformatted(program, DCSR)
    assert show_protocolized(found.statement) == (
        "forall(i) (forall(j) A(i,j) = w(j) where {forall(j) w(j) += B(i,j); forall(j) w(j) += C(i,j)})"
    )
    inside = Program(parse_protocolized("forall(i,j) {A(i,j) += B(i,j); A(i,j) += C(i,j)}"))
    assert reformatted(inside, DCSR).workspaces == (Workspace("t", (), "scalar"),)


@pytest.mark.parametrize(
    ("protocols", "form", "loops", "expected"),
    [
        (("step", "step"), "cc", "ik", "cc"),
        (("step", "step"), "ds", "ik", "ds"),  # dense, but the outermost loop: its dimension is all it costs
        (("step", "step"), "ds", "jik", "cc"),
        (("locate", "step"), "ds", "jik", "ds"),
        (("locate", "step"), "cc", "ik", "ds"),
        (("step", "locate"), "ds", "ik", "ch"),
        (("locate", "locate"), "dd", "ik", "dd"),
        (("step", "locate"), "ds", "ki", "ds; 1, 0"),
    ],
)
def test_formats_that_suit_protocols(protocols, form, loops, expected):
    statement = parse_protocolized(f"a = B(i:{protocols[0]},k:{protocols[1]})")
    (access,) = reads(statement)
    kinds, _, order = expected.partition(";")
    wanted = Format(kinds, tuple(map(int, order.split(","))) if order else None)
    assert concordant_format(access, Format(form), loops) == wanted


@pytest.mark.parametrize(
    ("indices", "read", "kind"),
    [((), "w", "scalar"), (("j",), "w(j:step)", "list"), (("j",), "w(j:locate)", "dense"), (("i", "j"), "w(i:step,j:locate)", "hashed")],
)
def test_kinds_of_workspaces_serve_their_protocols(indices, read, kind):
    statement = parse_protocolized(f"forall(i,j) A(i,j) = {read} * B(i,j)")
    assert workspace_kind(Workspace("w", indices), statement) == kind
    assert workspace_kind(Workspace("w", indices), statement, sparse=True) == ("list" if kind == "dense" else kind)


def test_only_workspaces_that_are_looked_up_keep_protocols():
    space = sample_space("SpGEMM2", PIGEON)
    stepped = "forall(i) (forall(j,l) A(i,j) += w(l:%s) * D(l:step,j:step) where forall(k,l) w(l) += B(i:step,k:step) * C(k:step,l:step))"
    for protocol, kept in (("step", ()), ("locate", ("locate",))):
        program = Program(parse_protocolized(stepped % protocol), (Workspace("w", ("l",)),))
        found = lowerable(program, space.formats)
        assert {access.tensor: access.protocols for access in reads(found.statement)} == {"w": kept, "B": (), "C": (), "D": ()}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*KERNELS, *SUMS]), st.booleans(), st.integers(0, 10**6))
def test_reformatted_programs_compute_the_same(expression, paper, seed):
    space = sample_space(expression, PIGEON if paper else Rules())
    (schedule,) = space.sample(1, seed)
    found = lowerable(schedule.program, space.formats)
    operands = random_operands(space.assignment, 2)
    result = evaluate(found, space.assignment.target, operands, 2)
    np.testing.assert_allclose(result, reference(space.assignment, operands, 2), err_msg=show_protocolized(found.statement))
    for access in reads(found.statement):
        assert set(access.protocols) <= {"locate"}
        assert not access.protocols or access.tensor in {workspace.name for workspace in found.workspaces}


@pytest.mark.parametrize("expression", KERNELS)
def test_converted_operands_suit(expression):
    space = sample_space(expression, Rules())
    for schedule in space.sample(40, seed=5):
        needed = required_conversions(schedule.program.statement, space.formats)
        converted = {**space.formats, **{access.tensor: form for access, form in needed.items()}}
        assert required_conversions(schedule.program.statement, converted) == {}


def test_reads_that_are_written_alike_share_a_conversion():
    statement = parse_protocolized("forall(k,i) a(i:insert) += B(i:step,k:step) * c(k) + B(i:locate,k:locate)")
    (form,) = required_conversions(statement, {"B": Format("ds")}).values()
    assert form == Format("cc", (1, 0))
