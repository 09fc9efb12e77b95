"""The first lookup of a process imports little: next to nothing where another process has looked the same up, else nothing that generates,
compiles and runs code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sparsetune.tuner.sources import MAKING

MOST = 264
"""Modules that the first lookup may import beside NumPy and SciPy: 213 of them for products of two tensors, all but one ours."""

MOST_KNOWN = 28
"""Modules that it may import where another process has looked the same up; a third of a millisecond each."""

LATER = {"build", "codegen", "evaluate", "kernel", "lowering", "passes", "pipeline", "targets"}
"""Parts of the compiler that only code which is generated needs."""

PROGRAM = """
import sys
import numpy as np, scipy.sparse
import sparsetune as st
A = scipy.sparse.random_array((300, 200), density=0.05, rng=np.random.default_rng(0), format="csr")
operands = {operands}
before = set(sys.modules)
match = st.lookup("{expression}", operands, {form!r}, threads=2, database="/nowhere/s.sqlite")
print(*(name for name in sys.modules if name not in before))
"""

SHOWN = "print(match.origin, match.schedule, match.time, match.distance)"

CASES = {
    "axpby": ("y(i) = a * x(i) + b * z(i)", "dict(a=2.0, b=3.0, x=np.ones(300), z=np.ones(300))", None),
    "SpMV": ("y(i) = A(i,j) * x(j)", "dict(A=A, x=np.ones(200))", None),
    "SpGEMM": ("C(i,k) = A(i,j) * B(j,k)", "dict(A=A, B=A.T.tocsr())", "csr"),
    "SDDMM": ("S(i,j) = A(i,j) * U(i,k) * V(j,k)", "dict(A=A, U=np.ones((300, 20)), V=np.ones((200, 20)))", "csr"),
}


@pytest.mark.parametrize("kernel", CASES)
def test_first_lookup_imports_nothing_that_generates_code(kernel: str) -> None:
    expression, operands, form = CASES[kernel]
    program = PROGRAM.format(expression=expression, operands=operands, form=form)
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    parts = {name.split(".")[2] for name in loaded if name.startswith("sparsetune.compiler.")}
    assert parts & LATER == set()
    assert LATER | {"csrc"} >= MAKING  # of which answers do not depend
    needless = (
        "tuner.kernels", "tuner.device_costs", "tuner.environment", "tuner.database.store", "tuner.database.legality",
        "compiler.space.device_styles", "compiler.workspaces.held", "compiler.ir.rewrite",
    )  # fmt: skip
    assert not {f"sparsetune.{name}" for name in (*needless, "compiler.html")} & set(loaded)
    assert kernel == "SDDMM" or not any(name.startswith("sparsetune.compiler.space.forests") for name in loaded)  # of three tensors or more
    assert not {"sqlite3", "tomllib", "_cffi_backend"} & set(loaded)  # native passes take longer to load than operands so small to count
    assert 100 < len(loaded) < MOST


@pytest.mark.cc
def test_declarations_of_c_are_parsed_once_for_all_processes() -> None:
    expression, operands, form = CASES["SpMV"]
    program = PROGRAM.format(expression=expression, operands=operands, form=form).replace("match =", "kernels.active(); match =")
    program = f"from sparsetune.compiler.storage import kernels\n{program}"
    for _ in range(2):
        loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "_cffi_backend" in loaded
    assert not {"cffi", "pycparser"} & set(loaded)


@pytest.mark.parametrize("kernel", CASES)
def test_first_lookup_of_what_was_looked_up_before_imports_next_to_nothing(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSETUNE_ANSWERS", str(tmp_path / "answers"))
    expression, operands, form = CASES[kernel]
    program = PROGRAM.format(expression=expression, operands=operands, form=form) + SHOWN
    shown = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    (_, first), (loaded, second) = (one.splitlines() for one in shown)
    assert first == second
    assert len(loaded.split()) <= MOST_KNOWN
    assert not {"sqlite3", "platformdirs", "tempfile", "_cffi_backend"} & set(loaded.split())


SEARCHING = {"campaign", "measure", "search", "session", "trials", "model", "lookup", "kernels"}


@pytest.mark.cc
@pytest.mark.parametrize("kind", ["kernel", "function"])
def test_kernels_whose_schedule_was_looked_up_before_import_nothing_that_chooses_or_searches(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSETUNE_ANSWERS", str(tmp_path / "answers"))
    monkeypatch.setenv("SPARSETUNE_DATABASE", str(tmp_path / "s.sqlite"))
    expression, operands, _ = CASES["SpMV"]
    made = {
        "kernel": f'st.compile("{expression}", formats=dict(A="csr"), schedule="auto")(**operands)',
        "function": f'st.autotune("{expression}")(**operands)',
    }[kind]
    program = f"{PROGRAM[: PROGRAM.index('match =')]}{made}\n{PROGRAM[PROGRAM.index('print'):]}".format(operands=operands)
    for _ in range(2):
        loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {name.split(".")[2] for name in loaded if name.startswith("sparsetune.tuner.")} & SEARCHING == set()
