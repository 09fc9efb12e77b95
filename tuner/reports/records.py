"""Times and schedules behind the figures, as CSV files that later runs add to."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterable
from dataclasses import astuple, field, fields
from pathlib import Path

from ...compiler.frozen import frozen
from ...compiler.native.machine import this_machine
from ..environment import commit
from ..measure.finals import Comparison
from .publishing import publish
from .race import Series


@frozen(kw_only=True)
class Taken:
    """The machine, the day (ISO 8601) and the commit of a measurement; empty texts where they are not known."""

    machine: str = field(default_factory=lambda: this_machine().model)
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d"))
    commit: str = field(default_factory=commit)

    @property
    def text(self) -> str:
        """Machine, date and commit, as pages show them."""
        return f"{self.machine or 'machine unknown'}, {self.date or 'date unknown'}, commit {self.commit or 'unknown'}"


@frozen
class Row(Taken):
    """Times of one variant in one race.

    Attributes:
        figure: the figure that it belongs to; rows of one figure, kernel and input ran in one race.
        variant: "default", "tuned", "scipy" and so on.
        load: load average of the last minute when the race began.
        schedule: that of our variants.
        times: seconds, one a round.
    """

    figure: str
    kernel: str
    input: str
    variant: str
    threads: int
    load: float
    schedule: str
    times: Series

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What tells the rows of a file apart."""
        return self.figure, self.kernel, self.input, self.variant, self.threads

    @property
    def race(self) -> tuple[str, str, str]:
        """Figure, kernel and input: rows for which these are equal ran in one race."""
        return self.figure, self.kernel, self.input


@frozen
class Chosen:
    """The schedule that tuning chose for a kernel on an input, with the trials and the budget in seconds of the campaign (None: not
    recorded)."""

    kernel: str
    input: str
    threads: int
    schedule: str
    trials: int | None = None
    budget: float | None = None


@frozen
class Count:
    """Operations of one loop nest on one input: counted by running its loops, and by a formula."""

    input: str
    nest: str
    ranks: str
    counted: int
    expected: int


_ROW_HEADER = ("figure", "kernel", "input", "variant", "threads", "load", "median_ms", "least_ms", "spread", "schedule", "machine", "date",
               "commit", "times_ms")


class Races:
    """The rows of a file; adding a race replaces an earlier run of the same race."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = {row.key: row for row in rows}

    @classmethod
    def read(cls, path: Path) -> Races:
        """Return the rows of a file."""
        return cls(_row(record) for record in read_records(path))

    def write(self, path: Path) -> None:
        """Write all rows to a file, sorted by figure, kernel and input."""
        rows = sorted(self.rows.values(), key=lambda row: row.key[:3])
        write_records(path, _ROW_HEADER, map(_cells, rows))

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows. Each race that has a row among them loses all rows of its earlier run."""
        found = list(rows)
        races = {row.race for row in found}
        self.rows = {key: row for key, row in self.rows.items() if row.race not in races} | {row.key: row for row in found}

    def find(self, figure: str, kernel: str, input: str, variant: str, threads: int) -> Row | None:
        """Return the row of one variant; None where it was not measured."""
        return self.rows.get((figure, kernel, input, variant, threads))

    def of(self, figure: str) -> dict[tuple[str, str], list[Row]]:
        """Return the rows of a figure by kernel and input."""
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows.values():
            if row.figure == figure:
                found.setdefault((row.kernel, row.input), []).append(row)
        return found

    def by_variant(self, figure: str, kernel: str) -> list[tuple[str, dict[tuple[str, int], Row]]]:
        """Return (input, rows by variant and threads) of a kernel, inputs in the order of the numbers in their names."""
        races = ((name, rows) for (of, name), rows in self.of(figure).items() if of == kernel)
        found = [(name, {(row.variant, row.threads): row for row in rows}) for name, rows in races]
        return sorted(found, key=lambda item: [int(part) if part.isdigit() else 0 for part in re.findall(r"\d+|\D+", item[0])])


def times_faster(slower: Row | None, faster: Row | None) -> Comparison | None:
    """Return the paired ratios of two rows of one race; None where one is missing."""
    return slower.times.over(faster.times) if slower is not None and faster is not None else None


def read_chosen(path: Path) -> dict[tuple[str, str, int], Chosen]:
    """Return the chosen schedules in a CSV file by kernel, input and number of threads."""
    found = [
        Chosen(
            record["kernel"], record["input"], int(record["threads"]), record["schedule"],
            int(record["trials"]) if record.get("trials") else None, float(record["budget"]) if record.get("budget") else None,
        )
        for record in read_records(path)
    ]  # fmt: skip
    return {(chosen.kernel, chosen.input, chosen.threads): chosen for chosen in found}


def write_chosen(path: Path, chosen: Iterable[Chosen]) -> None:
    """Write chosen schedules as CSV, in order."""
    rows = sorted(chosen, key=lambda one: (one.kernel, one.input, one.threads))
    write_records(path, [field.name for field in fields(Chosen)], (astuple(row) for row in rows))


def read_counts(path: Path) -> list[Count]:
    """Return the counts in a CSV file."""
    return [
        Count(record["input"], record["nest"], record["ranks"], int(record["counted"]), int(record["expected"]))
        for record in read_records(path)
    ]


def write_counts(path: Path, counts: Iterable[Count]) -> None:
    """Write counts as CSV."""
    write_records(path, [field.name for field in fields(Count)], (astuple(count) for count in counts))


def _cells(row: Row) -> tuple[object, ...]:
    times = row.times
    shown = (f"{1e3 * times.median:.4g}", f"{1e3 * times.least:.4g}", f"{times.spread:.3f}")
    state = (row.machine, row.date, row.commit)
    return (*row.key, f"{row.load:.2f}", *shown, row.schedule, *state, " ".join(f"{1e3 * time:.5g}" for time in times.times))


def _row(record: dict[str, str]) -> Row:
    times = Series(tuple(float(time) / 1e3 for time in record["times_ms"].split()))
    return Row(record["figure"], record["kernel"], record["input"], record["variant"], int(record["threads"]), float(record["load"]),
               record["schedule"], times, **{name: record.get(name) or "" for name in ("machine", "date", "commit")})  # fmt: skip


def read_records(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by the names in its first line; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_records(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(list(header))
    writer.writerows(rows)
    publish(path, text.getvalue())
