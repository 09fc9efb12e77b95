"""What expressions become stage by stage, as it was when somebody last looked at it: loop nest, loop IR, C for 32-byte vectors.

``pytest --update-golden`` writes what it is now.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_runs import source_of
from sparsetune.compiler.ir.printer import show_function
from sparsetune.compiler.pipeline import compile_kernel

GOLDEN = Path(__file__).parent / "golden"
CASES: dict[str, tuple[str, dict[str, str], str, dict[str, int]]] = {
    "spmv": ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "", {}),
    "spmv_position_split": (
        "y(i) = A(i,j) * x(j)",
        {"A": "csr"},
        "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 16); parallelize(p0, cpu_thread, atomics)",
        {},
    ),
    "spmm_registers": (
        "Y(i,k) = A(i,j) * X(j,k)",
        {"A": "csr"},
        "precompute(A(i,j) * X(j,k), k, k, w); prefetch([0], j, X, 12); parallelize(i, cpu_thread, no_races, dynamic, 64)",
        {"k": 8},
    ),
    "sddmm": (
        "S(i,j) = A(i,j) * U(i,k) * V(j,k)",
        {"A": "csr", "S": "csr"},
        "precompute(U(i,k) * V(j,k), [], [], w); parallelize([0], k, cpu_vector, parallel_reduction)",
        {"k": 16},
    ),
    "mttkrp_fused": ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"}, "precompute(B(i,j,k) * D(k,r), r, r, w)", {"r": 8}),
    "addition": ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}, "", {}),
    "intersection": ("a = x(i) * y(i)", {"x": "compressed", "y": "compressed"}, "", {}),
    "product": ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, "", {}),
    "product_inserted": (
        "C(i,j) = A(i,k) * B(k,j)",
        {"A": "csr", "B": "csr", "C": "csr"},
        "assemble(C, insert); parallelize(i, cpu_thread, no_races, dynamic, 16)",
        {},
    ),
    "coordinates": ("y(i) = A(i,j) * x(j)", {"A": "coo"}, "", {}),
}


def stages(name: str) -> str:
    """Return all stages of a case as one text."""
    expression, formats, schedule, extents = CASES[name]
    compiled = compile_kernel(expression, formats, extents, schedule)
    function = compiled.default_kernel.spec.function
    asked = ", ".join([f"{tensor}: {form}" for tensor, form in formats.items()] + [f"{index} = {size}" for index, size in extents.items()])
    parts = (f"{expression}\n{asked}\n{schedule}".rstrip(), compiled.loop_nest, show_function(function), source_of(function, 32))
    return "\n\n".join(part.strip() for part in parts) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, update_golden: bool) -> None:
    path = GOLDEN / f"{name}.txt"
    text = stages(name)
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
