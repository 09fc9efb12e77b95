"""``tune-kernel code``."""

from __future__ import annotations

from typing import Any

import click

from ...compiler.build.stages import STAGES
from ...compiler.pipeline import compile_kernel
from . import options
from .help import ExampleCommand
from .output import print_json


@click.command(
    "code",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr', "the default schedule"),
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr --schedule "parallelize(i, cpu_thread, no_races)"', "another one"),
        ('tune-kernel code "Y(i,k) = A(i,j) * X(j,k)" --format A=csr --dim k=32', "with an extent known at compile time"),
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr --after vectorize', "the loop IR after one of the passes"),
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr --json', "source, schedule and loop nest as JSON"),
    ),
)
@options.together(
    options.expression, options.formats, options.dims,
    click.option("--schedule", default="", metavar="TEXT", help="Directives separated by semicolons.  [default: none]"),
    options.target, options.arch,
    click.option("--after", type=click.Choice(STAGES), metavar="STAGE", help=f"Print the program after a stage: {', '.join(STAGES)}."),
    click.option("--loop-nest", is_flag=True, help="Print concrete index notation in place of the source, as --after concrete does."),
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Print the source that is generated for EXPR. Tensors whose format is not named are dense."""
    kernel = compile_kernel(
        given["expression"], given["formats"], given["dims"], given["schedule"], target=given["target"], arch=given["arch"]
    )
    stage = "concrete" if given["loop_nest"] else given["after"]
    text = kernel.source if stage is None else kernel.stages[stage]
    if given["as_json"]:
        formats = {name: str(form) for name, form in kernel.formats.items()}
        told = {"expression": given["expression"], "formats": formats, "schedule": str(kernel.schedule), "target": given["target"]}
        print_json({**told, "loop_nest": kernel.loop_nest, "stage": stage or STAGES[-1], "source": text})
    else:
        print(text.rstrip())
