"""Tuning in a process whose first thread an OpenMP runtime has bound to one core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sparsetune.compiler.native.machine import available_cores

FOREIGN = """
#include <omp.h>
int threads(void) { int n = 0;
#pragma omp parallel
{
#pragma omp atomic
n += 1;
}
return n; }
"""

PROGRAM = """
import ctypes, os, sys
def bind():
    ctypes.CDLL(sys.argv[1]).threads()  # a kernel of another library: its runtime binds this thread
if sys.argv[2] == "before":
    bind()
import numpy as np, scipy.sparse as sp
import sparsetune as st
from sparsetune.tuner.measure import worker
A = sp.random_array((2000, 2000), density=0.01, format="csr", rng=np.random.default_rng(0))
X = np.random.default_rng(1).random((2000, 16))
k = st.compile("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, schedule="parallelize(i, cpu_thread, no_races)").bind(A=A, X=X, threads=2)
k()
if sys.argv[2] == "after":
    bind()
assert len(os.sched_getaffinity(0)) == 1, "the runtime has bound nothing"
from sparsetune.tuner.measure.worker_process import Worker
seen = []
ask = Worker.ask
def watched(self, *given, **named):
    reply = ask(self, *given, **named)
    seen.append(len(os.sched_getaffinity(self._process.pid)))
    return reply
Worker.ask = watched
r = st.tune("Y(i,k) = A(i,j) * X(j,k)", {"A": A, "X": X}, threads=2, trials=2, database=sys.argv[3])
print(min(seen), len(r.trials))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or available_cores() < 2, reason="needs two cores and Linux")
@pytest.mark.parametrize("when", ["before", "after"], ids=["before the import", "after a kernel call"])
def test_the_measuring_process_has_all_cores_though_openmp_bound_its_parent(tmp_path: Path, when: str) -> None:
    (tmp_path / "foreign.c").write_text(FOREIGN)
    library = str(tmp_path / "foreign.so")
    compiling = ["gcc", "-fopenmp", "-shared", "-fPIC", "-o", library, str(tmp_path / "foreign.c")]
    made = subprocess.run(compiling, capture_output=True, check=False)
    if made.returncode:
        pytest.skip("needs gcc with its OpenMP runtime")
    environment = {**os.environ, "OMP_PROC_BIND": "true"}
    command = [sys.executable, "-c", PROGRAM, library, when, str(tmp_path / "s.sqlite")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(len(os.sched_getaffinity(0))), "2"]
