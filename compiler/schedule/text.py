"""Schedules as text: ``split(i, i0, i1, 32); parallelize(i0, cpu_thread, no_races)``.

Directives are separated by semicolons. A directive may begin with a path in brackets; ``loopfuse`` writes its path last.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..errors import ScheduleError
from ..notation.nodes import Assignment, Expr
from ..notation.printer import show, show_assignment
from ..source import Span, quoted
from .argument_reader import INTEGER, PATH, path_of, read_argument
from .arguments import NAME, expectation
from .directive_source import SHOWN, Argument, Source
from .directives import ALIASES, DIRECTIVES, Directive, Loopfuse, Parameter, Required


def parse_directives(text: str) -> tuple[Directive, ...]:
    """Read the directives of a schedule; the text "default" has none.

    Raises:
        ScheduleError: the text is not a schedule. The message names the number of the directive, the column, and what is
            expected there.
    """
    if not isinstance(text, str):
        raise ScheduleError(f"a schedule is text such as 'split(i, i0, i1, 32)', not {type(text).__name__}")
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Directive, ...]:
    if text.strip() == DEFAULT:
        return ()
    source = Source(text)
    found = []
    for piece in source.pieces(0, len(text), ";"):
        if piece.text:
            source.number += 1
            source.keyword = ""
            found.append(_directive(source, piece))
    return tuple(found)


DEFAULT = "default"
"""The text, used alone, of the schedule without directives."""

_WORDS = ("auto", DEFAULT)
"""Words that callers may give in place of a schedule."""


def _directive(source: Source, piece: Argument) -> Directive:
    name = NAME.match(piece.text)
    if name is None:
        source.fail(f"expected a directive such as reorder(i, j), found {quoted(piece.text, 20)}", piece.span)
    keyword = ALIASES.get(name.group(), name.group())
    name_span = Span(piece.span.start, piece.span.start + name.end())
    if keyword not in DIRECTIVES:
        from difflib import get_close_matches  # imported for messages alone

        close = get_close_matches(keyword.lower(), [*DIRECTIVES, *ALIASES, *_WORDS], 1)
        hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(DIRECTIVES)}"
        if close and close[0] in _WORDS:
            hint = f"did you mean '{close[0]}', which stands for a whole schedule?"
            if close[0] == keyword:
                hint = f"'{keyword}' stands alone, for a whole schedule"
        source.fail(f"there is no directive {quoted(keyword, SHOWN)}; {hint}", name_span)
    source.keyword = keyword
    opening = name_span.end + len(piece.text[name.end() :]) - len(piece.text[name.end() :].lstrip())
    if source.text[opening : opening + 1] != "(" or opening >= piece.span.end:
        source.fail(f"expected '(' after {keyword}", Span(name_span.end, name_span.end + 1))
    closing = source.closing(opening)
    if closing >= piece.span.end:
        source.fail("expected ')' at the end of the directive", Span(piece.span.end, piece.span.end + 1))
    if closing != piece.span.end - 1:
        source.fail("expected ';' or the end after ')'", Span(closing + 1, piece.span.end))
    inside = source.piece(opening + 1, closing)
    arguments = list(source.pieces(opening + 1, closing, ",")) if inside.text else []
    return _build(source, DIRECTIVES[keyword], arguments, Span(closing, closing + 1))


def _build(source: Source, kind: type[Directive], arguments: list[Argument], end: Span) -> Directive:
    path = None
    if kind.takes_path and arguments and PATH.fullmatch(arguments[0].text):
        path = path_of(source, arguments.pop(0))
    elif kind is Loopfuse:
        path = path_of(source, arguments.pop()) if len(arguments) == 3 and PATH.fullmatch(arguments[2].text) else ()
    values: dict[str, Any] = {}
    for parameter in kind.parameters:
        if parameter.many:
            if not arguments:
                source.fail(f"expected {expectation(parameter)}", end)
            values[parameter.field] = tuple(read_argument(source, parameter, argument) for argument in arguments)
            arguments = []
        elif parameter.kind == "ordinal" and not (arguments and INTEGER.fullmatch(arguments[0].text)):
            values[parameter.field] = None
        elif arguments:
            values[parameter.field] = read_argument(source, parameter, arguments.pop(0))
        elif parameter.default is Required:
            source.fail(f"expected {expectation(parameter)}; write {usage(kind)}", end)
    if arguments:
        source.fail(f"one argument too many; write {usage(kind)}", arguments[0].span)
    return kind(**values, path=path)


def usage(kind: type[Directive]) -> str:
    """Return the form of a directive, such as ``split(index, outer, inner, factor)``."""
    words = [f"{parameter.field}, ..." if parameter.many else parameter.field for parameter in kind.parameters]
    return f"{kind.keyword}({', '.join([*words, 'path'] if kind is Loopfuse else words)})"


def show_directive(directive: Directive) -> str:
    """Return the text of a directive."""
    words = [_word(parameter.kind, item) for parameter in directive.parameters for item in _items(directive, parameter)]
    if isinstance(directive, Loopfuse):
        words.append(str(list(directive.path or ())))
    elif directive.path is not None:
        words.insert(0, str(list(directive.path)))
    return f"{directive.keyword}({', '.join(words)})"


def _items(directive: Directive, parameter: Parameter) -> tuple[object, ...]:
    value = getattr(directive, parameter.field)
    if parameter.many:
        return tuple(value)
    return () if value is None and parameter.default is None else (value,)


def _word(kind: str, value: object) -> str:
    if isinstance(value, Expr):
        return show(value)
    if isinstance(value, Assignment):
        return show_assignment(value)
    if kind == "path":
        return str(list(value)) if isinstance(value, tuple) else str(value)
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else f"[{', '.join(value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind == "compiler" and value is None:
        return "auto"
    return f'"{value}"' if kind in ("text", "flags") else str(value)


def show_directives(directives: tuple[Directive, ...]) -> str:
    """Return text that ``parse_directives`` reads back as equal directives."""
    return "; ".join(map(show_directive, directives))
