"""Checks of the fields of records, and a reader that applies a table of them to a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any

from ...compiler.errors import DatabaseError
from ...compiler.source import quoted

Check = Callable[[Any], Any]
"""Takes the value of a field and returns it as it is stored, or raises ``Unfit``."""

NAME_LETTERS, TEXT_LETTERS = 1_000, 20_000
LARGEST = 2**63 - 1

_MOST_ITEMS, _DEPTH = 100_000, 8


class Unfit(Exception):
    """A field does not hold what is expected; the message says what is."""


def read_fields(given: object, kind: type, checks: Mapping[str, Check], where: str = "") -> dict[str, Any]:
    """Return the checked fields of an object that represents a value of a class; missing fields get the defaults of the class.

    Args:
        given: an object of JSON.
        kind: a dataclass.
        checks: for every field of the class.
        where: what stands before names of fields in messages, such as ``input.``.

    Raises:
        DatabaseError: a field is missing, not known, or does not hold what is expected.
    """
    if not isinstance(given, Mapping):
        raise DatabaseError(f"{where.rstrip('.')} is {shown(given)}, where an object is expected")
    for name in given:
        if name not in checks:
            raise DatabaseError(f"a field {where}{shown(name)} is not known to this version")
    found = {}
    for field in fields(kind):
        if field.name not in given:
            if field.default is MISSING and field.default_factory is MISSING:
                raise DatabaseError(f"{where}{field.name} is missing")
            continue
        try:
            found[field.name] = checks[field.name](given[field.name])
        except Unfit as unfit:
            raise DatabaseError(f"{where}{field.name} is {shown(given[field.name])}, where {unfit} is expected") from None
    return found


def shown(value: object) -> str:
    """Return a value of JSON for a message: on one line, shortened."""
    match value:
        case str():
            return quoted(value, 40)
        case None | bool() | float():
            return repr(value)
        case int():
            return repr(value) if -LARGEST <= value <= LARGEST else "a number of too many digits"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return f"a {type(value).__name__}"


def text(most: int = NAME_LETTERS, plain: bool = True, empty: bool = True) -> Check:
    """Return a check for texts that every database can hold; plain texts can also be printed."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > most or (not value and not empty):
            raise Unfit(f"a text of {0 if empty else 1} to {most} letters")
        if "\0" in value or not (value.isprintable() or (not plain and _is_unicode(value))):
            raise Unfit("a text without control characters")
        return value

    return check


def _is_unicode(value: str) -> bool:
    """Return whether a text can be encoded as UTF-8: it has no half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def number(low: float, high: float, what: str = "a number") -> Check:
    """Return a check for numbers of a range."""
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise Unfit(f"{what} from {low:g} to {high:g}")
        return float(value)

    return check


def whole(low: int, high: int) -> Check:
    """Return a check for whole numbers of a range."""
    def check(value: Any) -> int:
        if not is_whole(value) or not low <= value <= high:
            raise Unfit(f"a whole number from {low} to {high}")
        return value

    return check


def is_whole(value: Any) -> bool:
    """Return whether a value of JSON is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def truth(value: Any) -> bool:
    """Check for true or false, which tables hold as 1 and 0."""
    if not isinstance(value, int) or value not in (0, 1):
        raise Unfit("true or false")
    return bool(value)


def one_of(choices: Collection[str]) -> Check:
    """Return a check for texts out of a few."""
    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise Unfit(f"one of {', '.join(choices)}")
        return value

    return check


def optional(check: Check) -> Check:
    """Return a check that lets None pass."""
    return lambda value: None if value is None else check(value)


def list_of(check: Check) -> Check:
    """Return a check for lists whose items pass another one; they become tuples."""
    def check_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)) or len(value) > _MOST_ITEMS:
            raise Unfit(f"a list of at most {_MOST_ITEMS} items")
        return tuple(check(item) for item in value)

    return check_all


def pairs_of(check: Check) -> Check:
    """Return a check for pairs of a name and a value; no name comes twice."""

    def check_pair(value: Any) -> tuple[str, Any]:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise Unfit("a list of pairs of a name and a number")
        return text(empty=False)(value[0]), check(value[1])

    def check_all(value: Any) -> tuple[tuple[str, Any], ...]:
        found = list_of(check_pair)(value)
        if len(dict(found)) < len(found):
            raise Unfit("a list without repeated names")
        return found

    return check_all


def facts(value: Any) -> dict[str, Any]:
    """Check for words and numbers by name, nested a few times at most."""
    if not isinstance(value, Mapping):
        raise Unfit("an object")
    return _plain(dict(value), _DEPTH)


def _plain(value: Any, depth: int) -> Any:
    if depth == 0:
        raise Unfit("an object that is nested less deeply")
    match value:
        case None | bool():
            return value
        case int():
            return whole(-LARGEST, LARGEST)(value)
        case float():
            return number(-1e300, 1e300)(value)
        case str():
            return text(TEXT_LETTERS, plain=False)(value)
        case list() | tuple():
            return [_plain(item, depth - 1) for item in value]
        case dict():
            return {text(plain=False)(name): _plain(item, depth - 1) for name, item in value.items()}
    raise Unfit("an object of words and numbers")


def moment(value: Any) -> str:
    """Check for a time in ISO 8601 with its offset: texts of equal offsets are ordered as the times are."""
    text(40)(value)
    try:
        offset = datetime.fromisoformat(value).utcoffset()
    except ValueError:
        offset = None
    if offset is None or not value.isascii():
        raise Unfit("a time such as 2026-01-31T12:00:00.000+00:00")
    return value
