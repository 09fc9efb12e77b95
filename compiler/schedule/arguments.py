"""Descriptions of the kinds of parameters, and the check of directives that are given as objects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral
from typing import NoReturn

from ..errors import ScheduleError
from ..notation.nodes import Access, Assignment, Expr, transform_expression
from ..source import quoted
from .build_options import compiler_fault, flags_fault
from .directives import DIRECTIVES, Directive, Parameter, Required

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SOUND = "arguments are sound"  # attribute of directives that were checked; many schedules share directives


def expectation(parameter: Parameter) -> str:
    """Return a description of a parameter's values, for messages."""
    what = parameter.field.replace("_", " ")
    match parameter.kind:
        case "index":
            return f"a loop ({what})"
        case "new":
            return f"a new name ({what})"
        case "indices" | "news":
            return f"an index or several in brackets ({what})"
        case "integer" | "ordinal":
            return f"an integer ({what})"
        case "boolean":
            return f"true or false ({what})"
        case "choice":
            return f"one of {', '.join(parameter.choices)}"
        case "access":
            return "an operand such as B, or one access of it such as B(i,j)"
        case "expression":
            return "an expression such as B(i,k) * C(k,j)"
        case "addend":
            return "an expression such as B(i,k) * C(k,j), or one for a workspace such as w(i) = B(i,j) * x(j)"
        case "path":
            return f"a path such as [0] or [1, 0] ({what})"
        case "text":
            return f'text in quotes ({what}), such as "csc"'
        case "compiler":
            return "a compiler: gcc, clang or auto"
        case "flags":
            return 'flags in quotes, such as "-O3 -march=native"'
        case _:
            return f"a name ({what})"


def checked(directive: object, number: int) -> Directive:
    """Return a directive with arguments of the types of its parameters: lists become tuples, numpy integers become int.

    Args:
        directive: a directive made by hand.
        number: its place in the schedule, for messages.

    Raises:
        ScheduleError: it is not a directive, or an argument is not of the parameter's kind.
    """
    if not isinstance(directive, Directive) or type(directive) is not DIRECTIVES.get(directive.keyword):
        raise ScheduleError(f"a schedule holds directives, not {type(directive).__name__}")
    if _SOUND in directive.__dict__:
        return directive
    check = _Check(directive, number)
    values: dict[str, object] = {}
    for parameter in directive.parameters:
        given = getattr(directive, parameter.field)
        last_given = parameter.default is Required or given is not None
        values[parameter.field] = check.all(parameter, given) if parameter.many else check.one(parameter, given) if last_given else None
    missing = None
    for parameter in (parameter for parameter in directive.parameters if parameter.kind != "ordinal"):
        if missing is not None and values[parameter.field] is not None:
            check.fail(missing, None)
        missing = parameter if values[parameter.field] is None and parameter.default is None else missing
    path = check.path(directive.path)
    changed = path is not directive.path or any(value is not getattr(directive, name) for name, value in values.items())
    found = replace(directive, **values, path=path) if changed else directive
    found.__dict__[_SOUND] = True
    return found


class _Check:
    """The check of one directive."""

    def __init__(self, directive: Directive, number: int) -> None:
        self.where = f"directive {number}, {directive.keyword}"
        self.takes_path = directive.takes_path

    def fail(self, parameter: Parameter, given: object) -> NoReturn:
        found = "nothing" if given is None or given == () else quoted(given, 40) if isinstance(given, str) else repr(given)[:40]
        raise ScheduleError(f"{self.where}: expected {expectation(parameter)}, found {found}")

    def all(self, parameter: Parameter, given: object) -> tuple[object, ...]:
        if isinstance(given, str) or not isinstance(given, Iterable) or not (items := tuple(given)):
            self.fail(parameter, given)
        return tuple(self.one(parameter, item) for item in items)

    def one(self, parameter: Parameter, given: object) -> object:
        """Return an argument equal to what the parser gives for its text."""
        match parameter.kind, given:
            case ("index" | "name" | "new"), str() if NAME.fullmatch(given):
                return given
            case ("indices" | "news"), str() if NAME.fullmatch(given):
                return (given,)
            case ("indices" | "news"), list() | tuple() if all(isinstance(name, str) and NAME.fullmatch(name) for name in given):
                return tuple(given)
            case ("integer" | "ordinal"), Integral() if not isinstance(given, bool):
                return int(given)
            case "boolean", bool():
                return given
            case "choice", str() if given in parameter.choices:
                return given
            case "access", Access():
                return _plain(given)
            case ("expression" | "addend"), Expr():
                return _plain(given)
            case "addend", Assignment():
                target = _plain(given.target)
                assert isinstance(target, Access)
                return Assignment(target, given.operator, _plain(given.value))
            case "path", list() | tuple() if _is_path(given):
                return tuple(given)
            case "text", str() if '"' not in given:
                return given
            case "compiler", None | "auto":
                return None
            case "compiler", str():
                return self.allowed(given, compiler_fault(given))
            case "flags", str():
                return " ".join(self.allowed(given, flags_fault(given)).split())
        return self.fail(parameter, given)

    def allowed(self, given: str, fault: str | None) -> str:
        if fault is not None:
            raise ScheduleError(f"{self.where}: {fault}")
        return given

    def path(self, given: object) -> tuple[int, ...] | None:
        if given is None:
            return None
        if not self.takes_path:
            raise ScheduleError(f"{self.where}: it takes no path")
        if not isinstance(given, list | tuple) or not _is_path(given):
            raise ScheduleError(f"{self.where}: a path has small numbers, such as (0, 1), not {given!r}")
        return tuple(given)


def _plain(value: Expr) -> Expr:
    return transform_expression(value, _plainly)


def _plainly(node: Expr) -> Expr | None:
    """Return an access without protocols and copies; None for other nodes and for accesses without these."""
    said = isinstance(node, Access) and (node.protocols or node.stored is not None or type(node) is not Access or node.span is not None)
    return Access(node.tensor, node.subscripts) if isinstance(node, Access) and said else None


def _is_path(given: list[object] | tuple[object, ...]) -> bool:
    return all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in given)
