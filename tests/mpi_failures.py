"""What every rank runs in the tests of failures: one of them fails as the first argument says, while the others go on.

The time at which it fails goes into the file that the second argument names.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import sparsetune as st
from mpi4py import MPI
from sparsetune.tuner.distributed import world as ranks

how, moment, rank = sys.argv[1], Path(sys.argv[2]), MPI.COMM_WORLD.Get_rank()
unlucky = rank == MPI.COMM_WORLD.Get_size() - 1


def begin_to_fail(when: str) -> bool:
    if how != when or not unlucky:
        return False
    moment.write_text(str(time.time()))
    return True


def die(*_given: object) -> None:
    begin_to_fail("kill")
    os.kill(os.getpid(), 9)


if begin_to_fail("version"):
    ranks.code_version = lambda: "0.0.7+other"

rng = np.random.default_rng(0)
coordinates = rng.integers(0, 40, (3, 500))
spread = st.distributed.tensor((coordinates, rng.random(500)) if rank == 0 else None)
factor = rng.random((40, 100_000))
evaluate = st.distributed.evaluate  # imported while there is enough memory
expression = "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"
if how == "kill" and unlucky:
    ranks.World.reduce_scatter = die  # type: ignore[method-assign, assignment]
if begin_to_fail("memory"):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 22), resource.RLIM_INFINITY))
if how == "wrong":
    moment.write_text(str(time.time()))
    expression = "A(i,r) = B(i,j,k) * C(j,r"
if begin_to_fail("python"):
    raise ZeroDivisionError("of one rank")
if how == "file":
    moment.write_text(str(time.time()))
    st.distributed.tensor("nowhere.tns")
for _ in range(3):
    given = {"B": spread, "C": factor, "D": factor}
    evaluate(expression, given, grid=(1, 1, MPI.COMM_WORLD.Get_size()), schedule="default")
