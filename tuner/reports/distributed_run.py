"""Runs one kernel on the ranks that mpiexec started, and prints JSON:
``mpiexec -n 4 python -m sparsetune.tuner.reports.distributed_run TTMc FILE 16``."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ..distributed.evaluation import evaluate
from ..distributed.plan import volume
from ..distributed.scatter import tensor
from ..distributed.tensors import DistributedTensor
from ..distributed.traffic import traffic
from ..distributed.world import world
from .distributed_cases import KERNELS

_RUNS = 5


def measured(kernel: str, path: str, rank: int) -> dict[str, Any]:
    """Return bytes sent in a run, the bytes of the fullest part of the tensor, its imbalance, and the seconds of the fastest run."""
    here, spread = world(), tensor(path)
    assert isinstance(spread, DistributedTensor)
    case = KERNELS[kernel](spread.gather(), rank)
    given: dict[str, Any] = {**case.operands, "T": spread}
    seconds, sent = [], 0
    for _ in range(_RUNS + 1):
        before = traffic()  # waits for all ranks
        start = time.perf_counter()
        evaluate(case.expression, given, gather=False, output_format="csf" if case.sparse else None, threads=1)
        here.sum(0)
        seconds.append(time.perf_counter() - start)
        sent = traffic() - before
    fullest = max(here.counts(spread.local.nbytes))
    computed = volume(case.expression, {**case.operands}, grid=spread.grid, gather=False, output_format="csf" if case.sparse else None)
    held = volume("s = T(" + case.expression.partition(" T(")[2].partition(")")[0] + ")", {"T": case.operands["T"]}, grid=spread.grid)
    return {
        "ranks": here.size, "grid": spread.grid, "sent": sent, "computed": computed["bytes"], "bytes": fullest,
        "bytes_computed": held["memory"] - 16, "imbalance": spread.imbalance, "imbalance_computed": computed["imbalance"],
        "seconds": min(seconds[1:]),
    }  # fmt: skip


if __name__ == "__main__":
    found = measured(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    if world().rank == 0:
        print(json.dumps(found))
