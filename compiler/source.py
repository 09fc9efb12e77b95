"""Places in a source text, and messages that point at them or quote it."""

from __future__ import annotations

from collections.abc import Iterable

from .frozen import frozen


@frozen
class Span:
    """Half-open range of characters ``[start, end)`` of a source text, counted from 0."""

    start: int
    end: int


def pointing(message: str, text: str, span: Span | None) -> str:
    """Return ``message`` with the column in its first line, and the source with a caret below.

    Columns are counted from 1. Without a span the message alone is returned. Only the source line that holds the span
    is shown.
    """
    if span is None:
        return message
    line_start = text.rfind("\n", 0, span.start) + 1
    line_end = text.find("\n", span.start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    column = span.start - line_start
    width = max(1, min(span.end - span.start, len(line) - column))
    first, *rest = message.split("\n")
    where = f" (column {column + 1})" if line_start == 0 else f" (line {text.count(chr(10), 0, span.start) + 1}, column {column + 1})"
    shown = "".join(letter if letter.isprintable() else " " for letter in line)
    return "\n".join([first + where, f"    {shown}", "    " + " " * column + "^" * width, *rest])


def quoted(text: str, most: int) -> str:
    """Return a text for messages: in quotes, cut to ``most`` characters, without control characters."""
    return repr(text if len(text) <= most else f"{text[:most]}...")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the closest known name, or an empty text. Names with two letters swapped come first."""
    from difflib import get_close_matches  # needed only after mistakes

    names = list(known)
    swapped = {name[:place] + name[place : place + 2][::-1] + name[place + 2 :] for place in range(len(name) - 1)}
    close = [one for one in names if one in swapped] or get_close_matches(name, names, 1, 0.5)
    return f" (did you mean '{close[0]}'?)" if close else ""
