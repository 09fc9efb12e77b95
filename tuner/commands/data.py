"""``tune-kernel data``."""

from __future__ import annotations

from typing import Any

import click

from ...datasets import describe, fetch, list_catalogue
from . import options
from .help import ExampleCommand, ExampleGroup
from .output import note, print_json, print_table


@click.group(
    "data",
    cls=ExampleGroup,
    examples=(
        ("tune-kernel data list", "every name, and the kinds of random inputs"),
        ("tune-kernel data info random:rmat:scale=18:nnz=4e6", "shape and nonzeros"),
        ("tune-kernel data get HB/494_bus frostt:nell-2", "download into the data folder"),
    ),
)
def command() -> None:
    """List, describe and download matrices and tensors: SuiteSparse, FROSTT, synthetic ones."""


@command.command(
    "list", cls=ExampleCommand, examples=(("tune-kernel data list bus", "names with 'bus'"), ("tune-kernel data list --json", "as JSON"))
)
@click.argument("part", default="")
@options.as_json
def list_(part: str, as_json: bool) -> None:
    """List the names of the catalogue (with PART in them), the files of the data folder and the kinds of random inputs."""
    _show([row for row in list_catalogue() if part.lower() in row["name"].lower()], as_json)


@command.command("info", cls=ExampleCommand, examples=(("tune-kernel data info HB/494_bus", "shape, nonzeros, where it comes from"),))
@click.argument("names", nargs=-1, required=True)
@options.as_json
def info(names: tuple[str, ...], as_json: bool) -> None:
    """Describe inputs without downloading them."""
    _show([describe(name) for name in names], as_json)


@command.command("get", cls=ExampleCommand, examples=(("tune-kernel data get HB/494_bus", "download it"),))
@click.argument("names", nargs=-1, required=True)
@options.as_json
def get(names: tuple[str, ...], as_json: bool) -> None:
    """Download inputs into the data folder (SPARSETUNE_DATA); what is there already is left as it is."""
    rows = []
    for name in names:
        path = fetch(name)
        note(f"{name} is {path}")
        rows.append(describe(name))
    _show(rows, as_json)


@command.command("path", cls=ExampleCommand, examples=(("tune-kernel data path HB/494_bus", "where its file is, downloaded if need be"),))
@click.argument("names", nargs=-1, required=True)
@options.as_json
def path(names: tuple[str, ...], as_json: bool) -> None:
    """Print the files of inputs."""
    found = [str(fetch(name)) for name in names]
    if as_json:
        print_json({"items": [{**describe(name), "path": place} for name, place in zip(names, found, strict=True)]})
    else:
        print("\n".join(found))


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"items": rows})
        return
    shown = [
        [
            row["name"],
            row["source"],
            "?" if row["shape"] is None else " x ".join(map(str, row["shape"])),
            "?" if row["nnz"] is None else str(row["nnz"]),
            "here" if row["path"] else "",
            row["kind"],
        ]
        for row in rows
    ]
    print_table(shown, ("name", "source", "shape", "nnz", "file", "kind"))
