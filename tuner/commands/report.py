"""``tune-kernel report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..report import write_report
from . import options
from .db import open_existing
from .help import ExampleCommand
from .output import note


@click.command(
    "report",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel report -o report.html", "everything in the default database"),
        ("tune-kernel report --db shared.sqlite -o report.html", "another database"),
        ("tune-kernel report --target cuda -o gpu.html", "what was tuned for GPUs"),
        ("tune-kernel report --bench bench.json -o report.html", "with what 'tune-kernel bench quick --json > bench.json' measured"),
    ),
)
@options.together(
    options.database,
    click.option("--bench", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="The output of 'tune-kernel bench --json': times of other libraries and of the static model's choice."),
    options.only_target,
    click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The page to write."),
)  # fmt: skip
def command(**given: Any) -> None:
    """Write one HTML page with plots and tables of what the database holds; it needs no network."""
    with open_existing(given["database"]) as database:
        write_report(given["output"], database, given["bench"], given["target"])
    note(f"wrote {given['output']}")
