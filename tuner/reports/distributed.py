"""Volumes, memory and imbalance of cyclic distributions over up to thousands of ranks: ``python -m sparsetune.tuner.reports.distributed``.

Writes results/distributed.md: figures computed for each number of ranks of ``--ranks``, and counted in runs on as many ranks as ``--runs``
says.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ...compiler.errors import BuildError
from ...compiler.native.machine import available_cores, this_machine
from ...compiler.native.memory import readable_bytes
from ...compiler.storage.tensor import Tensor
from ...datasets import load
from ..distributed.plan import volume
from .distributed_cases import KERNELS
from .drawn_pattern import DrawnPattern
from .markdown import table
from .publishing import output_option, publish

RANKS = (1, 2, 4, 7, 16, 64, 256, 1024, 4096)
PAPER = (
    (DrawnPattern((8192,) * 3, 0.001), {"MTTKRP": 32, "TTMc": 32, "TTTP": 32}),
    (DrawnPattern((1024,) * 4, 0.001), {"MTTKRP": 32, "TTMc": 32}),
    (DrawnPattern((80,) * 6, 0.001), {"TTTc": 16}),
    (DrawnPattern((80,) * 6, 0.01), {"TTTc": 16}),
)
"""Extents, densities and ranks of Figures 5 and 6."""
REAL = {"MTTKRP": 64, "TTMc": 16, "TTTP": 32, "TTTc": 16}


@click.command()
@click.argument("tensors", nargs=-1)
@output_option(Path("results/distributed.md"), "Where the page is written.")
@click.option("--ranks", type=int, multiple=True, default=RANKS, show_default=True, help="Numbers of ranks to compute for.")
@click.option("--run", "counted", multiple=True, metavar="TENSOR", help="A tensor to run the kernels on; may be repeated.")
@click.option("--runs", type=int, multiple=True, default=(1, 2, 4, 7), show_default=True, help="Numbers of ranks to run on.")
@click.option("--paper/--no-paper", default=True, show_default=True, help="Also at the sizes of the paper.")
def main(
    tensors: Sequence[str], output: Path, ranks: Sequence[int], counted: Sequence[str], runs: Sequence[int], paper: bool
) -> None:
    """Write the page: volumes for TENSORS, .tns files or names of the catalogue."""
    volumes = [row for pattern, kernels in PAPER if paper for row in volume_rows(shown(pattern), pattern, kernels, ranks)]
    volumes += [row for tensor in tensors for row in volume_rows(Path(tensor).name, load(tensor, "csf"), REAL, ranks)]
    rows = [row for source in counted for row in run_rows(source, runs)]
    words = [*(Path(found).name for found in tensors), *(f"--run {Path(found).name}" for found in counted)]
    publish(output, page(volumes, rows, " ".join(words)))


def shown(pattern: DrawnPattern) -> str:
    """Return the shape and the density of a pattern in words."""
    return f"{' x '.join(map(str, pattern.shape))}, {100 * pattern.density:g}%"


def volume_rows(name: str, tensor: Tensor | DrawnPattern, kernels: dict[str, int], ranks: Sequence[int]) -> Iterator[list[str]]:
    """Yield a row for every kernel and number of ranks."""
    for kernel, rank in kernels.items():
        case = KERNELS[kernel](tensor, rank)
        for count in ranks:
            found = volume(
                case.expression, case.operands, count, gather=False, output_format="csf" if case.sparse else None, factors="distributed"
            )
            grid = " x ".join(map(str, found["grid"]))
            sent, memory = readable_bytes(found["bytes"]), readable_bytes(found["memory"])
            share = readable_bytes(found["bytes"] / count)
            yield [name, kernel, str(rank), str(count), grid, sent, share, memory, f"{found['imbalance']:.3f}"]


def run_rows(source: str, runs: Sequence[int]) -> Iterator[list[str]]:
    """Yield a row for every kernel and number of ranks that is run."""
    for kernel in REAL:
        seconds: dict[int, float] = {}
        for count in runs:
            found = run(kernel, source, 16, count)
            seconds[count] = found["seconds"]
            agree = all(found[name] == found[other] for name, other in (
                ("sent", "computed"), ("bytes", "bytes_computed"), ("imbalance", "imbalance_computed"),
            ))  # fmt: skip
            grid = " x ".join(map(str, found["grid"]))
            shown = f"{found['sent']}", f"{found['computed']}", f"{found['bytes']}", f"{found['bytes_computed']}"
            speed = f"{seconds[runs[0]] / found['seconds']:.2f}"
            yield [Path(source).name, kernel, str(count), grid, *shown, f"{found['imbalance']:.3f}", "yes" if agree else "NO", speed]


def run(kernel: str, source: str, rank: int, ranks: int) -> dict[str, Any]:
    """Run a kernel on so many ranks of this machine. Raises ``BuildError``: there is no mpiexec, or the run failed."""
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if launcher is None:
        raise BuildError("mpiexec is not installed: pip install 'sparsetune[mpi]'")
    command = [launcher, "-n", str(ranks), sys.executable, "-m", "sparsetune.tuner.reports.distributed_run", kernel, source, str(rank)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "SPARSETUNE_THREADS": "1"})
    if done.returncode:
        raise BuildError(f"{kernel} on {ranks} ranks failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout)


def page(volumes: Sequence[Sequence[str]], counted: Sequence[Sequence[str]], tensors: str) -> str:
    """Return the page."""
    computed = table(("tensor", "kernel", "R", "ranks", "grid", "sent", "sent by a rank", "most memory", "imbalance"), volumes)
    heading = ("tensor", "kernel", "ranks", "grid", "sent", "computed", "part", "computed", "imbalance", "agree", "speed")
    return f"""# Distribution over ranks

`python -m sparsetune.tuner.reports.distributed {tensors}` makes this page.

## Computed

Each element of a dense operand and of the result is on one rank; the sparse tensor stays where it is (Kanakagiri, Solomonik,
section 5.2). Sent is what all ranks together send to replicate operands along sub-grids and to sum the result; most memory is what the
fullest rank holds of tensor, blocks and result; imbalance is its stored entries over the mean. All are exact for the tensor named. Tensors
named by their extents are those of the paper's Figures 5 and 6, with up to 2.6 * 10^9 entries: each cell is stored with the probability
given after the extents. They are not generated: the numbers of entries and fibres of every rank's part are drawn from their exact
distribution. The grid is the one that `st.distributed.volume` chooses.

{computed}

## Counted

Runs on {this_machine().model} with {available_cores()} cores, R = 16, one thread a rank, operands whole on every rank, the result left in
shares, on the grid that `st.distributed.tensor` chooses: bytes sent, and bytes of the fullest part of the tensor, beside those
computed before. Speed is that of the fastest of five runs against one rank; it means nothing for more ranks than
cores, and little on a busy machine: the load average was {os.getloadavg()[0]:.0f}.

{table(heading, counted)}
"""


if __name__ == "__main__":
    main()
