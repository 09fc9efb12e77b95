"""Spaces and frontiers of named kernels, and their times and memory in fresh processes.

``python -m sparsetune.tuner.reports.space_sizes REQUEST`` measures one, given as JSON, and prints JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from ...compiler.concrete.check import formats_of
from ...compiler.notation.nodes import accesses
from ...compiler.notation.parser import parse
from ...compiler.space.space import PIGEON, Rules, ScheduleSpace
from ..asymptotic.algebra import Algebra
from ..asymptotic.model import CostModel

KERNELS = {
    "SpMV": "a(i) += B(i,j) * c(j)",
    "SpMV2": "a(i) += B(i,j) * C(j,k) * d(k)",
    "SpGEMM": "A(i,j) += B(i,k) * C(k,j)",
    "SpGEMM2": "A(i,j) += B(i,k) * C(k,l) * D(l,j)",
    "SpGEMMH": "A(i,j) += B(i,k) * C(k,j) * D(k,j)",
    "SpMTTKRP": "A(i,j) += B(i,k,l) * C(k,j) * D(l,j)",
}

LARGER = (  # kernels of Dias et al. (SparseAuto) and the largest of Figure 6, in our space; B is sparse unless the name says more
    ("SDDMM-SpMM", "A(i,l) = B(i,j) * C(i,k) * D(j,k) * E(j,l)", "B"),
    ("SpMMH-GEMM", "A(i,l) = B(i,k) * C(k,j) * D(k,j) * E(j,l)", "B"),
    ("SpTTM-TTM", "A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", "B"),
    ("MTTKRP-GEMM", "A(i,m) = B(i,k,l) * C(l,j) * D(k,j) * E(j,m)", "B"),
    ("GEMM + matrix, all sparse", "A(i,j) = B(i,k) * C(k,j) + D(i,j)", "ABCD"),
    ("masked sum, all sparse", "A(i,j) = B(i,j) * (C(i,j) + D(i,j))", "ABCD"),
)

def paper_space(expression: str, rules: Rules = PIGEON, sparse: str | None = None, **options) -> tuple[ScheduleSpace, CostModel]:
    """Return the space and cost model of an expression whose matrices and tensors are stored (dense, compressed, ...).

    Args:
        expression: the text.
        rules: decide what belongs to the space.
        sparse: the names of the sparse tensors; None: all that have more than one mode. The others are dense.
        options: of ``CostModel``.
    """
    assignment = parse(expression)
    orders = {access.tensor: len(access.subscripts) for access in (assignment.target, *accesses(assignment.value))}
    chosen = {name: "d" + "s" * (order - 1) for name, order in orders.items() if order > 1 and (sparse is None or name in sparse)}
    formats = formats_of(assignment, chosen)
    return ScheduleSpace(assignment, formats, rules), CostModel(assignment, formats, **options)


def measure(expression: str, state: str, own: bool, sparse: str | None) -> dict[str, float]:
    """Count a space and find its frontier once; run in a fresh process."""
    start = time.perf_counter()
    algebra = Algebra(looks_ahead=own)
    options = {"workspace_state": state, "memory": own, "algebra": algebra, "as_stored": own}
    space, model = paper_space(expression, Rules() if own else PIGEON, sparse, **options)
    count = space.count
    counted = time.perf_counter()
    frontier = model.frontier(space)
    done = time.perf_counter()
    peak = _peak_megabytes()
    return {
        "schedules": count,
        "undominated": frontier.count,
        "classes": len(frontier.classes),
        "count_seconds": counted - start,
        "seconds": done - start,
        "megabytes": peak,
    }


def _peak_megabytes() -> float:
    """Return the peak memory of this program in MB (getrusage would include that of the process which started it)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status does not tell the memory of a process")


def measured(expression: str, state: str = "exact", own: bool = False, sparse: str | None = None, runs: int = 3) -> dict[str, float]:
    """Return the medians of fresh processes."""
    request = json.dumps({"expression": expression, "state": state, "own": own, "sparse": sparse})
    command = [sys.executable, "-m", f"{__package__}.space_sizes", request]
    answers = [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(runs)]
    return {key: median(answer[key] for answer in answers) for key in answers[0]}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
