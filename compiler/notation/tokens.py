"""The tokens of index notation: numbers, names and symbols, each with its place in the text."""

from __future__ import annotations

import re

from ..errors import ExpressionError
from ..frozen import frozen
from ..source import Span, pointing
from .suggest import advice

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<symbol>\+=|[<>=!]=|[-+*/=(),\[\]<>])"
)


@frozen
class Token:
    kind: str  # "number", "name", "symbol" or "end"
    text: str
    span: Span


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text, the last of kind "end". Raises ``ExpressionError`` at a character that begins none."""
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            span = Span(place, place + 1)
            raise ExpressionError(pointing(f"unexpected character {text[place]!r}{advice(text[place])}", text, span))
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match.group(), Span(match.start(), match.end())))
        place = match.end()
    tokens.append(Token("end", "the end", Span(len(text), len(text) + 1)))
    return tokens
