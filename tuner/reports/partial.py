"""Rows of results that are saved while a long measurement runs, so that it goes on where it was stopped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from .publishing import publish

Row = TypeVar("Row")


class Partial(Generic[Row]):
    """Rows in a file of their own, as long as the measurement is not complete.

    Args:
        path: of the file.
        kind: a dataclass of texts and numbers.
    """

    def __init__(self, path: Path, kind: type[Row]) -> None:
        self._path = path
        self.rows = read_rows(path, kind) if path.is_file() else []

    def add(self, rows: Iterable[Row]) -> None:
        """Keep more rows; they last whatever happens next."""
        self.rows += rows
        write_rows(self._path, self.rows)

    def done(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write instances of one dataclass as CSV, its fields in order; whatever happens, the file is the old one or the new one, whole."""
    text, names = io.StringIO(), [field.name for field in fields(rows[0])] if rows else []
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in rows)
    publish(path, text.getvalue())


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """Return the rows of a file of ``write_rows``."""
    types = {"str": str, "int": int, "float": float}
    readers = {field.name: types[str(field.type)] for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    with path.open(newline="") as file:
        return [kind(**{name: readers[name](text) for name, text in row.items()}) for row in csv.DictReader(file)]
