"""Makes ``results/defaults.md``: ``python -m sparsetune.tuner.reports.defaults --help``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from ...compiler.errors import DataError
from ...compiler.native.machine import available_cores
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ...datasets.generate import PREFIX, generate
from ...datasets.inputs import fetch, load
from ..measure.sampling import least_of
from .compile_times import TYPICAL_EXPRESSIONS, compile_time, five_operands, read_times, sums_of_high_order, write_times
from .default_cases import PYDATA, Case, Run, conversions, kernels, products
from .defaults_page import page
from .publishing import publish, results_option
from .race import Pace, Series, race
from .records import Races, Row

UNIFORM, POWER_LAW = "random:uniform:200000x200000:nnz=2e6", "random:rmat:scale=17:nnz=2e6"
STENCIL, BANDED = "random:stencil27:40", "random:banded:150000:bandwidth=8"
INPUTS = {
    "kernels": (UNIFORM, POWER_LAW, STENCIL, BANDED, "cnr-2000", "soc-Slashdot0902", "copter2", "mnist_t10k"),
    "products": (
        "random:uniform:200000x200000:nnz=1e6", "random:rmat:scale=15:nnz=1.5e5", STENCIL, "random:stencil5:700x700", BANDED, "copter2",
        "luxembourg_osm",
    ),
    "conversions": ("random:uniform:500000x500000:nnz=5e6", "random:rmat:scale=18:nnz=5e6", "random:banded:300000:bandwidth=8", "cnr-2000"),
}  # fmt: skip
"""Generated inputs of 1 to 6 million nonzeros (fewer if the square of the matrix has that many), and real ones, if present."""

_SMALL = "random:uniform:24x24:nnz=90"
_PATIENCE, _MOST_RUNS = 1.0, 5  # seconds after which a slow library is not run again; most runs

_CASES: dict[str, Callable[[Tensor], Iterator[Case]]] = {"kernels": kernels, "products": products, "conversions": conversions}


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*INPUTS, "compile", "page"]), help="make only these (default: all)")
@click.option("--input", "inputs", multiple=True, help="only these inputs")
@results_option
@click.option("--seconds", default=1.0, help="length of a race")
def main(only: tuple[str, ...], inputs: tuple[str, ...], results: Path, seconds: float) -> None:
    """Race default schedules and conversions against SciPy and PyData/sparse, time compilation, and write results/defaults.md.

    Rows are added to results/defaults.csv; a race that is run again takes the place of the old one.
    """
    os.environ.setdefault("SPARSETUNE_THREADS", str(available_cores()))
    races_file, times_file = results / "defaults.csv", results / "defaults_compile.csv"
    races = Races.read(races_file)
    for figure, names in INPUTS.items():
        if not only or figure in only:
            click.echo(f"{figure} ...", err=True)
            missing = True
            for rows in _raced(figure, inputs or names, Pace(seconds, 6, 51)):
                races.add(rows)
                races.write(races_file)
                missing = False
            if missing:
                click.echo(f"{figure}: nothing to do: its inputs are missing (SPARSETUNE_DATA)", err=True)
    if not only or "compile" in only:
        expressions = (*TYPICAL_EXPRESSIONS, *sums_of_high_order(), *five_operands())
        write_times(times_file, [compile_time(expression) for expression in expressions])
    text = page(races, read_times(times_file))
    publish(results / "defaults.md", text)


def _raced(figure: str, names: Iterable[str], pace: Pace) -> Iterator[list[Row]]:
    """Yield the rows of one race after another."""
    for case in _CASES[figure](generate(_SMALL, "csr")):
        for run in case.runs.values():
            run()  # just-in-time compilation, helpers
    for name in names:
        matrix = csr_of(name)
        for case in _CASES[figure](matrix) if matrix is not None else ():
            load = os.getloadavg()[0]
            found = race({key: run for key, run in case.runs.items() if key[0] != PYDATA}, pace)
            found |= {key: _patiently(run) for key, run in case.runs.items() if key[0] == PYDATA}
            rows = [Row(figure, case.operation, name, variant, threads, load, "", found[variant, threads]) for variant, threads in found]
            shown = ", ".join(f"{row.variant} {row.threads}: {1e3 * row.times.median:.4g}" for row in rows)
            click.echo(f"{case.operation}, {name}: {shown} ms", err=True)
            yield rows


def _patiently(run: Run) -> Series:
    """Time a function that may take a hundred times as long as the others: after their race, and only a few times."""
    times = [least_of(run, 1, 1)]
    while sum(times) < _PATIENCE and len(times) < _MOST_RUNS:
        times.append(least_of(run, 1, 1))
    return Series(tuple(times))


def csr_of(name: str) -> Tensor | None:
    """Return an input as CSR of float64; None where its file is missing."""
    if not name.startswith(PREFIX):
        try:
            fetch(name)
        except DataError:
            return None
    return tensor(load(name), "csr", dtype="float64")


if __name__ == "__main__":
    main()
