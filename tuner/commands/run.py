"""``tune-kernel run``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...compiler.attention import tell
from ...compiler.errors import BuildError, DataError
from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.tensor import Tensor
from ..database import default_url
from ..kernels import Candidate, compile_problem
from ..lookup import lookup_in
from ..operands import problem_of
from ..problem import Problem
from ..progress import show_seconds
from ..settings import MOST_SEED
from . import options
from .help import ExampleCommand
from .output import note, print_json, require_compiler

_ENDINGS = (".mtx", ".mtx.gz", ".tns", ".tns.gz", ".npy", ".npz")


@click.command(
    "run",
    cls=ExampleCommand,
    examples=(
        ('tune-kernel run "y(i) = A(i,j) * x(j)" -i A=matrix.mtx -i x=vector.npy -o y.npy', "with the schedule known to be best"),
        ('tune-kernel run "C(i,j) = A(i,k) * B(k,j)" -i A=a.mtx -i B=b.mtx --output-format csr -o c.mtx', "a sparse result"),
        ('tune-kernel run "s = A(i,j) * A(i,j)" -i A=HB/494_bus --json', "a number"),
    ),
)
@options.together(
    options.expression, options.inputs, options.dims, options.formats, options.output_format,
    click.option("--schedule", default="auto", show_default=True, metavar="auto|default|TEXT", help="Which schedule to use."),
    options.semiring, options.boundary, options.output_pattern, options.target, options.threads,
    click.option("-o", "--output", metavar="FILE", help="Write the result: .mtx, .tns (.gz), .npy or .npz."),
    click.option("--seed", type=click.IntRange(0, MOST_SEED), default=0, show_default=True, help="Seed of random inputs."),
    options.database, options.as_json,
)  # fmt: skip
def command(**given: Any) -> None:
    """Evaluate EXPR on these inputs."""
    output: str | None = given["output"]
    if output is not None:
        _check_output(output)
    wish = _wish(given["schedule"])
    require_compiler()
    problem = problem_of(given)
    candidate, origin = _found(problem, given["database"]) if wish is None else (_loaded(compile_problem(problem, wish[0])), wish[1])
    bound = candidate.bind(problem.operands, problem.threads)
    start = time.perf_counter()
    result = bound()
    seconds = time.perf_counter() - start
    if output is not None:
        from ...datasets.write import write

        write(result if isinstance(result, (Tensor, np.ndarray)) else np.asarray(result), output)
    shown = _describe(result)
    if given["as_json"]:
        print_json({"seconds": seconds, "schedule": str(candidate.compiled.schedule), "origin": origin, "result": shown})
        return
    print(f"result    shape {_show_shape(shown['shape'])}, {shown['nnz']} stored values, {shown['format']}, sum {shown['checksum']:.12g}")
    print(f"seconds   {show_seconds(seconds)}")
    print(f"schedule  {str(candidate.compiled.schedule) or 'the default one'} ({origin})")


def _wish(text: str) -> tuple[Schedule, str] | None:
    """Return the schedule that the user gave and its origin, or None for "auto"; a wrong text is refused before operands are read."""
    if text == "auto":
        return None
    return (Schedule(), "default") if text == "default" else (Schedule(text), "given")


def _found(problem: Problem, database: str | None) -> tuple[Candidate, str]:
    """Return the compiled schedule that lookup finds, and where it comes from."""
    match = lookup_in(database or default_url(), problem)
    tell(f"'{problem.expression}': {match.reason}")
    try:
        return _loaded(compile_problem(problem, match.schedule)), match.origin
    except BuildError as error:
        if not match.schedule.directives:
            raise
        note(f"the schedule that lookup found ({match.origin}) does not compile, so the default one is used: {str(error).splitlines()[0]}")
    return _loaded(compile_problem(problem, Schedule())), "default"


def _loaded(candidate: Candidate) -> Candidate:
    candidate.load(120.0)
    return candidate


def _check_output(output: str) -> None:
    """Refuse a file that cannot be written before anything is computed."""
    if not output.lower().endswith(_ENDINGS):
        raise DataError(f"-o {output}: results are written as {', '.join(_ENDINGS)}")
    if not Path(output).absolute().parent.is_dir():
        raise DataError(f"-o {output}: there is no folder {Path(output).absolute().parent}")


def _describe(result: Any) -> dict[str, Any]:
    if isinstance(result, Tensor):
        shape, count, form, values = result.shape, result.nnz, str(result.format), result.to_coordinates()[1]
    else:
        values = np.asarray(result)
        shape, count, form = values.shape, values.size, "dense"
    return {"shape": [int(extent) for extent in shape], "nnz": int(count), "format": form, "checksum": values.sum().item()}


def _show_shape(shape: list[int]) -> str:
    return " x ".join(map(str, shape)) or "()"
