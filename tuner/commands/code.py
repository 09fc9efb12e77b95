"""``tune-kernel code``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ...compiler.build.stages import STAGES, stage_names
from ...compiler.build.standalone import standalone
from ...compiler.errors import DataError, ScheduleError
from ...compiler.output_pattern import restriction
from ...compiler.pipeline import compile_kernel
from ...compiler.targets.cuda import CUDA
from ..written import write_whole
from . import options
from .help import ExampleCommand
from .output import print_json

ALL_STAGES = tuple(dict.fromkeys((*STAGES, *stage_names(CUDA))))
"""Stages of all targets."""


@click.command(
    "code",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr', "the default schedule"),
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr --schedule "parallelize(i, cpu_thread, no_races)"', "another one"),
        ('tune-kernel code "Y(i,k) = A(i,j) * X(j,k)" --format A=csr --dim k=32', "with an extent known at compile time"),
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr --after vectorize', "the loop IR after one of the passes"),
        ('tune-kernel code "d(i) = A(i,j) * x(j)" --format A=csr --semiring min,+ --dtype float32', "shortest paths in single precision"),
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr --json', "source, schedule and loop nest as JSON"),
        ('tune-kernel code "y(i) = A(i,j) * x(j)" --format A=csr --target cuda --arch sm_90 -o kernel', "CUDA that nvcc compiles alone"),
    ),
)
@options.together(
    options.expression, options.formats, options.constants,
    click.option("--schedule", default="", metavar="TEXT", help="Directives separated by semicolons.  [default: none]"),
    click.option("--dtype", metavar="TYPE", help="Type of values, such as float32.  [default: float64]"),
    options.semiring, options.boundary, options.output_pattern, options.target, options.arch,
    click.option("--after", type=click.Choice(ALL_STAGES), metavar="STAGE", help=f"Print the program after a stage: {', '.join(STAGES)}."),
    click.option("-o", "output", metavar="DIR",
                 help="Write sources that compile without sparsetune, with a Makefile and a main program that times them."),
    click.option("--loop-nest", is_flag=True, help="Print the loop nest in concrete index notation, as --after concrete does."),
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Print the source that is generated for EXPR, or write it to files. Tensors whose format is not given are dense."""
    expression, formats = given["expression"], given["formats"]
    if given["output_pattern"] is not None:
        asked = restriction(expression, given["output_pattern"])
        expression, formats = asked.expression, asked.formats(formats)
    kernel = compile_kernel(
        expression, formats, given["dims"], given["schedule"], given["dtype"], given["target"], semiring=given["semiring"],
        arch=given["arch"], boundary=given["boundary"] or None,
    )  # fmt: skip
    if given["output"] is not None:
        for name in write_sources(given["output"], standalone(kernel.default_kernel, given["arch"])):
            print(name)
        return
    stage = "concrete" if given["loop_nest"] else given["after"]
    if stage is not None and stage not in kernel.stages:
        raise ScheduleError(f"target {given['target']} has no stage {stage!r}; its stages are {', '.join(kernel.stages)}")
    text = kernel.source if stage is None else kernel.stages[stage]
    if given["as_json"]:
        formats = {name: str(form) for name, form in kernel.formats.items()}
        told = {"expression": given["expression"], "formats": formats, "schedule": str(kernel.schedule), "target": given["target"]}
        print_json({**told, "loop_nest": kernel.loop_nest, "stage": stage or next(reversed(kernel.stages)), "source": text})
    else:
        print(text.rstrip())


def write_sources(folder: str, files: Mapping[str, str | bytes]) -> list[str]:
    """Write files into a folder, which is made if missing, and return their paths. Each file is written whole or not at all.

    Raises:
        DataError: they cannot be written.
    """
    written = []
    try:
        os.makedirs(folder, exist_ok=True)
        for name, content in files.items():
            path = os.path.join(folder, name)
            write_whole(Path(path), content)
            written.append(path)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from None
    return written
