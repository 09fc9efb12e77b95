"""TOML tables that are read key by key, so that every mistake in a file gives one line that names it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..compiler.errors import DataError
from ..compiler.source import nearest

FOLDER = Path(__file__).resolve().parents[1] / "configs"
"""The configurations that ship with the package."""

_MISSING = object()


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a file.

    Raises:
        DataError: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from None


class Table:
    """A TOML table that is read key by key; what nobody asked for is an error."""

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, dict):
            raise DataError(f"{where}: a table is expected")
        self.left = dict(content)
        self.where = where
        self._asked: list[str] = []

    def done(self) -> None:
        """Refuse keys that were not read."""
        for key in self.left:
            raise DataError(f"{self.where}: unknown key '{key}'{nearest(key, self._asked)}; keys are {', '.join(sorted(self._asked))}")

    def text(self, key: str, default: Any = _MISSING) -> Any:
        """Return a text; ``default`` where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is no text.
        """
        return self._take(key, default, lambda value: isinstance(value, str), "a text")

    def count(self, key: str, default: Any = _MISSING) -> Any:
        """Return a whole number from 1 on; ``default`` where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is no such number.
        """
        return self._take(key, default, _is_count, "a whole number from 1 on")

    def number(self, key: str, default: Any = _MISSING) -> Any:
        """Return a positive number; ``default`` where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is no positive number.
        """
        return self._take(key, default, _is_positive, "a positive number")

    def texts(self, key: str, default: Any = _MISSING) -> tuple[str, ...]:
        """Return a list of texts; ``default`` where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is no list of texts.
        """
        return tuple(self._take(key, default, lambda value: _all(value, lambda item: isinstance(item, str)), "a list of texts"))

    def counts(self, key: str, default: Any = _MISSING) -> tuple[int, ...]:
        """Return whole numbers from 1 on, of which a single one needs no list; ``default`` where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is neither.
        """
        expected = "a whole number from 1 on, or a list of them"
        found = self._take(key, default, lambda value: _is_count(value) or _all(value, _is_count), expected)
        return (found,) if isinstance(found, int) else tuple(found)

    def table(self, key: str, default: Any = _MISSING) -> Table:
        """Return a table inside this one, whose messages name it; ``default``, as a table, where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is no table.
        """
        found = self._take(key, default, lambda value: isinstance(value, dict), "a table")
        return Table(found, f"{self.where}, [{key}]")

    def tables(self, key: str) -> list[Table]:
        """Return a list of tables inside this one, whose messages name them; empty where the key is not there.

        Raises:
            DataError: the value is no list of tables.
        """
        found = self._take(key, [], lambda value: _all(value, lambda item: isinstance(item, dict)), "a list of tables")
        return [Table(item, f"{self.where}, {key} '{item.get('name', number)}'") for number, item in enumerate(found, 1)]

    def truth(self, key: str, default: Any = _MISSING) -> Any:
        """Return true or false; ``default`` where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is neither.
        """
        return self._take(key, default, lambda value: isinstance(value, bool), "true or false")

    def range(self, key: str, default: Any = _MISSING) -> Any:
        """Read two numbers, from and to."""
        found = self._take(key, default, _is_range, "a list of two numbers from 0 on, from and to, such as [1e5, 1e7]")
        return None if found is None else (float(found[0]), float(found[1]))

    def one_of(self, key: str, choices: Sequence[str], default: Any = _MISSING) -> Any:
        """Return one of some texts; ``default`` where the key is not there.

        Raises:
            DataError: the key is missing and no ``default`` is given, or the value is not among ``choices``; the message names the nearest.
        """
        found = self._take(key, default, lambda value: isinstance(value, str), "a text")
        if found and found not in choices:
            raise DataError(f"{self.where}: {key} is '{found}'{nearest(found, choices)}; there are {', '.join(choices)}")
        return found

    def numbers(self, kind: type[Any]) -> dict[str, Any]:
        """Read the numeric fields of a dataclass that are given."""
        known = [entry for entry in fields(kind) if entry.type in ("int", "float")]
        readers = {"int": self.count, "float": self.number}
        found = {entry.name: readers[str(entry.type)](entry.name, None) for entry in known}
        return {name: value for name, value in found.items() if value is not None}

    def _take(self, key: str, default: Any, fits: Any, expected: str) -> Any:
        self._asked.append(key)
        value = self.left.pop(key, default)
        if value is _MISSING:
            raise DataError(f"{self.where}: the key '{key}' is missing{nearest(key, self.left).replace('did you mean', 'is it')}")
        if value is not default and not fits(value):
            raise DataError(f"{self.where}: {key} is {value!r}; {expected} is expected")
        return value


def _is_range(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(one, (int, float)) and one is not True for one in value):
        return False
    return 0 <= value[0] <= value[1]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _all(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and all(fits(item) for item in value)
