"""Rows of measurements on a GPU, in one CSV file; each row is written at once."""

from __future__ import annotations

import csv
import gc
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

import click
import numpy as np

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


FILE, BEGUN = "gpu.csv", "gpu.begun"
"""Names of files: the rows of all parts and devices; and the rows that were begun, written once for each try."""

OURS = "generated"
"""Who computes, where it is not a rival."""

TRIES = 2
"""How often a row that does not end is tried; after that, the row says so."""


class DeviceLostError(Exception):
    """The device reported an error, after which this process cannot use it any more."""


class Rows:
    """The rows of a part, in a file to which every row is appended at once."""

    def __init__(self, folder: Path, part: str, device: str, minutes: float) -> None:
        self.path, self.part, self.device = folder / FILE, part, device
        self._begun = folder / BEGUN
        self._end = time.monotonic() + 60 * minutes
        self._known = {_key(row) for row in read_rows(self.path) if (row.part, row.device) == (part, device)}
        if not self.path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._write([field.name for field in fields(Row)])

    def missing_first(self, wanted: Mapping[str, Iterable[tuple[str, str]]]) -> list[str]:
        """Return names of inputs: those without a row first, then those that lack most rows.

        Args:
            wanted: the kernels and mappings of each input. Rivals that were measured on one input are wanted on all.
        """
        seen = {name for name, *_ in self._known}
        rivals = {row[1:] for row in self._known if row[2] != OURS}

        def missing(name: str) -> int:
            own = {(kernel, OURS, what) for kernel, what in wanted[name]}
            return sum((name, *row) not in self._known for row in own | rivals)

        return sorted(wanted, key=lambda name: (name in seen, -missing(name)))

    def has(self, name: str, kernel: str, who: str, begin: str) -> bool:
        """Return whether the file has a row of a mapping whose name begins so."""
        return any(known[:3] == (name, kernel, who) and known[3].startswith(begin) for known in self._known)

    def add(self, name: str, data: int, kernel: str, who: str, what: str, measure: Callable[[], tuple[list[float], int, str]]) -> None:
        """Measure and write a row, unless the file has it.

        Raises:
            TimeoutError: the part's time is over.
            DeviceLostError: the device reported an error, which is in the row; a new process goes on with the next row.
        """
        key = (name, kernel, who, what)
        if key in self._known:
            return
        if time.monotonic() > self._end:
            raise TimeoutError
        is_lost = False
        if self._tries(key) > TRIES:
            seconds, count, right = [], 0, f"did not end, {TRIES} times"
        else:
            try:
                seconds, count, right = measure()
            except (SparsetuneError, MemoryError) as error:
                seconds, count, right = [], 0, (str(error) or "no memory").splitlines()[0]
                is_lost = right.startswith("the device reports")
        low, middle, high = (float(value) for value in np.quantile(seconds or [0.0], (0.25, 0.5, 0.75)))
        measured = (middle, low, high, count, right, self.device, code_version(), commit(), str(date.today()))
        row = Row(self.part, name, data, kernel, who, what, *measured)
        self._write(list(asdict(row).values()))
        self._known.add(key)
        self._begun.unlink(missing_ok=True)
        shown = f"{middle * 1e3:.4g} ms" if seconds else "-"
        click.echo(f"{name}: {kernel}, {who}, {what}: {shown}, {'right' if right == 'yes' else right}")
        if is_lost:
            raise DeviceLostError
        gc.collect()  # frees memory of the device
        gc.freeze()  # the remaining objects stay; looking through them after every row would take longer than the row

    def _tries(self, key: tuple[str, ...]) -> int:
        """Note that a row is begun, and return how often it was begun, this time included."""
        begun = self._begun.read_text().splitlines() if self._begun.exists() else []
        name = " | ".join((self.part, *key))
        begun = [*(line for line in begun if line == name), name]
        self._begun.write_text("\n".join(begun))
        return len(begun)

    def _write(self, cells: Sequence[Any]) -> None:
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow(cells)
            file.flush()
            os.fsync(file.fileno())


ENDLESS = 60.0
"""Seconds that no row takes which ends."""


def forgive_cut(folder: Path) -> None:
    """Forget the try of a row that was cut because the time of its part was over, unless it had run for long."""
    begun = folder / BEGUN
    if begun.exists() and time.time() - begun.stat().st_mtime < ENDLESS:
        tries = begun.read_text().splitlines()[:-1]
        begun.write_text("\n".join(tries)) if tries else begun.unlink()


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.input, row.kernel, row.who, row.what


def left_first(parts: Iterable[str], rows: Iterable[Row], device: str) -> list[str]:
    """Return parts, those that are not finished on a device first."""
    ended = {row.part for row in rows if row.device == device and row.kernel == "state" and row.what.startswith("end ")}
    return sorted(parts, key=ended.__contains__)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Row(**{field.name: {"int": int, "float": float}.get(str(field.type), str)(row[field.name]) for field in fields(Row)})
            for row in csv.DictReader(file)
        ]
