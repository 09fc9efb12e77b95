"""What programs hold beside operands and results, in extents."""

from __future__ import annotations

import pytest
from sparsetune.compiler.concrete.affine import view_subscripts
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.space.candidates import Candidate
from sparsetune.compiler.space.memory import memory_of
from sparsetune.compiler.space.situation import Situation
from sparsetune.compiler.space.template import Template


@pytest.mark.parametrize(
    ("expression", "form", "order", "memory"),
    [
        ("Y(i,j) = A(i+p,j+q) * F(p,q)", "csr", "i, p, j, q", "0"),
        ("Y(i,j) = A(i+p,j+q) * F(p,q)", "csr", "i, j, p, q", "p"),
        ("Y(i,j) = A(i+p,j+q) * F(p,q)", "dcsr", "p, q, i, j", "i"),
        ("Y(i,j) = A(i+p,j+q) * F(p,q)", "csr", "j, i, p, q", "i + p"),
        ("Y(i,j) = A(2*i-3*p+2,j+q) * F(p,q)", "csr", "i, j, p, q", "3 * p"),
        ("Y(i,j,k) = A(i+p,j+q,k+r) * F(p,q,r)", "csf", "i, j, k, p, q, r", "p + p * q"),
    ],
)
def test_buffers_have_a_place_for_each_parent_that_is_open(expression: str, form: str, order: str, memory: str) -> None:
    assignment = parse(expression)
    plain = view_subscripts(assignment, formats_of(assignment, {"A": form}))
    found = concretize(plain.assignment, plain.formats)
    program = apply_schedule(found.program, f"reorder({order})", found.formats)
    assert memory_of(program, Situation(program, found.formats, {})) == memory
    assert memory_of(program, Situation(program, found.formats, dict.fromkeys("ijkpqr", 3))) == "0"


def test_workspaces_that_follow_one_another_are_not_added_up() -> None:
    """Each nest of a chain reads one workspace and fills another; the memory of a candidate is what two of them take."""
    assignment = parse("A(i,n) = B(i,j) * C(j,k) * D(k,l) * E(l,m) * F(m,n)")
    found = concretize(assignment, formats_of(assignment, {}))
    text = (
        "precompute(B(i,j) * C(j,k) * D(k,l) * E(l,m), [i, m], [i, m], w3); precompute([0], B(i,j) * C(j,k) * D(k,l), [i, l], [i, l], w2);"
        " precompute([0, 0], B(i,j) * C(j,k), [i, k], [i, k], w1)"
    )
    program = apply_schedule(found.program, text, found.formats)
    memory = memory_of(program, Situation(program, found.formats, {}))
    assert sorted(memory.removeprefix("max(").removesuffix(")").split(", ")) == ["i * l + i * k", "i * m + i * l"]
    candidate = Candidate(Template(), 3, memory, "default", program)
    assert candidate.elements({"i": 10, "k": 1, "l": 2, "m": 5}) == 10 * (2 + 5)
