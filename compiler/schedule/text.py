"""Schedules as text: ``split(i, i0, i1, 32); parallelize(i0, cpu_thread, no_races)``.

Directives are separated by semicolons. A directive may begin with a path in brackets; ``loopfuse`` writes its path last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from ..errors import ExpressionError, ScheduleError
from ..frozen import frozen
from ..notation.nodes import Access, Assignment, Expr
from ..notation.parser import parse, parse_expression
from ..notation.printer import show, show_assignment
from ..source import Span, pointing, quoted
from .arguments import NAME, expectation
from .build_options import compiler_fault, flags_fault
from .directives import ALIASES, DIRECTIVES, Directive, Loopfuse, Parameter, Required

_INTEGER = re.compile(r"[+-]?\d+")
_PATH = re.compile(r"\[\s*(?:\d+\s*(?:,\s*\d+\s*)*)?\]")
_OPEN, _CLOSE = "([", ")]"
_MOST_DIGITS, _SHOWN = 30, 40
Read = TypeVar("Read")


@frozen
class _Argument:
    """A piece of the schedule's text without surrounding blanks."""

    text: str
    span: Span


class _Source:
    """The whole text, and errors that point into it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.number = 0
        self.keyword = ""

    def fail(self, message: str, span: Span) -> NoReturn:
        where = f"directive {self.number}" + (f", {self.keyword}" if self.keyword else "")
        raise ScheduleError(pointing(f"{where}: {message}", self.text, span))

    def piece(self, start: int, end: int) -> _Argument:
        """Return the text between two places without its blanks."""
        found = self.text[start:end]
        start += len(found) - len(found.lstrip())
        end -= len(found) - len(found.rstrip()) if found.strip() else 0
        return _Argument(found.strip(), Span(start, max(start, end)))

    def pieces(self, start: int, end: int, separator: str) -> Iterator[_Argument]:
        """Split a range of the text at a separator that stands outside brackets and quotes."""
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
        """Return the place of the bracket that closes the one at ``opening``; the length of the text where there is none."""
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


def parse_directives(text: str) -> tuple[Directive, ...]:
    """Read the directives of a schedule; "default" alone has none.

    Raises:
        ScheduleError: the text is not a schedule; the message names the directive's number, the column, and what is
            expected there.
    """
    if not isinstance(text, str):
        raise ScheduleError(f"a schedule is text such as 'split(i, i0, i1, 32)', not {type(text).__name__}")
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Directive, ...]:
    if text.strip() == DEFAULT:
        return ()
    source = _Source(text)
    found = []
    for piece in source.pieces(0, len(text), ";"):
        if piece.text:
            source.number += 1
            source.keyword = ""
            found.append(_directive(source, piece))
    return tuple(found)


DEFAULT = "default"
"""Alone, the schedule without directives."""

_WORDS = ("auto", DEFAULT)
"""What callers may say in place of a schedule."""


def _directive(source: _Source, piece: _Argument) -> Directive:
    name = NAME.match(piece.text)
    if name is None:
        source.fail(f"expected a directive such as reorder(i, j), found {quoted(piece.text, 20)}", piece.span)
    keyword = ALIASES.get(name.group(), name.group())
    name_span = Span(piece.span.start, piece.span.start + name.end())
    if keyword not in DIRECTIVES:
        from difflib import get_close_matches  # for mistakes alone

        close = get_close_matches(keyword.lower(), [*DIRECTIVES, *ALIASES, *_WORDS], 1)
        hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(DIRECTIVES)}"
        if close and close[0] in _WORDS:
            hint = f"did you mean '{close[0]}', which stands for a whole schedule?"
            if close[0] == keyword:
                hint = f"'{keyword}' stands alone, for a whole schedule"
        source.fail(f"there is no directive {quoted(keyword, _SHOWN)}; {hint}", name_span)
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


def _build(source: _Source, kind: type[Directive], arguments: list[_Argument], end: Span) -> Directive:
    path = None
    if kind.takes_path and arguments and _PATH.fullmatch(arguments[0].text):
        path = _path(source, arguments.pop(0))
    elif kind is Loopfuse:
        path = _path(source, arguments.pop()) if len(arguments) == 3 and _PATH.fullmatch(arguments[2].text) else ()
    values: dict[str, Any] = {}
    for parameter in kind.parameters:
        if parameter.many:
            if not arguments:
                source.fail(f"expected {expectation(parameter)}", end)
            values[parameter.field] = tuple(_read(source, parameter, argument) for argument in arguments)
            arguments = []
        elif parameter.kind == "ordinal" and not (arguments and _INTEGER.fullmatch(arguments[0].text)):
            values[parameter.field] = None
        elif arguments:
            values[parameter.field] = _read(source, parameter, arguments.pop(0))
        elif parameter.default is Required:
            source.fail(f"expected {expectation(parameter)}; write {usage(kind)}", end)
    if arguments:
        source.fail(f"one argument too many; write {usage(kind)}", arguments[0].span)
    return kind(**values, path=path)


def _path(source: _Source, argument: _Argument) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", argument.text)
    if max(map(len, numbers), default=0) > _MOST_DIGITS:
        source.fail(f"a path has small numbers, such as [0, 1], not {quoted(argument.text, _SHOWN)}", argument.span)
    return tuple(map(int, numbers))


def usage(kind: type[Directive]) -> str:
    """Return the form of a directive, such as ``split(index, outer, inner, factor)``."""
    words = [f"{parameter.field}, ..." if parameter.many else parameter.field for parameter in kind.parameters]
    return f"{kind.keyword}({', '.join([*words, 'path'] if kind is Loopfuse else words)})"


def _read(source: _Source, parameter: Parameter, argument: _Argument) -> object:
    if not argument.text:
        source.fail(f"expected {expectation(parameter)}, found nothing", Span(argument.span.start, argument.span.start + 1))
    return _READERS[parameter.kind](source, parameter, argument)


def _read_name(source: _Source, parameter: Parameter, argument: _Argument) -> str:
    if not NAME.fullmatch(argument.text):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, _SHOWN)}", argument.span)
    return argument.text


def _read_names(source: _Source, parameter: Parameter, argument: _Argument) -> tuple[str, ...]:
    if not argument.text.startswith("["):
        return (_read_name(source, parameter, argument),)
    if not argument.text.endswith("]"):
        source.fail("expected ']'", argument.span)
    start, end = argument.span.start + 1, argument.span.end - 1
    if not source.piece(start, end).text:
        return ()
    return tuple(_read_name(source, parameter, piece) for piece in source.pieces(start, end, ","))


def _read_integer(source: _Source, parameter: Parameter, argument: _Argument) -> int:
    if not _INTEGER.fullmatch(argument.text) or len(argument.text) > _MOST_DIGITS:
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, _SHOWN)}", argument.span)
    return int(argument.text)


def _read_choice(source: _Source, parameter: Parameter, argument: _Argument) -> str:
    if argument.text not in parameter.choices:
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, _SHOWN)}", argument.span)
    return argument.text


def _read_boolean(source: _Source, parameter: Parameter, argument: _Argument) -> bool:
    if argument.text not in ("true", "false"):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, _SHOWN)}", argument.span)
    return argument.text == "true"


def _read_text(source: _Source, parameter: Parameter, argument: _Argument) -> str:
    found = _inside_quotes(argument)
    return _read_name(source, parameter, argument) if found is None else found


def _inside_quotes(argument: _Argument) -> str | None:
    text = argument.text
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else None


def _read_compiler(source: _Source, parameter: Parameter, argument: _Argument) -> str | None:
    found = _inside_quotes(argument)
    name = argument.text if found is None else found
    if name == "auto":
        return None
    if fault := compiler_fault(name):
        source.fail(fault, argument.span)
    return name


def _read_flags(source: _Source, parameter: Parameter, argument: _Argument) -> str:
    text = _inside_quotes(argument)
    if text is None:
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, _SHOWN)}", argument.span)
    if fault := flags_fault(text):
        source.fail(fault, argument.span)
    return " ".join(text.split())


def _read_expression(source: _Source, parameter: Parameter, argument: _Argument) -> Expr:
    return _read_notation(source, argument, parse_expression)


def _read_notation(source: _Source, argument: _Argument, read: Callable[[str], Read]) -> Read:
    try:
        return read(" " * argument.span.start + argument.text)  # blanks, so that columns are those of the schedule
    except ExpressionError as error:
        first = str(error).split("\n")[0]
        located = re.fullmatch(r"(.*) \((?:line \d+, )?column (\d+)\)", first)
        if located is None:
            return source.fail(first, argument.span)
        start = min(int(located[2]) - 1, argument.span.end)
        return source.fail(located[1], Span(start, max(start + 1, argument.span.end)))


def _read_access(source: _Source, parameter: Parameter, argument: _Argument) -> Access:
    found = _read_expression(source, parameter, argument)
    if not isinstance(found, Access):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, _SHOWN)}", argument.span)
    return found


def _read_addend(source: _Source, parameter: Parameter, argument: _Argument) -> Expr | Assignment:
    parse_addend = parse if "=" in argument.text else parse_expression
    return _read_notation(source, argument, parse_addend)


def _read_path(source: _Source, parameter: Parameter, argument: _Argument) -> tuple[int, ...]:
    if not _PATH.fullmatch(argument.text):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, _SHOWN)}", argument.span)
    return _path(source, argument)


_READERS: dict[str, Callable[[_Source, Parameter, _Argument], object]] = {
    "index": _read_name,
    "name": _read_name,
    "new": _read_name,
    "indices": _read_names,
    "news": _read_names,
    "integer": _read_integer,
    "ordinal": _read_integer,
    "boolean": _read_boolean,
    "choice": _read_choice,
    "text": _read_text,
    "compiler": _read_compiler,
    "flags": _read_flags,
    "expression": _read_expression,
    "addend": _read_addend,
    "path": _read_path,
    "access": _read_access,
}


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
