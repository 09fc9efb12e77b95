"""Protocolized concrete index notation: printing, parsing, errors; append and insert; default protocols."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from space_samples import KERNELS, SUMS, sample_space
from sparsetune.compiler.concrete.nodes import Block, Forall, Where, assignments
from sparsetune.compiler.errors import ExpressionError
from sparsetune.compiler.format import Format
from sparsetune.compiler.space.defaults import with_default_protocols
from sparsetune.compiler.space.naming import write_protocols
from sparsetune.compiler.space.protocolized import loop_nest, parse_protocolized, show_protocolized
from sparsetune.compiler.space.space import PIGEON, Rules


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([*KERNELS, *SUMS]), st.booleans(), st.integers(0, 10**6))
def test_text_parses_back(expression, paper, seed):
    (schedule,) = sample_space(expression, PIGEON if paper else Rules()).sample(1, seed)
    statement = schedule.program.statement
    assert parse_protocolized(show_protocolized(statement)) == statement


def test_loop_nest_lists_producers_first():
    text = "forall(i) (forall(j) A(i:append,j:append) = w(j:step) where forall(k,j) w(j:insert) += B(i:step,k:step) * C(k:locate,j:step))"
    assert loop_nest(parse_protocolized(text)) == (
        "for i:\n"
        "  produce:\n"
        "    for k:\n"
        "      for j:\n"
        "        w(j:insert) += B(i:step,k:step) * C(k:locate,j:step)\n"
        "  consume:\n"
        "    for j:\n"
        "      A(i:append,j:append) = w(j:step)"
    )


def test_tensors_and_indices_may_be_called_like_keywords():
    statement = parse_protocolized("forall(step) forall(step) = where(step:locate) * where + forall2")
    assert isinstance(statement, Forall)
    (assign,) = assignments(statement)
    assert assign.target.tensor == "forall"
    assert show_protocolized(statement) == "forall(step) forall(step) = where(step:locate) * where + forall2"
    nested = parse_protocolized("({a += b; a += c} where where = d * where2)")
    assert isinstance(nested, Where)
    assert isinstance(nested.consumer, Block)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("forall(i) A(i:append) = B(i:stp)", "expected a protocol", 29),
        ("forall(i) A(i:step) = B(i:step)", "A is written: its protocols are append or insert", 15),
        ("forall(i) A(i) = B(i:insert)", "B is read: its protocols are step or locate", 22),
        ("forall(i,j) A(i) = B(i:step,j)", "name one for each mode or none", 24),
        ("(forall(i) a = b", "expected 'where'", 17),
        ("a = b where c = d", "expected the end of the program", 7),
        ("", "expected a loop or an assignment", 1),
        ("forall(1) a = b", "expected an index", 8),
        ("{a = b; c = d", "expected '}'", 14),
        ("forall(i) A(i) = B(i", "expected ')'", 21),
    ],
)
def test_errors_name_the_column(text, message, column):
    with pytest.raises(ExpressionError) as caught:
        parse_protocolized(text)
    first = str(caught.value).split("\n")[0]
    assert message in first
    assert first.endswith(f"(column {column})")


def test_programs_are_texts():
    with pytest.raises(ExpressionError, match="not int"):
        parse_protocolized(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("indices", "loops", "protocols"),
    [
        ("ij", "ijk", ("append", "append")),
        ("ij", "ikj", ("append", "insert")),
        ("ij", "kij", ("insert", "insert")),
        ("ij", "jik", ("append", "append")),
        ("ij", "jki", ("insert", "append")),
        ("", "ij", ()),
        ("ijk", "ilkj", ("append", "insert", "insert")),
    ],
)
def test_writes_append_while_they_come_in_order(indices, loops, protocols):
    assert write_protocols(indices, loops) == protocols


def test_default_protocols_follow_formats():
    statement = parse_protocolized("(forall(i,j) a(i) += B(i,j) * w(j) where forall(j,k) w(j) += C(j:step,k:step) * d(k))")
    formats = {"B": Format("ds"), "C": Format("ds"), "d": Format("d")}
    assert show_protocolized(with_default_protocols(statement, formats)) == (
        "(forall(i) forall(j) a(i) += B(i:locate,j:step) * w(j:locate)"
        " where forall(j) forall(k) w(j) += C(j:step,k:step) * d(k:locate))"
    )
    alone = parse_protocolized("forall(i) a(i) = w(i) * d(i)")
    assert "w(i:step) * d(i:locate)" in show_protocolized(with_default_protocols(alone, {"d": Format("d")}))
