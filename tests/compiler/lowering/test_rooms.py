"""Results of unknown size get no more room at first than the machine can have: what is never touched is refused too where it is large."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.cc, pytest.mark.skipif(sys.platform != "linux", reason="sets a limit on address space")]

PROGRAM = """
import resource
import numpy as np
import sparsetune as st
from sparsetune.compiler.pipeline import compile_kernel
rng = np.random.default_rng(1)
places = np.stack([rng.integers(0, size, {entries}) for size in {shape}])
given = dict(B=st.tensor((places, np.ones({entries})), "dcsr", {shape}))
given |= dict(C=given["B"]) if "C(" in "{expression}" else dict()
formats = dict.fromkeys(given, "dcsr") | dict(A="compressed, dense")
kernel = compile_kernel("{expression}", formats, schedule="{schedule}")
kernel(**given, threads=3)  # the compiler and all libraries are loaded
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
print(kernel(**given, threads=3).values.sum() == {sum})
"""


@pytest.mark.parametrize(
    ("expression", "schedule", "shape", "sum"),
    [
        ("A(i,j) = B(i,j) + C(i,j)", "", (3, 2_000_000), 100),  # rows of 16 MB
        ("A(i,j) = 2 * B(i,j)", "parallelize(i, cpu_thread, no_races)", (3, 2_000_000), 100),
        ("A(i,j) = 2 * B(i,j)", "precompute(2 * B(i,j), [i, j], [i, j], w); workspace(w, list)", (9000, 4000), 4000),  # of 32 KB
    ],
)
def test_rows_of_dense_components(expression: str, schedule: str, shape: tuple[int, int], sum: int) -> None:
    text = PROGRAM.format(expression=expression, schedule=schedule, shape=shape, entries=sum // 2, sum=sum)
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["True"]
