"""Names of operands and indices do not matter; everything else does."""

from __future__ import annotations

import pytest
from sparsetune.compiler.notation.canonical import canonical_form
from sparsetune.compiler.notation.parser import parse


def text(expression: str) -> str:
    return canonical_form(parse(expression)).text


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("y(i) = A(i,j) * x(j)", "out(r) = M(r,c) * v(c)"),
        ("y(i) = A(i,j) * x(j)", "for(main) = T2(main,T1) * T0(T1)"),
        ("i(i) = j(i)", "a(b) = c(b)"),
        ("a += a2(2*p + q - 1) * w(q)", "z += y(2*i1 + i0 - 1) * x(i0)"),
        ("A(i,j) = B(i,k) * (C(k,j) - 2 * B(k,j)) / d", "Z(x,y) = P(x,w) * (Q(w,y) - 2 * P(w,y)) / s"),
    ],
)
def test_names_do_not_matter(left: str, right: str) -> None:
    assert text(left) == text(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("y(i) = A(i,j) * x(j)", "y(i) = A(j,i) * x(j)"),
        ("y(i) = A(i,j) * x(j)", "y(i) += A(i,j) * x(j)"),
        ("A(i,j) = B(i,j) * B(i,j)", "A(i,j) = B(i,j) * C(i,j)"),
        ("A(i) = 2 * B(i)", "A(i) = 3 * B(i)"),
        ("A(i) = B(i) - C(i) - D(i)", "A(i) = B(i) - (C(i) - D(i))"),
        ("A(i) = B(2*i)", "A(i) = B(i)"),
    ],
)
def test_everything_else_does(left: str, right: str) -> None:
    assert text(left) != text(right)


def test_canonical_text_is_its_own_canonical_form() -> None:
    once = text("A(i,j) = B(i,k) * C(k,j) + 2.5 * -D(i,j)")
    assert once == "T0(i0,i1) = T1(i0,i2) * T2(i2,i1) + 2.5 * (-T3(i0,i1))"
    assert text(once) == once


def test_names_lead_back() -> None:
    form = canonical_form(parse("y(i) = A(i,j) * x(j)"))
    assert form.tensors == (("y", "T0"), ("A", "T1"), ("x", "T2"))
    assert form.indices == (("i", "i0"), ("j", "i1"))
