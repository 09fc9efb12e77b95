"""``tune-kernel cache``."""

from __future__ import annotations

import time
from typing import Any

import click

from ...compiler.native.folders import cache_folder
from ...compiler.native.inventory import CachedObject, cached_objects, remove_objects
from . import options
from .help import ExampleCommand, ExampleGroup
from .output import note, print_json, print_table

_DAY = 86400.0


@click.group(
    "cache",
    cls=ExampleGroup,
    examples=(
        ("tune-kernel cache stats", "how much room compiled kernels take, and where"),
        ("tune-kernel cache list", "the expression of each, and when it was last used"),
        ("tune-kernel cache clear --older-than 30", "remove what was not used for a month"),
    ),
)
def command() -> None:
    """Show which compiled kernels are kept, and remove old ones.

    They lie in SPARSETUNE_CACHE, or in the user's cache folder. One that is removed is compiled anew when it is needed.
    """


@command.command("stats", cls=ExampleCommand, examples=(("tune-kernel cache stats --json", "as JSON"),))
@options.as_json
def stats(as_json: bool) -> None:
    """Show how many compiled objects are kept and how many bytes they take."""
    _show(list(cached_objects(cache_folder())), as_json)


@command.command(
    "list", cls=ExampleCommand, examples=(
        ("tune-kernel cache list 'A(i,j) * x(j)'", "those whose expression has this in it"),
        ("tune-kernel cache list --json", "as JSON"),
    )
)  # fmt: skip
@click.argument("part", default="")
@options.as_json
def list_(part: str, as_json: bool) -> None:
    """List compiled objects, the last used first: their bytes, the days since then, and the expression.

    With PART, only those whose expression contains it.
    """
    now = time.time()
    titled = ((one, one.title) for one in sorted(cached_objects(cache_folder()), key=lambda one: (-one.used, one.path)))
    found = [(one, title) for one, title in titled if part.lower() in title.lower()]
    if as_json:
        items = [
            {"path": str(one.path), "kind": one.kind, "bytes": one.bytes, "days": _days(one, now), "expression": _expression(one, title)}
            for one, title in found
        ]
        print_json({"path": str(cache_folder()), "items": items})
    elif found:
        print_table([[str(one.bytes), f"{_days(one, now):.1f}", title] for one, title in found], ("bytes", "days", "what"))
    else:
        note(f"nothing {f'with {part!r} ' if part else ''}is kept in {cache_folder()}")


@command.command(
    "clear", cls=ExampleCommand, examples=(
        ("tune-kernel cache clear --older-than 30", "remove what was not used for a month"),
        ("tune-kernel cache clear --all", "remove all"),
    )
)  # fmt: skip
@click.option("--older-than", type=options.Seconds("days"), help="Remove what was not used for so many days.")
@click.option("--all", "everything", is_flag=True, help="Remove all.")
@options.as_json
def clear(older_than: float | None, everything: bool, **given: Any) -> None:
    """Remove compiled objects that were not used for long.

    If the file system does not record when files are read, the time since they were made counts.
    """
    if everything == (older_than is not None):
        raise click.UsageError("say what to remove: --older-than DAYS, or --all")
    folder, now = cache_folder(), time.time()
    old = [one for one in cached_objects(folder) if everything or _days(one, now) > (older_than or 0.0)]
    removed, size = remove_objects(folder, old)
    if not given["as_json"]:
        note(f"{removed} compiled objects removed, {size} bytes")
    _show(list(cached_objects(folder)), given["as_json"], removed=removed)


def _days(one: CachedObject, now: float) -> float:
    return max(0.0, now - one.used) / _DAY


def _expression(one: CachedObject, title: str) -> str | None:
    return None if title == one.kind else title


def _show(found: list[CachedObject], as_json: bool, **more: int) -> None:
    oldest = max((_days(one, time.time()) for one in found), default=0.0)
    size = sum(one.bytes for one in found)
    if as_json:
        print_json({"path": str(cache_folder()), "objects": len(found), "bytes": size, "oldest_days": oldest, **more})
        return
    print(f"path      {cache_folder()}")
    print(f"objects   {len(found)}")
    print(f"bytes     {size}" + (f"  ({size / 2**20:.1f} MiB)" if size else ""))
    print(f"unused    {oldest:.1f} days at most")
