"""Reads the arguments of directives, each by the kind of its parameter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ..errors import ExpressionError
from ..notation.nodes import Access, Assignment, Expr
from ..notation.parser import parse, parse_expression
from ..source import Span, quoted
from .arguments import NAME, expectation
from .build_options import compiler_fault, flags_fault
from .directive_source import SHOWN, Argument, Source
from .directives import Parameter

INTEGER = re.compile(r"[+-]?\d+")
PATH = re.compile(r"\[\s*(?:\d+\s*(?:,\s*\d+\s*)*)?\]")
_MOST_DIGITS = 30
Read = TypeVar("Read")


def path_of(source: Source, argument: Argument) -> tuple[int, ...]:
    """Return the numbers of a path such as ``[0, 1]``."""
    numbers = re.findall(r"\d+", argument.text)
    if max(map(len, numbers), default=0) > _MOST_DIGITS:
        source.fail(f"a path has small numbers, such as [0, 1], not {quoted(argument.text, SHOWN)}", argument.span)
    return tuple(map(int, numbers))


def read_argument(source: Source, parameter: Parameter, argument: Argument) -> object:
    """Return the value of an argument for a parameter. Raises ``ScheduleError`` if it is not of the parameter's kind."""
    if not argument.text:
        source.fail(f"expected {expectation(parameter)}, found nothing", Span(argument.span.start, argument.span.start + 1))
    return _READERS[parameter.kind](source, parameter, argument)


def _read_name(source: Source, parameter: Parameter, argument: Argument) -> str:
    if not NAME.fullmatch(argument.text):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, SHOWN)}", argument.span)
    return argument.text


def _read_names(source: Source, parameter: Parameter, argument: Argument) -> tuple[str, ...]:
    if not argument.text.startswith("["):
        return (_read_name(source, parameter, argument),)
    if not argument.text.endswith("]"):
        source.fail("expected ']'", argument.span)
    start, end = argument.span.start + 1, argument.span.end - 1
    if not source.piece(start, end).text:
        return ()
    return tuple(_read_name(source, parameter, piece) for piece in source.pieces(start, end, ","))


def _read_integer(source: Source, parameter: Parameter, argument: Argument) -> int:
    if not INTEGER.fullmatch(argument.text) or len(argument.text) > _MOST_DIGITS:
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, SHOWN)}", argument.span)
    return int(argument.text)


def _read_choice(source: Source, parameter: Parameter, argument: Argument) -> str:
    if argument.text not in parameter.choices:
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, SHOWN)}", argument.span)
    return argument.text


def _read_boolean(source: Source, parameter: Parameter, argument: Argument) -> bool:
    if argument.text not in ("true", "false"):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, SHOWN)}", argument.span)
    return argument.text == "true"


def _read_text(source: Source, parameter: Parameter, argument: Argument) -> str:
    found = _inside_quotes(argument)
    return _read_name(source, parameter, argument) if found is None else found


def _inside_quotes(argument: Argument) -> str | None:
    text = argument.text
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else None


def _read_compiler(source: Source, parameter: Parameter, argument: Argument) -> str | None:
    found = _inside_quotes(argument)
    name = argument.text if found is None else found
    if name == "auto":
        return None
    if fault := compiler_fault(name):
        source.fail(fault, argument.span)
    return name


def _read_flags(source: Source, parameter: Parameter, argument: Argument) -> str:
    text = _inside_quotes(argument)
    if text is None:
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, SHOWN)}", argument.span)
    if fault := flags_fault(text):
        source.fail(fault, argument.span)
    return " ".join(text.split())


def _read_expression(source: Source, parameter: Parameter, argument: Argument) -> Expr:
    return _read_notation(source, argument, parse_expression)


def _read_notation(source: Source, argument: Argument, read: Callable[[str], Read]) -> Read:
    try:
        return read(" " * argument.span.start + argument.text)  # padded, so that errors name columns of the schedule
    except ExpressionError as error:
        first = str(error).split("\n")[0]
        located = re.fullmatch(r"(.*) \((?:line \d+, )?column (\d+)\)", first)
        if located is None:
            return source.fail(first, argument.span)
        start = min(int(located[2]) - 1, argument.span.end)
        return source.fail(located[1], Span(start, max(start + 1, argument.span.end)))


def _read_access(source: Source, parameter: Parameter, argument: Argument) -> Access:
    found = _read_expression(source, parameter, argument)
    if not isinstance(found, Access):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, SHOWN)}", argument.span)
    return found


def _read_addend(source: Source, parameter: Parameter, argument: Argument) -> Expr | Assignment:
    parse_addend = parse if "=" in argument.text else parse_expression
    return _read_notation(source, argument, parse_addend)


def _read_path(source: Source, parameter: Parameter, argument: Argument) -> tuple[int, ...]:
    if not PATH.fullmatch(argument.text):
        source.fail(f"expected {expectation(parameter)}, found {quoted(argument.text, SHOWN)}", argument.span)
    return path_of(source, argument)


_READERS: dict[str, Callable[[Source, Parameter, Argument], object]] = {
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
