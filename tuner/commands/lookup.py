"""``tune-kernel lookup``."""

from __future__ import annotations

from typing import Any

import click

from ..database import default_url
from ..lookup import lookup_in
from ..match import MEANING, Match
from ..operands import problem_of
from ..progress import show_seconds
from . import options
from .help import ExampleCommand
from .output import print_json


@click.command(
    "lookup",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel lookup "y(i) = A(i,j) * x(j)" -i A=matrix.mtx', "what evaluate would use for this matrix"),
        ('tune-kernel lookup "Y(i,k) = A(i,j) * X(j,k)" -i A=HB/494_bus --dim k=32 --json', "the same as JSON"),
        ('tune-kernel lookup "y(i) = A(i,j) * x(j)" -i A=matrix.mtx --target cuda --arch sm_90', "for a GPU that need not be here"),
    ),
)
@options.together(
    options.expression, options.inputs, options.dims, options.formats, options.output_format, options.semiring, options.boundary,
    options.output_pattern, options.target, options.arch, options.threads, options.memory_bound,
    options.cache_share, options.database, options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Show which schedule would be used for EXPR on these inputs, and why."""
    match = lookup_in(given["database"] or default_url(), problem_of(given))
    if given["as_json"]:
        note = {"note": match.note} if match.note else {}
        print_json({"origin": match.origin, "schedule": str(match.schedule), "time": match.time, "distance": match.distance, **note})
    else:
        _show(match)


def _show(match: Match) -> None:
    print(f"origin    {match.origin}: {MEANING[match.origin]}")
    print(f"schedule  {str(match.schedule) or 'the default one'}")
    if match.time is not None:
        print(f"time      {show_seconds(match.time)} when it was tuned")
    if match.distance:
        print(f"distance  {match.distance:.2f} from the input it was tuned on")
    if match.note:
        print(f"note      {match.note}")
