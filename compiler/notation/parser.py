"""Text to index notation: ``A(i,j) = B(i,k) * C(k,j) + 2 * D(2*i + 1, j)``.

A precedence parser written by hand, so that every error names a column and points at it. Unary minus binds tighter
than ``*`` and ``/``, which bind tighter than ``+`` and ``-``, and these than comparisons; brackets may be round or square.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import NoReturn

from ..errors import ExpressionError
from ..source import Span, nearest, pointing
from .functions import COMPARISONS, FUNCTIONS, SUM
from .nodes import Access, Add, Affine, Apply, Assignment, Div, Expr, Literal, Mul, Neg, Sum
from .suggest import advice, rewritten
from .tokens import Token, tokens_of

_CLOSING = {"(": ")", "[": "]"}
_INDEX_DIGITS = 18
_DEPTH_LIMIT = 100  # of nested parentheses and functions; far below Python's recursion limit
_SIZE_LIMIT = 256  # of operands, signs and parentheses in an expression; passes recurse once for each


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.place = 0
        self.depth = 0
        self.size = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def fail(self, message: str, span: Span | None = None) -> NoReturn:
        raise ExpressionError(pointing(message, self.text, span or self.token.span))

    def take(self) -> Token:
        token = self.token
        self.place += token.kind != "end"
        return token

    def at(self, *symbols: str) -> bool:
        return self.token.kind == "symbol" and self.token.text in symbols

    def expect(self, symbol: str, after: str) -> Token:
        if not self.at(symbol):
            self.fail(f"expected {symbol!r} {after}, found {self.token.text!r}")
        return self.take()

    def span_from(self, start: Span) -> Span:
        return Span(start.start, self.tokens[self.place - 1].span.end)

    def assignment(self) -> Assignment:
        if self.token.kind == "end":
            self.fail("the expression is empty; write for example y(i) = A(i,j) * x(j)")
        target = self.target()
        if not self.at("=", "+="):
            self.fail(f"expected '=' or '+=' after the result, found {self.token.text!r}")
        operator = self.take().text
        value = self.comparison()
        if self.at("=", "+="):
            self.fail("only one '=' is allowed")
        if self.token.kind != "end":
            self.fail(f"expected an operator or the end, found {self.token.text!r}{self._meant()}")
        return Assignment(target, operator, value, self.text)

    def _meant(self) -> str:
        """Return a guess of the expression that was meant, as advice; empty if there is none."""
        guess = rewritten(self.text)
        with suppress(ExpressionError):
            if guess != self.text:
                parse(guess)
                return f"; write {guess}"
        return ""

    def target(self) -> Access:
        if self.token.kind != "name":
            self.fail(f"the left side must be a tensor such as A(i,j), found {self.token.text!r}")
        return self.access()

    def comparison(self) -> Expr:
        start = self.token.span
        left = self.sum()
        if not self.at(*COMPARISONS):
            return left
        sign = self.take().text
        right = self.sum()
        if self.at(*COMPARISONS):
            self.fail("comparisons do not chain; put one in parentheses, or multiply two")
        return Apply(sign, (left, right), span=self.span_from(start))

    def sum(self) -> Expr:
        start = self.token.span
        operands = [self.product()]
        while self.at("+", "-"):
            sign = self.take()
            operand = self.product()
            operands.append(operand if sign.text == "+" else Neg(operand, span=self.span_from(sign.span)))
        return operands[0] if len(operands) == 1 else Add(tuple(operands), span=self.span_from(start))

    def product(self) -> Expr:
        start = self.token.span
        factors: list[Expr] = [self.factor()]
        while self.at("*", "/"):
            if self.take().text == "*":
                factors.append(self.factor())
            else:
                numerator = self._join(factors, start)
                factors = [Div(numerator, self.factor(), span=self.span_from(start))]
        return self._join(factors, start)

    def _join(self, factors: list[Expr], start: Span) -> Expr:
        return factors[0] if len(factors) == 1 else Mul(tuple(factors), span=self.span_from(start))

    def factor(self) -> Expr:
        signs: list[Span] = []
        while self.at("-", "+"):
            self.count()
            sign = self.take()
            if sign.text == "-":
                signs.append(sign.span)
        self.count()
        value = self.atom()
        for span in reversed(signs):
            value = Neg(value, span=self.span_from(span))
        return value

    def count(self) -> None:
        self.size += 1
        if self.size > _SIZE_LIMIT:
            self.fail(f"the expression has more than {_SIZE_LIMIT} operands, signs and parentheses; compute it in parts")

    def atom(self) -> Expr:
        token = self.token
        if token.kind == "number":
            return self.number()
        if token.kind == "name":
            return self.named()
        if self.at("(", "["):
            if self.depth >= _DEPTH_LIMIT:
                self.fail(f"parentheses are nested deeper than {_DEPTH_LIMIT}")
            self.depth += 1
            opening = self.take().text
            value = self.comparison()
            self.expect(_CLOSING[opening], "to close the parenthesis")
            self.depth -= 1
            return value
        power = token.text == "*" and self.place and self.tokens[self.place - 1].text == "*"
        return self.fail(f"expected a tensor, a number or '(', found {token.text!r}{advice('**') if power else ''}")

    def number(self) -> Literal:
        token = self.token
        if math.isinf(float(token.text)):
            self.fail("the number is larger than a float64 can be, 1.8e308")
        self.take()
        return Literal(int(token.text) if re.fullmatch(r"\d+", token.text) else float(token.text), span=token.span)

    def named(self) -> Expr:
        """Read a tensor, or a function if the brackets after its name do not hold affine subscripts."""
        name, begin = self.token, self.place
        if name.text not in FUNCTIONS and name.text != SUM:
            return self.access()
        with suppress(ExpressionError):
            return self.access()
        self.place = begin + 1
        if self.depth >= _DEPTH_LIMIT:
            self.fail(f"parentheses are nested deeper than {_DEPTH_LIMIT}")
        self.depth += 1
        found = self.function(name)
        self.depth -= 1
        return found

    def function(self, name: Token) -> Expr:
        closing = _CLOSING[self.take().text]
        arguments = [self.comparison()]
        while self.at(","):
            self.take()
            arguments.append(self.comparison())
        self.expect(closing, f"to close the arguments of {name.text}")
        span = self.span_from(name.span)
        if name.text == SUM:
            return self.explicit_sum(arguments, span)
        if len(arguments) != (wanted := FUNCTIONS[name.text].arguments):
            self.fail(f"{name.text} takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(arguments)}", name.span)
        return Apply(name.text, tuple(arguments), span=span)

    def explicit_sum(self, arguments: list[Expr], span: Span) -> Sum:
        *indices, value = arguments
        names = [part.tensor for part in indices if isinstance(part, Access) and not part.subscripts]
        if not names or len(names) < len(indices) or len(set(names)) < len(names):
            self.fail("sum takes indices and then what is summed over them: sum(j, exp(A(i,j)))", span)
        return Sum(tuple(names), value, span=span)

    def access(self) -> Access:
        name = self.take()
        if not self.at("(", "["):
            return Access(name.text, (), span=name.span)
        closing = _CLOSING[self.take().text]
        subscripts: list[Affine] = []
        while not self.at(closing):
            subscripts.append(self.subscript())
            if not self.at(","):
                break
            self.take()
            if self.at(closing):
                self.fail("expected an index after ','")
        if self.at("(", "[") and name.text not in (*FUNCTIONS, SUM):
            hint = nearest(name.text, (*FUNCTIONS, SUM))
            self.fail(f"subscripts are indices and sums of them, and {name.text} is no function{hint}", name.span)
        self.expect(closing, f"to close the subscripts of {name.text}")
        return Access(name.text, tuple(subscripts), span=self.span_from(name.span))

    def subscript(self) -> Affine:
        start = self.token.span
        terms: dict[str, int] = {}
        constant = 0
        sign = self._sign() if self.at("+", "-") else 1
        while True:
            name, size = self._subscript_term()
            if name is None:
                constant += sign * size
            else:
                terms[name] = terms.get(name, 0) + sign * size
            if not self.at("+", "-"):
                break
            sign = self._sign()
        kept = tuple((name, coefficient) for name, coefficient in terms.items() if coefficient)
        if terms and not kept:
            self.fail("the indices of this subscript cancel", self.span_from(start))
        return Affine(kept, constant)

    def _sign(self) -> int:
        return 1 if self.take().text == "+" else -1

    def _subscript_term(self) -> tuple[str | None, int]:
        """Read ``i``, ``3``, ``2*i`` or ``i*2`` and return (index or None, size)."""
        name, size = None, 1
        while True:
            token = self.token
            if token.kind == "name" and name is None:
                name = self.take().text
            elif token.kind == "number" and token.text.isdigit():
                if len(token.text) > _INDEX_DIGITS:
                    self.fail(f"the number is too large for an index; use up to {_INDEX_DIGITS} digits")
                size *= int(self.take().text)
            elif token.kind == "name":
                self.fail("a subscript must be affine: an index times an index is not")
            else:
                self.fail(f"expected an index or an integer in the subscript, found {token.text!r}")
            if not self.at("*"):
                return name, size
            self.take()


def parse(text: str) -> Assignment:
    """Parse a statement of index notation.

    Raises:
        ExpressionError: ``text`` is not a string or not index notation; the message names the column.
    """
    if not isinstance(text, str):
        raise ExpressionError(f"the expression must be a string such as 'y(i) = A(i,j) * x(j)', not {type(text).__name__}")
    return _Parser(text).assignment()


def parse_expression(text: str) -> Expr:
    """Parse only a right-hand side, such as ``B(i,k) * C(k,j)``. Raises ``ExpressionError`` as ``parse`` does."""
    parser = _Parser(text)
    value = parser.comparison()
    if parser.token.kind != "end":
        parser.fail(f"expected an operator or the end, found {parser.token.text!r}")
    return value
