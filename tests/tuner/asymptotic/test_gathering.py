"""The workspace of a sparse result that is written out of order: what the model charges is what lowering inserts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from space_samples import KERNELS, SUMS, sample_space
from sparsetune.compiler.concrete.assembled import assembled_format, loops_to
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.format import Format
from sparsetune.compiler.lowering.collect import collected
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.protocolized import parse_protocolized
from sparsetune.compiler.space.space import Rules
from sparsetune.tuner.asymptotic.gathering import gathering_of, goes_further


@settings(max_examples=120, deadline=None)
@given(st.sampled_from([*KERNELS, *SUMS]), st.integers(0, 10**6))
def test_the_model_charges_what_is_inserted(expression, seed):
    space = sample_space(expression, Rules(protocols=False))
    (schedule,) = space.sample(1, seed)
    target = space.assignment.target
    gathering = gathering_of(target, space.formats[target.tensor])
    form = space.formats[target.tensor]
    plain = Program(schedule.program.statement, schedule.program.workspaces)
    made = plain if form.is_dense else collected(plain, target, form, lambda access: space.formats.get(access.tensor))
    inserted = made.workspaces[len(plain.workspaces) :]
    modes = frozenset(name for workspace in inserted for name in workspace.indices)
    claimed = gathering.workspace(gathering.of_statement(plain.statement)) if gathering else frozenset()
    if assembled_format(target, form, loops_to(plain.statement, target.tensor)).order == form.order:
        assert claimed == modes
    else:  # written in the order of the loops, and brought into the one asked for as a whole: that takes as much as was claimed
        assert claimed
        assert modes <= claimed


@pytest.mark.parametrize(
    ("form", "text", "modes"),
    [
        ("cc", "forall(i,j,k) A(i,j) += B(i,j,k)", ""),
        ("cc", "forall(i,k,j) A(i,j) += B(i,j,k)", "j"),
        ("cc", "forall(k,i,j) A(i,j) += B(i,j,k)", "ij"),
        ("cd", "forall(i,k,j) A(i,j) += B(i,j,k)", ""),
        ("cd", "forall(k,i,j) A(i,j) += B(i,j,k)", "ij"),
        ("dc; 1, 0", "forall(j,i,k) A(i,j) += B(i,j,k)", ""),
        ("cc", "forall(i) {forall(j) A(i,j) += B(i,j,j); forall(j) A(i,j) += B(i,i,j)}", "j"),
    ],
)
def test_modes_below_the_first_loop_out_of_order(form, text, modes):
    kinds, _, order = form.partition(";")
    stored = Format(kinds, tuple(map(int, order.split(","))) if order else None)
    gathering = gathering_of(parse("A(i,j) = B(i,j,k)").target, stored)
    assert gathering is not None
    assert gathering.workspace(gathering.of_statement(parse_protocolized(text))) == set(modes)


def test_dense_results_are_never_gathered():
    assert gathering_of(parse("A(i,j) = B(i,j)").target, Format("dd")) is None


def test_places_that_can_go_further():
    # two modes shared so far: better than one for good, not to be compared with what may still go on
    assert goes_further(2, 2)
    assert goes_further(2, -2)
    assert goes_further(-3, -3)
    assert not goes_further(-3, 2)
    assert not goes_further(0, -2)
