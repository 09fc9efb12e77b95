"""``tune-kernel db``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import click

from ...compiler.errors import DatabaseError
from ...compiler.native.whole import whole_file
from ..database import Database, open_database
from ..database.interchange import import_json_lines, kernel_tuner_cache, t4_metadata, t4_results, write_csv, write_json_lines
from ..records import Measurement
from ..shipped import write_shipped
from ..written import write_whole
from . import options
from .help import ExampleCommand, ExampleGroup
from .output import note, print_json

_NAMES = {"jsonl": "JSON Lines", "csv": "CSV", "shipped": "JSON Lines to ship", "t4": "T4 results", "kernel-tuner": "Kernel Tuner caches"}
_WRITERS: dict[str, Callable[[Iterator[Any], IO[str]], int]] = {"jsonl": write_json_lines, "csv": write_csv, "shipped": write_shipped}
_KINDS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", "": "jsonl"}
"""Ending of a file: its export format."""


@click.group(
    "db",
    cls=ExampleGroup,
    examples=(
        ("tune-kernel db stats", "what the database holds"),
        ("tune-kernel db export records.jsonl", "save everything as JSON Lines"),
        ("tune-kernel db export results.json --as t4", "for other tools"),
    ),
)
def command() -> None:
    """Inspect, export and import the schedule database."""


@command.command("stats", cls=ExampleCommand, examples=(("tune-kernel db stats --json", "as JSON"),))
@options.together(options.database, options.as_json)
def stats(**given: Any) -> None:
    """Show how many records, kernels and machines there are."""
    with open_existing(given["database"]) as database:
        _show(database, given["as_json"], True)


@command.command("check", cls=ExampleCommand, examples=(("tune-kernel db check", "look for damage"),))
@options.together(options.database, options.as_json)
def check(**given: Any) -> int:
    """Check the database for damage; status 1 if there is any."""
    with open_existing(given["database"]) as database:
        problems = database.check()
        for problem in problems:
            note(problem)
        _show(database, given["as_json"], not problems)
    return 1 if problems else 0


@command.command("import", cls=ExampleCommand, examples=(("tune-kernel db import records.jsonl", "add what 'db export' saved"),))
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.together(options.database, options.as_json)
def import_(files: tuple[Path, ...], **given: Any) -> None:
    """Add the records of JSON Lines files.

    Records that the database has already stay as they are.
    """
    with open_database(given["database"]) as database:
        for path in files:
            count, new = import_json_lines(database, path, note)
            note(f"{path}: {count} records, {new} of them new")
        _show(database, given["as_json"], True)


@command.command("export", cls=ExampleCommand, examples=(
    ("tune-kernel db export records.jsonl", "everything, to be imported elsewhere"),
    ("tune-kernel db export -", "to standard output"),
    ("tune-kernel db export records.csv", "a table for spreadsheets and data frames"),
    ("tune-kernel db export caches/ --as kernel-tuner", "one file for each kernel and input"),
))  # fmt: skip
@click.argument("output", metavar="FILE")
@click.option("--as", "kind", type=click.Choice(list(_NAMES)),
              help="jsonl: JSON Lines, which 'db import' reads; csv; shipped: decisions as they ship with the package; t4: T4 results "
                   "with a metadata file; kernel-tuner: a folder of Kernel Tuner caches.  "
                   "[default: csv for FILE.csv, jsonl for FILE.jsonl and FILE.ndjson]")  # fmt: skip
@click.option("--decisions", is_flag=True, help="Only what searches decided, without their trials; for JSON Lines and CSV.")
@options.together(options.database, options.as_json)
def export(output: str, kind: str, decisions: bool, **given: Any) -> None:
    """Export the records to FILE.

    FILE is - for standard output, and a folder for Kernel Tuner caches.
    """
    kind = kind or _kind_of(output)
    with open_existing(given["database"]) as database:
        try:
            if kind == "kernel-tuner":
                count = _export_caches(database, Path(output))
            elif kind == "t4":
                count = _export_t4(database, output)
            else:
                records = database.decisions() if decisions or kind == "shipped" else database.records()
                with _opened(output) as stream:
                    count = _WRITERS[kind](records, stream)
        except BrokenPipeError:  # the reader has closed the pipe
            raise
        except OSError as error:
            raise DatabaseError(f"cannot write {output}: {error.strerror or error}") from None
        if output != "-":
            note(f"{output}: {count} {'records' if kind in _WRITERS else 'measurements'} as {_NAMES[kind]}")
            _show(database, given["as_json"], True)


def _kind_of(output: str) -> str:
    """Return the export format that belongs to the ending of a file; JSON Lines if it has no ending.

    Raises:
        DatabaseError: the ending belongs to no format.
    """
    ending = Path(output).suffix.lower()
    if ending not in _KINDS:
        endings = ", ".join(filter(None, _KINDS))
        raise DatabaseError(f"cannot tell the format of {output} from its ending; use one of {endings}, or --as {'|'.join(_NAMES)}")
    return _KINDS[ending]


def open_existing(url: str | None) -> Database:
    """Open a database. One that is named must exist; the default one is made if it is missing.

    Raises:
        DatabaseError: there is none, or it cannot be opened.
    """
    return open_database() if url is None else open_database(url, read_only=True)


def _show(database: Database, as_json: bool, ok: bool) -> None:
    found = database.stats()
    if as_json:
        counts = {name: found[name] for name in ("records", "kernels", "machines")}
        print_json({**counts, "path": database.url, "ok": ok})
        return
    print(f"path          {database.url}")
    for name, count in found.items():
        print(f"{name:<12}  {count}")
    print(f"state         {'ok' if ok else 'damaged'}")


def _export_t4(database: Database, output: str) -> int:
    measurements = list(database.measurements())
    with _opened(output) as stream:
        json.dump(t4_results(measurements), stream, indent=1)
    if output != "-":
        write_whole(Path(output).with_suffix(".metadata.json"), json.dumps(t4_metadata(measurements), indent=1))
    return len(measurements)


def _export_caches(database: Database, folder: Path) -> int:
    grouped: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in database.measurements():
        if measurement.role != "final":
            grouped.setdefault((measurement.workload.key, measurement.input.key), []).append(measurement)
    folder.mkdir(parents=True, exist_ok=True)
    for (workload, entry), measurements in grouped.items():
        name = re.sub(r"[^A-Za-z0-9]+", "_", measurements[0].workload.kernel).strip("_")
        write_whole(folder / f"{name}-{workload}-{entry}.json", json.dumps(kernel_tuner_cache(measurements), indent=1))
    return sum(map(len, grouped.values()))


@contextmanager
def _opened(output: str) -> Iterator[IO[str]]:
    """Open a file that is written whole or not at all, or standard output for ``-``, which stays open."""
    if output == "-":
        yield sys.stdout
        return
    with whole_file(Path(output)) as file, TextIOWrapper(file, encoding="utf-8", newline="") as stream:
        yield stream
