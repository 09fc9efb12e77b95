"""Small tuning campaigns over ranks, as tests start them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mpi_runs import launcher

_SUITE = """
[suite]
trials = {trials}
search = "quick"
threads = [1]
[[kernel]]
name = "spmv"
expression = "y(i) = A(i,j) * x(j)"
operand = "A"
order = 2
"""
_INPUT = """
[[input]]
name = "{name}"
source = "random:uniform:{name}:nnz=300"
order = 2
"""
_COMMAND = "import os; os.cpu_count = lambda own=os.cpu_count(): {cores} or own; from sparsetune.tuner.cli import main; main()"


def start(
    folder: Path,
    database: str,
    trials: int,
    *options: str,
    ranks: int = 3,
    inputs: tuple[str, ...] = ("200x100",),
    cores: int | None = None,
) -> subprocess.Popen[str]:
    """Start a campaign.

    Args:
        folder: where its suite is written.
        trials: of each input.
        inputs: what the inputs are called: their extents.
        cores: of the machine, as far as records know; None: those that it has.
    """
    suite = folder / "mine.toml"
    suite.write_text(_SUITE.format(trials=trials) + "".join(_INPUT.format(name=name) for name in inputs))
    words = ["suite", str(suite), "--mpi", "--json", "--db", database, *options]
    command = [launcher(), "-n", str(ranks), sys.executable, "-c", _COMMAND.format(cores=cores), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
