"""Formats and workspace kinds that serve protocols, in texts of schedules; results that are written out of order are collected."""

from __future__ import annotations

import pytest
from space_samples import KERNELS, SUMS, sample_space
from sparsetune.compiler.concrete.nodes import Program, Workspace, reads
from sparsetune.compiler.concrete.printer import show_statement
from sparsetune.compiler.concrete.said import operand_of, said_of
from sparsetune.compiler.format import Format
from sparsetune.compiler.lowering.collect import collected
from sparsetune.compiler.notation.nodes import Access
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.protocolized import parse_protocolized
from sparsetune.compiler.space.reformat import concordant_format, kind_for_protocols
from sparsetune.compiler.space.schedules import Schedules
from sparsetune.compiler.space.space import PIGEON, Rules

DCSR = Format("cc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Section 6.8: the last mode of A is inserted, i is outermost, so the workspace is a vector.
        (
            "forall(i,k,j) A(i,j) += B(i,k) * C(k,j)",
            "forall(i) (forall(j) A(i,j) = w(j) where forall(k) forall(j) w(j) += B(i,k) * C(k,j))",
        ),
        (
            "forall(k,i,j) A(i,j) += B(i,k) * C(k,j)",
            "(forall(i) forall(j) A(i,j) = w(i,j) where forall(k) forall(i) forall(j) w(i,j) += B(i,k) * C(k,j))",
        ),
        ("forall(i,j,k) A(i,j) += B(i,k) * C(k,j)", "forall(i) forall(j) forall(k) A(i,j) += B(i,k) * C(k,j)"),
        (
            "forall(i) {forall(j) A(i,j) += B(i,j); forall(j) A(i,j) += C(i,j)}",
            "forall(i) (forall(j) A(i,j) = w(j) where {forall(j) w(j) += B(i,j); forall(j) w(j) += C(i,j)})",
        ),
    ],
)
def test_results_out_of_order_are_collected(text: str, expected: str) -> None:
    result = parse("A(i,j) = B(i,j)").target
    found = collected(Program(parse_protocolized(text)), result, DCSR, lambda access: None)
    assert show_statement(found.statement).replace("A_entries", "w") == expected


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
    assert kind_for_protocols(Workspace("w", indices), statement) == kind
    assert kind_for_protocols(Workspace("w", indices), statement, sparse=True) == ("list" if kind == "dense" else kind)


@pytest.mark.parametrize("expression", [*KERNELS, *SUMS])
@pytest.mark.parametrize("rules", [Rules(), PIGEON], ids=["ours", "pigeon"])
def test_every_read_is_converted_to_what_suits_it(expression: str, rules: Rules) -> None:
    """Reads that are written alike and are in different loops have copies of their own."""
    space = Schedules(sample_space(expression, rules))
    formats = space.default.formats
    for schedule in space.sample(15, seed=5):
        program, member = space.program(schedule), space.find(schedule)
        assert member is not None
        wanted = {}
        for number in member.layout.enclosing:
            for place, read in enumerate(member.nestings.stored(number)):
                chosen = tuple(member.layout.protocols[number, place, mode] for mode in range(len(read.subscripts)))
                protocolized = Access(read.tensor, read.subscripts, chosen)
                form = concordant_format(protocolized, formats[read.tensor], member.layout.enclosing[number])
                wanted.setdefault(operand_of(read), set()).add(form)
        found: dict[Access, set[Format]] = {}
        for read in reads(program.statement):
            if operand_of(read) in wanted:
                form = read.stored or said_of(read, program.conversions) or formats[read.tensor]
                found.setdefault(operand_of(read), set()).add(form)
        assert found == wanted
