"""Arrays that are changed behind a kernel's back, under the address sanitizer: no kernel reads outside of what it was given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.cc


def sanitizers() -> list[str]:
    """Return the libraries that a process needs whose kernels are instrumented; none where gcc has none."""
    found = []
    for name in ("libasan.so", "libubsan.so"):
        try:
            done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        except OSError:
            return []
        if not Path(done.stdout.strip()).is_absolute():
            return []
        found.append(done.stdout.strip())
    return found


CODE = """
import sys
from pathlib import Path
import numpy as np, scipy.sparse as sp, sparsetune as st
from differential.batch import SANITIZERS, build_together

rng = np.random.default_rng(0)


def refuse(action, *error):
    try:
        action()
    except error:
        return
    raise SystemExit("not refused")


for format in ("csr", "csc", "coo", "dcsr", "dense, narrow"):
    A = sp.random_array((50, 60), density=0.2, format="csr", rng=rng).asformat(format if format in ("csc", "coo") else "csr")
    x, out = rng.random(60), np.empty(50)
    compiled = st.compile("y(i) = A(i,j) * x(j)", {"A": format})
    kernel, _ = compiled.specialised({"A": A, "x": x})
    build_together([kernel], Path(sys.argv[1]), "kernel_" + "".join(filter(str.isalpha, format)), SANITIZERS)
    expected = A @ x
    T, bound = st.tensor(A, format), compiled.bind(A=A, x=x, out=out)
    for part in (A.coords if A.format == "coo" else (A.indices, A.indptr)):
        part[:] = 10**8
    for target in (x, out, A.data):
        refuse(lambda: target.resize(10**6, refcheck=False), ValueError)
    assert np.allclose(bound(), expected)
    assert np.allclose(compiled(A=T, x=x), expected)
    for level in T.levels:
        for part in level.parts.values():
            refuse(lambda: part.fill(10**8), ValueError)
    assert np.allclose(compiled(A=T, x=x), expected)
    refuse(lambda: compiled(A=A, x=x), st.DataError)
print("done")
"""


@pytest.mark.skipif(not sanitizers(), reason="gcc's address sanitizer is not installed")
def test_kernels_stay_inside_their_arrays(tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": " ".join(sanitizers()), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "done\n"
