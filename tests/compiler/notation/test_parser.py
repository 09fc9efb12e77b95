"""The parser: every construct of index notation, and errors that point at their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.errors import ExpressionError
from sparsetune.compiler.notation.nodes import Access, Add, Affine, Assignment, Div, Expr, Literal, Mul, Neg, index_subscript
from sparsetune.compiler.notation.parser import parse, parse_expression
from sparsetune.compiler.notation.printer import show, show_assignment


def access(name: str, *indices: str) -> Access:
    return Access(name, tuple(index_subscript(index) for index in indices))


def test_precedence_and_brackets() -> None:
    assignment = parse("A[i,j] += -b(i) * (c - 3.5) / d + 2 * B(j, i)")
    b, c, d = access("b", "i"), access("c"), access("d")
    product = Div(Mul((Neg(b), Add((c, Neg(Literal(3.5)))))), d)
    assert assignment == Assignment(access("A", "i", "j"), "+=", Add((product, Mul((Literal(2), access("B", "j", "i"))))))


def test_affine_subscripts() -> None:
    value = parse("y(i) = x(2*i + j - 1) * w(-j + 3*k*2)").value
    assert isinstance(value, Mul)
    first, second = value.operands
    assert isinstance(first, Access)
    assert isinstance(second, Access)
    assert first.subscripts == (Affine((("i", 2), ("j", 1)), -1),)
    assert second.subscripts == (Affine((("j", -1), ("k", 6))),)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "empty", 1),
        ("y(i) =", "expected a tensor, a number", 7),
        ("y(i) A(i)", "expected '=' or '+='", 6),
        ("y(i) = A(i,) * x", "expected an index after ','", 12),
        ("y(i) = A(i", "to close the subscripts of A", 11),
        ("y(i) = (A(i) + b", "to close the parenthesis", 17),
        ("y(i) = A(i) $ b", "unexpected character '$'", 13),
        ("y(i) = A(i*j)", "must be affine", 12),
        ("y(i) = A(i) = b", "only one '='", 13),
        ("y(i) = A(i) b", "expected an operator or the end", 13),
        ("3 = A(i)", "the left side must be a tensor", 1),
        ("y(i) = A(i - i)", "cancel", 10),
        ("y(i) = A(1.5*i)", "expected an index or an integer", 10),
        ("y(i) = 1e400 * A(i)", "larger than a float64 can be", 8),
        ("y(i) = " + "1" * 5000 + " * A(i)", "larger than a float64 can be", 8),
        ("y(i) = A(" + "1" * 5000 + "*i)", "too large for an index", 10),
    ],
)
def test_errors_name_the_column_and_point_at_it(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    first, source, caret = str(caught.value).split("\n")
    assert message in first
    assert f"(column {column})" in first
    assert source.strip() == text.strip()
    assert caret.index("^") == 4 + column - 1


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(ExpressionError, match="must be a string"):
        parse(7)  # type: ignore[arg-type]


def test_deep_nesting_is_refused_not_crashed() -> None:
    with pytest.raises(ExpressionError, match="nested deeper"):
        parse_expression("(" * 5000 + "a" + ")" * 5000)


names = st.sampled_from(["A", "b", "C_1", "for", "_x"])
subscripts = st.builds(
    Affine,
    st.dictionaries(st.sampled_from("ijk"), st.integers(-3, 3).filter(bool), min_size=1, max_size=2).map(
        lambda terms: tuple(terms.items())
    ),
    st.integers(-4, 4),
)
leaves = st.one_of(
    st.builds(Literal, st.one_of(st.integers(0, 99), st.floats(0, 1e6))),
    st.builds(Access, names, st.lists(subscripts, max_size=3).map(tuple)),
)


def grow(children: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(children, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(Neg, children), st.builds(Add, several), st.builds(Mul, several), st.builds(Div, children, children))


@given(st.recursive(leaves, grow, max_leaves=8))
def test_printed_expressions_mean_the_same(expr: Expr) -> None:
    """Text parses back to text; nested sums and products may be flattened, which changes no meaning."""
    again = parse_expression(show(expr))
    assert show(again) == show(expr) or flat(again) == flat(expr)


def flat(expr: Expr) -> Expr:
    parts = tuple(flat(child) for child in expr.children)
    if isinstance(expr, (Add, Mul)):
        first = parts[0]
        merged = (*first.operands, *parts[1:]) if type(first) is type(expr) else parts  # type: ignore[attr-defined]
        return type(expr)(merged)
    return expr.rebuild(parts) if parts else expr


def test_assignments_round_trip() -> None:
    for text in ("A(i,j) = B(i,k) * C(k,j)", "y(i) += -A(i,j) * (x(j) - 2)", "s = a / b / c"):
        assert show_assignment(parse(text)) == text


def test_what_is_no_function_is_told_with_one_that_is() -> None:
    with pytest.raises(ExpressionError, match=r"expp is no function \(did you mean 'exp'\?\) \(column 10\)"):
        parse("B(i,j) = expp(A(i,j))")
