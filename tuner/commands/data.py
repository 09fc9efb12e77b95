"""``tune-kernel data``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...compiler.errors import NetworkError
from ...datasets import Query, check_file, describe, fetch, list_catalogue, load, pattern_facts, search, spy_text, write_spy
from ...datasets.catalogue import Item
from ...datasets.query import FIELDS, SHAPES, SOURCES
from . import options
from .help import ExampleCommand, ExampleGroup
from .output import note, print_json, print_table


@click.group(
    "data",
    cls=ExampleGroup,
    examples=(
        ("tune-kernel data list", "well-known matrices, all tensors, and the kinds of random inputs"),
        ("tune-kernel data search --kind structural --nnz 1e5:1e6", "matrices of the whole collection that fit"),
        ("tune-kernel data info random:rmat:scale=12:nnz=4e4", "shape and nonzeros"),
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
    """List well-known inputs, files of the data folder, and kinds of random inputs.

    With PART, only names that contain it. "data search" finds the other matrices of SuiteSparse.
    """
    _show([row for row in list_catalogue() if part.lower() in row["name"].lower()], as_json)


class Bounds(click.ParamType):
    """``LOW:HIGH``, ``LOW:`` or ``:HIGH``; gives (low, high)."""

    name = "low:high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the range as two floats; a single number is both bounds, a missing one is 0 or infinity.

        Raises:
            click.BadParameter: it is no range, or not in increasing order from 0 on.
        """
        if isinstance(value, tuple):
            return value
        low, separator, high = str(value).partition(":")
        try:
            found = float(low or 0), float(high or "inf") if separator else float(low)
        except ValueError:
            self.fail(f"{value!r}: a range is LOW:HIGH, such as 1e4:1e6", param, ctx)
        if not 0 <= found[0] <= found[1]:
            self.fail(f"{value!r}: a range goes from its lower to its higher number, both from 0 on", param, ctx)
        return found


@command.command(
    "search",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel data search --group Williams", "all of a group"),
        ("tune-kernel data search --kind structural --rows 1e4:1e5 --nnz 1e5:1e7", "by kind and size"),
        ("tune-kernel data search --source frostt --nnz :1e7", "tensors of at most ten million nonzeros"),
        ("tune-kernel data search cage --shape square --field real --limit 5 --json", "by part of the name, as JSON"),
    ),
)
@click.argument("part", default="")
@click.option("--group", default="", help="A group of SuiteSparse, such as SNAP.")
@click.option("--kind", default="", help="A part of the problem's kind, such as structural, graph or circuit.")
@click.option("--rows", type=Bounds(), help="Bounds of the extent of the first mode.")
@click.option("--columns", type=Bounds(), help="Bounds of the extent of the second mode.")
@click.option("--nnz", type=Bounds(), help="Bounds of the number of stored entries.")
@click.option("--source", type=click.Choice(SOURCES), default=None, help="The collection.")
@click.option("--field", type=click.Choice(FIELDS), default=None, help="Kind of the values; binary: a pattern without values.")
@click.option("--shape", type=click.Choice(SHAPES), default=None, help="Shape of the matrix.")
@click.option("--symmetric/--unsymmetric", default=None, help="Whether the pattern is symmetric.")
@click.option("--definite", is_flag=True, default=None, help="Only matrices known to be symmetric and positive definite.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Most rows to show.")
@click.option("--newest", is_flag=True, help="Search the index that SuiteSparse has now (fetched with ssgetpy), not the bundled one.")
@options.as_json
def search_(part: str, limit: int, newest: bool, as_json: bool, **wanted: Any) -> None:
    """Search all of SuiteSparse and FROSTT; the smallest come first.

    With PART, only names that contain it.
    """
    query = Query(name=part, **{name: value for name, value in wanted.items() if value is not None})
    try:
        found = search(query, newest)
    except NetworkError as error:
        note(str(error))
        found = search(query)
    _show([_item_row(item) for item in found[:limit]], as_json)
    if len(found) > limit:
        note(f"{len(found) - limit} more; --limit {len(found)} shows all")


def _item_row(item: Item) -> dict[str, Any]:
    return {
        "name": item.name, "source": item.source, "shape": None if item.shape is None else list(item.shape), "nnz": item.nnz,
        "kind": item.kind, "path": None, "url": item.url,
    }  # fmt: skip


@command.command(
    "info",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel data info HB/494_bus", "shape, nonzeros, origin, and the pattern if the file is here"),
        ("tune-kernel data info random:stencil5:30 --png stencil.png", "and a picture of it"),
    ),
)
@click.argument("names", nargs=-1, required=True)
@click.option("--png", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture of the pattern; takes one name.")
@options.as_json
def info(names: tuple[str, ...], png: Path | None, as_json: bool) -> None:
    """Describe inputs without downloading them.

    For inputs whose files are on this machine, facts about the pattern are shown too.
    """
    if png is not None and len(names) != 1:
        raise click.UsageError("--png takes one name")
    rows = [describe(name) for name in names]
    for name, row in zip(names, rows, strict=True):
        if row["path"] is None and row["source"] != "random":
            if png is not None:
                raise click.UsageError(f"'{name}' is not here yet: 'tune-kernel data get {name}' fetches it")
            continue
        tensor = load(name)
        row["pattern"] = pattern_facts(tensor)
        row["spy"] = spy_text(tensor) if tensor.order else ""
        if png is not None:
            note(f"wrote {write_spy(tensor, png, row['name'])}")
    _show(rows, as_json)
    if not as_json:
        for row in rows:
            _show_pattern(row)


def _show_pattern(row: dict[str, Any]) -> None:
    for name, value in row.get("pattern", {}).items():
        print(f"{name:<32} {f'{value:.4g}' if isinstance(value, float) else value}")
    if row.get("spy"):
        print(row["spy"])


@command.command("get", cls=ExampleCommand, examples=(("tune-kernel data get HB/494_bus", "download it"),))
@click.argument("names", nargs=-1, required=True)
@options.as_json
def get(names: tuple[str, ...], as_json: bool) -> None:
    """Download inputs into the data folder (SPARSETUNE_DATA).

    Files that are there already are not downloaded again; they are compared with the checksum from when they were downloaded.
    """
    rows = []
    for name in names:
        path = fetch(name)
        note(f"{name} is {path} ({check_file(path)})")
        rows.append(describe(name))
    _show(rows, as_json)


@command.command("path", cls=ExampleCommand, examples=(("tune-kernel data path HB/494_bus", "the path of its file, fetched if missing"),))
@click.argument("names", nargs=-1, required=True)
@options.as_json
def path(names: tuple[str, ...], as_json: bool) -> None:
    """Print the paths of the files of inputs, downloaded if missing."""
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
