"""Rows of measurements on a GPU, in a CSV file for every part: each is written as soon as it is there."""

from __future__ import annotations

import csv
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

import click

from ...compiler.errors import SparsetuneError
from ...compiler.frozen import frozen
from ..environment import code_version, commit


@frozen
class Row:
    """One measurement. ``right``: "yes", or what is wrong; ``seconds`` is the median, ``low`` and ``high`` are quartiles."""

    part: str
    input: str
    entries: int
    kernel: str
    who: str
    what: str
    seconds: float
    low: float
    high: float
    bytes: int
    right: str
    device: str
    version: str
    commit: str
    date: str


class Rows:
    """The rows of a part, in a file that is written on with every row."""

    def __init__(self, folder: Path, part: str, device: str, minutes: float) -> None:
        self.path, self.part, self.device = folder / f"gpu_{part}.csv", part, device
        self._end = time.monotonic() + 60 * minutes
        self._known = {(row.input, row.kernel, row.who, row.what) for row in read_rows(self.path) if row.device == device}
        if not self.path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._write([field.name for field in fields(Row)])

    def add(self, name: str, data: int, kernel: str, who: str, what: str, measure: Callable[[], tuple[list[float], int, str]]) -> None:
        """Measure and write a row, unless it is there. Raises ``TimeoutError`` when the part's time is over."""
        if (name, kernel, who, what) in self._known:
            return
        if time.monotonic() > self._end:
            raise TimeoutError
        try:
            seconds, count, right = measure()
        except (SparsetuneError, MemoryError) as error:
            seconds, count, right = [], 0, str(error).splitlines()[0]
        low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else [seconds[0] if seconds else 0.0] * 3
        measured = (middle, low, high, count, right, self.device, code_version(), commit(), str(date.today()))
        row = Row(self.part, name, data, kernel, who, what, *measured)
        self._write(list(asdict(row).values()))
        shown = f"{middle * 1e3:.4g} ms" if seconds else "-"
        click.echo(f"{name}: {kernel}, {who}, {what}: {shown}, {'right' if right == 'yes' else right}")

    def _write(self, cells: Sequence[Any]) -> None:
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow(cells)
            file.flush()
            os.fsync(file.fileno())


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Row(**{field.name: {"int": int, "float": float}.get(str(field.type), str)(row[field.name]) for field in fields(Row)})
            for row in csv.DictReader(file)
        ]
