"""The time of the first lookup of a process: ``python -m sparsetune.tuner.reports.first_lookup`` writes ``first_lookup.md``.

Each lookup runs in a process of its own that has imported NumPy, SciPy and the package, and made its operands. The page shows the least
processor time of all rounds, and the numbers of imported modules and called functions, which are the same in every run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import count, repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ...compiler.frozen import frozen
from ..answers import ANSWERS
from .markdown import table
from .publishing import publish, results_option

EXPRESSIONS = {
    "axpby": ("y(i) = a * x(i) + b * z(i)", "dict(a=2.0, b=3.0, x=np.ones(3000), z=np.ones(3000))", None),
    "SpMV": ("y(i) = A(i,j) * x(j)", "dict(A=A, x=np.ones(2000))", None),
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", "dict(A=A, X=np.ones((2000, 32)))", None),
    "SpGEMM": ("C(i,k) = A(i,j) * B(j,k)", "dict(A=A, B=A.T.tocsr())", "csr"),
    "SDDMM": ("S(i,j) = A(i,j) * U(i,k) * V(j,k)", "dict(A=A, U=np.ones((3000, 16)), V=np.ones((2000, 16)))", "csr"),
    "TTV": ("Y(i,j) = T(i,j,k) * x(k)", "dict(T=T, x=np.ones(100))", "csr"),
    "MTTKRP": ("Y(i,r) = T(i,j,k) * C(j,r) * D(k,r)", "dict(T=T, C=np.ones((200, 16)), D=np.ones((100, 16)))", None),
}

_PROGRAM = """
import json, sys, time
import numpy as np, scipy.sparse
import sparsetune as st
A = scipy.sparse.random_array((3000, 2000), density=0.005, rng=np.random.default_rng({seed}), format="csr")
T = scipy.sparse.random_array((300, 200, 100), density=0.005, rng=np.random.default_rng({seed}))
operands = {operands}
calls = [0]
def counted(frame, event, argument):
    calls[0] += event == "call"
def look():
    return st.lookup("{expression}", operands, {form!r}, threads=2, database={database!r})
before = len(sys.modules)
if {counts}:
    sys.setprofile(counted)
start = time.process_time()
match = look()
first = time.process_time() - start
sys.setprofile(None)
modules = len(sys.modules) - before
warm = []
for _ in range(20):
    start = time.process_time()
    for _ in range(200):
        look()
    warm.append((time.process_time() - start) / 200)
print(json.dumps(dict(first=first, warm=min(warm), modules=modules, calls=calls[0], origin=match.origin)))
"""


@frozen
class First:
    """The first lookup of a process: seconds of processor time, modules that it imports, functions of Python that it calls."""

    seconds: float
    modules: int
    calls: int
    warm: float
    origin: str


def measured(kernel: str, answers: str, database: str, rounds: int, others: bool = False) -> First:
    """Return what a first lookup takes in fresh processes, the least of some rounds.

    Args:
        kernel: one of ``EXPRESSIONS``.
        answers: folder of the answers that earlier processes found; empty: no answer is kept.
        database: path of the schedule database.
        rounds: how many processes are timed; one more counts calls, and one leaves an answer.
        others: whether each process has a sparse matrix of its own.
    """
    expression, operands, form = EXPRESSIONS[kernel]
    seeds = count() if others else repeat(0)

    def asked(counts: bool) -> Mapping[str, float]:
        program = _PROGRAM.format(
            expression=expression, operands=operands, form=form, database=database, counts=counts, seed=next(seeds)
        )  # fmt: skip
        environment = os.environ | {ANSWERS: answers, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": ""}
        run = subprocess.run([sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    asked(False)
    counted, timed = asked(True), [asked(False) for _ in range(rounds)]
    least = {name: min(one[name] for one in timed) for name in ("first", "warm")}
    return First(least["first"], int(counted["modules"]), int(counted["calls"]), least["warm"], str(counted["origin"]))


def page(found: Mapping[str, tuple[First, First, First]], rounds: int) -> str:
    """Return the page; of each kernel a lookup that another process made before, one of other operands, and one that is new."""
    rows = [
        [kernel, kinds[0].origin,
         *(text for one in kinds for text in (f"{1e3 * one.seconds:.1f}", str(one.modules), str(one.calls))),
         f"{1e6 * kinds[0].warm:.1f}"]
        for kernel, kinds in found.items()
    ]  # fmt: skip
    header = (
        "expression", "origin", "known, ms", "modules", "calls", "alike, ms", "modules", "calls", "not known, ms", "modules", "calls",
        "warm, microseconds",
    )  # fmt: skip
    return f"""# The first lookup of a process

`python -m sparsetune.tuner.reports.first_lookup` wrote this page. Processor time of the call of `lookup` in a process that has imported
NumPy, SciPy and the package and made its operands, least of {rounds} processes, with the modules that it imports and the functions of
Python that it calls. *Known*: some process has looked the same up before, and neither database, sources, compilers nor constants of the
machine have changed. *Alike*: none has, but some process has looked the same expression up for other matrices, here of the same size; what
the static model computed for one of these is computed again. (axpby has no matrix, so it is known.) *Not known*: no process has looked
anything up; the static model chooses. *Warm*: the same call again in the same process. Two threads, a sparse matrix or tensor of 30,000
entries as SciPy has it, a database without records beside the schedules that ship.

{table(header, rows)}
"""


@click.command()
@results_option
@click.option("--rounds", default=9, show_default=True)
def main(results: Path, rounds: int) -> None:
    """Measure first lookups and write results/first_lookup.md."""
    with TemporaryDirectory() as folder:
        database = str(Path(folder) / "none.sqlite")
        found = {
            kernel: (
                measured(kernel, str(Path(folder) / "answers"), database, rounds),
                measured(kernel, str(Path(folder) / "alike"), database, rounds, others=True),
                measured(kernel, "", database, rounds),
            )
            for kernel in EXPRESSIONS
        }
    written = page(found, rounds)
    publish(results / "first_lookup.md", written)
    click.echo(written)


if __name__ == "__main__":
    main()
