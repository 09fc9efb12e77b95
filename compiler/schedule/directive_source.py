"""Splits the text of a schedule into pieces, and raises errors that point into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from ..errors import ScheduleError
from ..frozen import frozen
from ..source import Span, pointing

_OPEN, _CLOSE = "([", ")]"
SHOWN = 40  # the most characters of a mistake that a message quotes


@frozen
class Argument:
    """A piece of the schedule's text without surrounding blanks."""

    text: str
    span: Span


class Source:
    """The whole text, and errors that point into it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.number = 0
        self.keyword = ""

    def fail(self, message: str, span: Span) -> NoReturn:
        """Raise ``ScheduleError`` with a message that names the current directive and points at a range of the text."""
        where = f"directive {self.number}" + (f", {self.keyword}" if self.keyword else "")
        raise ScheduleError(pointing(f"{where}: {message}", self.text, span))

    def piece(self, start: int, end: int) -> Argument:
        """Return the text between two places without surrounding blanks."""
        found = self.text[start:end]
        start += len(found) - len(found.lstrip())
        end -= len(found) - len(found.rstrip()) if found.strip() else 0
        return Argument(found.strip(), Span(start, max(start, end)))

    def pieces(self, start: int, end: int, separator: str) -> Iterator[Argument]:
        """Split a range of the text at a separator, except inside brackets and quotes."""
        depth, quoted, begin = 0, False, start
        for place in range(start, end):
            letter = self.text[place]
            if letter == '"':
                quoted = not quoted
            elif quoted:
                continue
            elif letter in _OPEN:
                depth += 1
            elif letter in _CLOSE:
                depth -= 1
            elif letter == separator and depth == 0:
                yield self.piece(begin, place)
                begin = place + 1
        yield self.piece(begin, end)

    def closing(self, opening: int) -> int:
        """Return the place of the bracket that closes the one at ``opening``; the length of the text if there is none."""
        depth, quoted = 0, False
        for place in range(opening, len(self.text)):
            letter = self.text[place]
            if letter == '"':
                quoted = not quoted
            elif not quoted and letter in _OPEN:
                depth += 1
            elif not quoted and letter in _CLOSE:
                depth -= 1
                if depth == 0:
                    return place
        return len(self.text)
