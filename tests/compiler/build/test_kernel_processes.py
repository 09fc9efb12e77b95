"""Kernels and their surroundings: several threads, forked processes, and other threads of Python."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from kernel_specs import ZERO, counting_shares, dot
from sparsetune.compiler.build import TypedKernel
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.ir.nodes import (
    F64,
    I64,
    Binary,
    Const,
    Declare,
    For,
    Load,
    SetVar,
    Steps,
    Store,
    Var,
)
from sparsetune.compiler.native.team import thread_count
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.native import helper_threads

pytestmark = pytest.mark.cc


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = TypedKernel(counting_shares())
    for threads in (1, 2, 7, np.int64(3)):
        assert kernel(x=np.ones(2), threads=threads) == threads
    monkeypatch.setenv("SPARSETUNE_THREADS", "5")
    assert kernel(x=np.ones(2)) == 5
    monkeypatch.delenv("SPARSETUNE_THREADS")
    assert kernel(x=np.ones(2)) == thread_count(None)
    for bad in (0, -1, 2.0, "2", True, 10**6):
        with pytest.raises(DataError, match="threads"):
            kernel(x=np.ones(2), threads=bad)
    for wrong in ("zero", "0", "-3", "99999999999"):
        monkeypatch.setenv("SPARSETUNE_THREADS", wrong)
        with pytest.raises(DataError, match="SPARSETUNE_THREADS"):
            kernel(x=np.ones(2))
        with pytest.raises(DataError, match="SPARSETUNE_THREADS"):
            helper_threads()


def test_other_threads_of_python_run_meanwhile() -> None:
    """cffi lets go of the interpreter's lock during a call."""
    i, k, total = Var("i", I64), Var("k", I64), Var("total", F64)
    inner = For(k, ZERO, Const(200_000, I64), SetVar(total, Binary("/", total, Binary("+", total, Const(1.0, F64), F64), F64)))
    slow = Steps((Declare(total, Load("x", ZERO, F64)), For(i, ZERO, Const(300, I64), inner), Store("s", ZERO, total)))
    bound = TypedKernel(replace(dot(), function=replace(dot().function, body=slow))).bind(x=np.ones(2))
    worker = threading.Thread(target=bound)
    worker.start()
    passes = 0
    while worker.is_alive():
        passes += 1
        time.sleep(0.001)
    assert passes > 5  # a kernel that kept the others waiting would let one or two through, before and after it


def test_forked_processes_can_run_kernels() -> None:
    """The team's threads do not survive a fork; the child must not wait for them."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "import numpy as np\n"
        "from kernel_specs import counting_shares\n"
        "from sparsetune.compiler.build import TypedKernel\n"
        "bound = lambda threads: TypedKernel(counting_shares()).bind(x=np.ones(2), threads=threads)\n"
        "first = bound(4); first()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if first() == 4 and bound(3)() == 3 else 1)\n"
        "_, status = os.waitpid(child, 0)\n"
        "first(); print('status', status)\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(Path(__file__).parents[2])]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert shown.stdout.strip() == "status 0", shown.stderr


CALLS = """
import os, sys, resource
import numpy as np
import sparsetune as st

rows, columns = np.arange(30_000) % 1000, np.arange(30_000) * 7919 % 900
A = st.tensor(((rows, columns), np.linspace(1, 2, 30_000)), "csc", shape=(1000, 900))
x = np.ones(900)
expected = A.to_numpy() @ x
schedule = "parallelize(j, cpu_thread, temporary, dynamic, 16)"
kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csc"}, schedule=schedule)
before = dict(os.environ)
"""


@pytest.mark.parametrize(
    "call",
    [
        "[np.testing.assert_allclose(kernel(A=A, x=x, threads=n), expected) for n in (1, 2, 64, 1024)]",
        # so little that threads with large stacks cannot be had
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); kernel(A=A, x=x); "
        "resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20), -1)); "
        "[np.testing.assert_allclose(kernel(A=A, x=x, threads=n), expected) for n in (2, 64, 1024)]",
        # our threads bring nobody else's
        "kernel(A=A, x=x, threads=2); assert 'gomp' not in open('/proc/self/maps').read(); assert dict(os.environ) == before",
        # a thread that spins when the interpreter ends
        "kernel(A=A, x=x, threads=2); sys.exit(0)",
    ],
    ids=["many threads", "little memory", "no other runtime", "end"],
)
def test_processes_with_threads(call: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CALLS + call], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("chunks", ["static", "static, 8", "dynamic, 8", "guided, 2"])
@pytest.mark.parametrize("race", ["temporary", "parallel_reduction"])
def test_the_same_threads_give_the_same_bits(chunks: str, race: str) -> None:
    """Chunks belong to shares by their number, and shares are added in order, whichever thread did which."""
    rng = np.random.default_rng(0)
    stored = tensor(sp.random_array((60, 3000), density=0.2, rng=rng), "csc")
    x = rng.standard_normal(3000)
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csc"}, schedule=f"parallelize(j, cpu_thread, {race}, {chunks})")
    for threads in (1, 2, 5):
        bound = kernel.bind(A=stored, x=x, threads=threads)
        first = bound().copy()
        np.testing.assert_allclose(first, stored.to_numpy() @ x)
        for _ in range(30):
            assert np.array_equal(bound(), first)
