"""``tune-kernel explain``."""

from __future__ import annotations

from typing import Any

import click

from . import options
from .help import ExampleCommand
from .output import print_json, print_table, show_seconds


class Range(options.Pair):
    """``INDEX=LOW:HIGH``; gives (index, (low, high))."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        index, text = super().convert(value, param, ctx)
        low, separator, high = str(text).partition(":")
        try:
            bounds = float(low), float(high if separator else low)
        except ValueError:
            self.fail(f"{value!r}: a range is LOW:HIGH, such as 1:1e6", param, ctx)
        if not 0 <= bounds[0] <= bounds[1]:
            self.fail(f"{value!r}: a range goes from its lower to its higher number, both from 0 on", param, ctx)
        return index, bounds


@click.command(
    "explain",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel explain "A(i,j) = B(i,k) * C(k,j)" --format B=csr --format C=csr', "the space of a sparse product"),
        ('tune-kernel explain "A(i,j) = B(i,k) * C(k,l) * D(l,j)" --format B=csr --format C=csr --format D=csr --json', "as JSON"),
    ),
)
@options.together(
    options.expression, options.formats,
    click.option("--range", "ranges", type=Range("index", "low:high", "i=1:1e6"), multiple=True, callback=options.unique,
                 help="Bounds of an extent, for the symbolic costs."),
    click.option("--preset", type=click.Choice(["pigeon", "pigeon-taco", "sparseauto", "spttn"]),
                 help="The pipeline of a paper.  [default: ours]"),
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Show the schedule space of EXPR stage by stage, and the schedules that no other is asymptotically better than."""
    from ..explore import explore

    space = explore(given["expression"], formats=given["formats"], ranges=given["ranges"] or None, preset=given["preset"])
    if given["as_json"]:
        keys = ("loop_nest", "time", "memory", "task_set")
        frontier = [{key: getattr(found, key) for key in keys} for found in space.frontier]
        print_json({"expression": given["expression"], "stages": space.stages, "frontier": frontier})
        return
    rows = [[str(stage["stage"]), str(stage["kept"]), show_seconds(float(stage["seconds"]))] for stage in space.stages]
    print_table(rows, ("stage", "kept", "time"))
    for number, found in enumerate(space.frontier, 1):
        print(f"\nschedule {number} of {len(space.frontier)}\n{found.loop_nest}")
        print(f"time    {found.time}\nmemory  {found.memory}\ntasks   {found.task_set}")
