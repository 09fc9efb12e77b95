"""Reads the words of one line of the loop IR's text, from left to right."""

from __future__ import annotations

import re

from ..errors import SparsetuneError
from ..frozen import frozen
from .nodes import Type
from .printer import WORDS

TYPE = r"(?:[iu](?:8|16|32|64)|f(?:32|64)|bool|map|parts)(?:x\d+)?"
_TOKENS = re.compile(
    rf"\s*(?:(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?(?P<suffix>{TYPE})?(?!\w))|(?P<infinite>[+-](?:inf|nan)(?P<kind>f32)?(?!\w))"
    rf"|(?P<type>{TYPE}(?!\w))|(?P<name>\w+|`\w+`)|(?P<mark>\.\.|[<>=!]=|[-+*/%<>()\[\],:=]))"
)


class UnreadableProgram(SparsetuneError):
    """A text is not a program of the loop IR."""


@frozen
class Line:
    """A line of a program as text: its number in the text, how deep it is indented, and what it says."""

    number: int
    depth: int
    text: str


class TokenReader:
    """Reads the words of a line. ``tokens`` holds those that are not read yet, each with its kind, in reverse order."""

    def __init__(self) -> None:
        self.line = Line(1, 0, "")
        self.tokens: list[tuple[str, str]] = []

    def _begin(self, line: Line) -> None:
        self.line, place, self.tokens = line, 0, []
        while place < len(line.text):
            found = _TOKENS.match(line.text, place)
            if found is None:
                raise UnreadableProgram(f"line {line.number}: {line.text[place:].strip()!r} is no part of a program")
            kind = found.lastgroup if found.lastgroup not in ("suffix", "kind") else "number" if found["number"] else "infinite"
            self.tokens.append((str(kind), found[str(kind)]))
            place = found.end()
        self.tokens.reverse()

    def _next(self) -> tuple[str, str]:
        if not self.tokens:
            raise self._wrong("more")
        return self.tokens.pop()

    def _sees(self, text: str) -> bool:
        return bool(self.tokens) and self.tokens[-1][1] == text

    def _take(self, text: str) -> bool:
        if self._sees(text):
            self.tokens.pop()
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._wrong(repr(text))

    def _name(self) -> str:
        kind, text = self._next()
        if kind not in ("name", "type") or text in WORDS:
            raise self._wrong("a name", text)
        return bare(text)

    def _type(self) -> Type:
        kind, text = self._next()
        if kind != "type":
            raise self._wrong("a type", text)
        return Type(text)

    def _number(self) -> int:
        kind, text = self._next()
        if kind != "number" or not text.isdecimal():
            raise self._wrong("a number", text)
        return int(text)

    def _wrong(self, wanted: str, found: str | None = None) -> UnreadableProgram:
        shown = found or (self.tokens[-1][1] if self.tokens else "the end of the line")
        return UnreadableProgram(f"line {self.line.number}: {shown!r} stands where {wanted} is wanted, in: {self.line.text}")


def bare(name: str) -> str:
    """Return a name without the backticks that distinguish it from words of the language."""
    return name.strip("`")
