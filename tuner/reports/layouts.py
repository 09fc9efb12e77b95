"""Makes ``results/layouts.md``: SpMM on dense operands anywhere in memory: ``python -m sparsetune.tuner.reports.layouts --help``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ...compiler.build.copies import copied
from ...compiler.evaluate import compile_kernel
from ...compiler.native.machine import available_cores
from ...compiler.storage.aligned import copy_at
from ...compiler.storage.tensor import Tensor
from .default_cases import Run
from .defaults import csr_of
from .markdown import geometric_mean, ratio, table
from .publishing import publish, results_option
from .race import Pace, race
from .records import Races, Row
from .states import States
from .workloads import random_dense

COMMAND = "python -m sparsetune.tuner.reports.layouts"
FIGURE, SPMM, SCHEDULE = "layouts", "Y(i,k) = A(i,j) * X(j,k)", "parallelize(i, cpu_thread, no_races, static)"
INPUTS = ("a9a_t", "bcsstk33", "random:uniform:20000x20000:nnz=6e5", "copter2", "email-Enron", "cora")
CASES = (("float64", 16), ("float64", 32), ("float64", 64), ("float32", 32))

ALIGNED, UNALIGNED, COPY = "aligned", "16 bytes off", "a copy alone"
OUT, ALIGNED_OUT = "result 16 bytes off", "result aligned"
WANTED, OFTEN = 1.1, 16
"""The aim: times over those on aligned operands; and how often rows are read where copies should pay."""

_STRIDED: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "transposed": lambda x: np.asfortranarray(x),
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "rows in reverse": lambda x: x[::-1].copy()[::-1],
    "columns in reverse": lambda x: x[:, ::-1].copy()[:, ::-1],
    "a slice": lambda x: np.pad(x, ((0, 0), (1, 2)))[:, 1:-2],
}
SHOWN = (UNALIGNED, OUT, *_STRIDED, COPY)


def runs(matrix: Tensor, columns: int, threads: int) -> dict[tuple[str, int], Run]:
    """Return calls of SpMM by the layout of the dense operand, and a copy of it from unaligned to aligned memory."""
    x = random_dense("X", (matrix.shape[1], columns), matrix.dtype)
    result = random_dense("Y", (matrix.shape[0], columns), matrix.dtype)
    unaligned = copy_at(x, 16).reshape(x.shape)
    call = compile_kernel(SPMM, {"A": "csr"}, {"k": columns}, SCHEDULE)
    given = {ALIGNED: x, UNALIGNED: unaligned, **{name: made(x) for name, made in _STRIDED.items()}}
    found: dict[tuple[str, int], Run] = {
        (name, threads): lambda operand=operand: call(A=matrix, X=operand, threads=threads) for name, operand in given.items()
    }
    for name, out in ((ALIGNED_OUT, result), (OUT, copy_at(result, 16).reshape(result.shape))):
        found[name, threads] = call.bind(A=matrix, X=x, threads=threads, out=out)
    found[COPY, threads] = lambda: copied(unaligned)
    return found


def raced(names: tuple[str, ...], pace: Pace) -> Iterator[list[Row]]:
    """Yield the rows of one race after another; inputs whose files are missing are left out."""
    for name in names:
        matrix = csr_of(name)
        if matrix is None:
            continue
        for kind, columns in CASES:
            operand = matrix.astype(np.dtype(kind))
            label = f"{kind}, {columns} columns, rows read {operand.nnz / operand.shape[1]:.0f} times"
            load, found = os.getloadavg()[0], dict[tuple[str, int], Run]()
            for threads in sorted({1, available_cores()}):
                found |= runs(operand, columns, threads)
            times = race(found, pace)
            yield [Row(FIGURE, label, name, variant, threads, load, SCHEDULE, series) for (variant, threads), series in times.items()]


def page(races: Races) -> str:
    """Return the page of all races."""
    lines, ratios = [], dict[tuple[bool, str], list[float]]()
    states = States(races.rows.values())
    for (label, name), rows in races.of(FIGURE).items():
        for threads in sorted({row.threads for row in rows}):
            by_variant = {row.variant: row.times for row in rows if row.threads == threads}
            beside = {OUT: by_variant[ALIGNED_OUT]}
            against = {variant: by_variant[variant].over(beside.get(variant, by_variant[ALIGNED])) for variant in SHOWN}
            often = float(label.split()[-2]) >= OFTEN
            for variant, found in against.items():
                ratios.setdefault((often, variant), []).append(found.ratio)
            time = f"{1e3 * by_variant[ALIGNED].median:.3g}"
            lines.append([f"`{name}`{states.mark(rows)}", label, str(threads), time, *(ratio(found) for found in against.values())])
    means = []
    for often, title in ((True, f"{OFTEN} times and more"), (False, "less often")):
        means.append([title, *(f"{geometric_mean(ratios.get((often, name), [])):.2f}" for name in SHOWN)])
    loads = [row.load for row in races.rows.values()] or [0.0]
    return f"""# Dense operands anywhere in memory

{states.text}

`{SPMM}` with `{SCHEDULE}`, called as users call it. Times with a dense operand (or, once, the
`out` of a bound kernel) that begins 16 bytes behind a cache line, or has other strides, over those with an aligned one in C order: medians
of paired ratios with 95% intervals. All of one line ran in turn in one process, each with its data in the caches. Wanted: at most {WANTED}.
Matrices whose rows are whole, as those of a slice or in reverse, are read where they are, unaligned here, or from a copy where their rows
are read often enough (`compiler/build/copies.py`); others are copied in every call. The last column is what a copy alone takes, from
unaligned to aligned memory, by all threads: what is copied costs that much more at least. A copy moves each row three times (it is read,
its lines are fetched to be written, and written back), or four times where every second column is read, beside the r times that the kernel
reads it: where all bytes take as long, that is 1 + 3 / r times the aligned time, so that {WANTED} cannot be had where rows are read less
than {3 / (WANTED - 1):.0f} times. With several threads, lines that one has written also go to the caches of all others. The load
average was {min(loads):.1f} to {max(loads):.1f}.

Geometric means, by how often rows of the operand are read:

{table(("rows are read", *SHOWN), means)}

{table(("input", "case", "threads", "aligned, ms", *SHOWN), lines)}

`{COMMAND}` makes everything here; raw times, one a round, are in `layouts.csv`.
"""


@click.command()
@click.option("--input", "inputs", multiple=True, help="only these inputs")
@results_option
@click.option("--seconds", default=1.0, help="length of a race")
def main(inputs: tuple[str, ...], results: Path, seconds: float) -> None:
    """Time SpMM on dense operands anywhere in memory, and write results/layouts.md. A race that is run again replaces the old one."""
    races = Races.read(results / "layouts.csv")
    for rows in raced(inputs or INPUTS, Pace(seconds, 7, 51)):
        races.add(rows)
        races.write(results / "layouts.csv")
        click.echo(f"{rows[0].input}, {rows[0].kernel}", err=True)
    publish(results / "layouts.md", page(races))


if __name__ == "__main__":
    main()
