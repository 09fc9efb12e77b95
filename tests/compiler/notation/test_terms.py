"""Which sums an expression takes: Einstein's rule, term by term."""

from __future__ import annotations

import pytest
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show
from sparsetune.compiler.notation.terms import terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y(i) = A(i,j) * x(j)", [("j", "A(i,j) * x(j)")]),
        ("y(i) = A(i,j) * x(j) + b(i)", [("j", "A(i,j) * x(j)"), ("", "b(i)")]),
        ("a = b(i) * c", [("i", "b(i) * c")]),
        ("y(i) = (A(i,j) + B(i,j)) * x(j)", [("j", "(A(i,j) + B(i,j)) * x(j)")]),
        ("y(i) = (A(i,j) + b(i)) * c(i)", [("j", "A(i,j) * c(i)"), ("", "b(i) * c(i)")]),
        ("y(i) = -(A(i,j) - b(i))", [("j", "-A(i,j)"), ("", "-(-b(i))")]),
        ("y(i) = A(i,j) + b(i) + B(i,j)", [("j", "A(i,j) + B(i,j)"), ("", "b(i)")]),
        ("y(i) = (A(i,j) + b(i)) / c(i,k)", [("jk", "A(i,j) / c(i,k)"), ("k", "b(i) / c(i,k)")]),
        ("A(i,j) = b(i) + C(i,j)", [("", "b(i) + C(i,j)")]),
    ],
)
def test_terms(text: str, expected: list[tuple[str, str]]) -> None:
    assignment = parse(text)
    found = terms(assignment.value, frozenset(assignment.target.indices))
    assert [("".join(term.reduced), show(term.value)) for term in found] == expected
