"""Processes whose first thread an OpenMP runtime has bound before the package is imported, when the process has no other thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sparsetune.compiler.native.machine import allowed_cores

PROGRAM = """
import ctypes, os, sys
before = set(map(int, sys.argv[2].split(",")))
os.sched_setaffinity(0, before)
try:
    runtime = ctypes.CDLL(sys.argv[1])
except OSError:
    sys.exit("not on this machine")
if "libgomp" not in sys.argv[1]:
    runtime.omp_get_num_places()  # it begins when it is used first
bound = os.sched_getaffinity(0)
assert len(bound) == 1 and len(os.listdir("/proc/self/task")) == 1, (bound, os.listdir("/proc/self/task"))
import numpy as np
import sparsetune as st
from sparsetune.compiler.native.machine import allowed_cores, available_cores, usable_cores
from sparsetune.compiler.native.team import workers
assert allowed_cores() == usable_cores() == before, (allowed_cores(), usable_cores(), before)
schedule = "parallelize(i, cpu_thread, no_races)"
kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=schedule).bind(A=np.ones((500, 500)), x=np.ones(500), threads=2)
assert kernel().tolist() == [500] * 500
assert workers() == min(1, available_cores() - 1)
assert bound == os.sched_getaffinity(0)
assert set().union(*(os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task"))) == before
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(allowed_cores()) < 2, reason="needs two cores and Linux")
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("runtime", ["libgomp.so.1", "libomp.so.5", "libiomp5.so"])
def test_workers_have_the_cores_that_a_runtime_found_before_it_bound_the_only_thread(runtime: str, cores: int) -> None:
    environment = {**os.environ, "OMP_PROC_BIND": "true", "OPENBLAS_NUM_THREADS": "1"}
    some = ",".join(map(str, sorted(allowed_cores())[:cores]))
    command = [sys.executable, "-c", PROGRAM, runtime, some]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    if "not on this machine" in done.stderr:
        pytest.skip(f"needs {runtime}")
    assert done.returncode == 0, done.stderr
