"""Contractions of one sparse tensor with dense ones, and their loop nest forests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from differential.batch import build_together
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.notation.nodes import Assignment, accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.forests.peeling import ForestRules
from sparsetune.compiler.space.forests.space import Forests
from sparsetune.compiler.storage.construct import tensor

SPTTN = {
    "MTTKRP3": "A(i,r) = T(i,j,k) * B(j,r) * C(k,r)",
    "MTTKRP4": "A(i,r) = T(i,j,k,l) * B(j,r) * C(k,r) * D(l,r)",
    "TTMc3": "A(i,r,s) = T(i,j,k) * U(j,r) * V(k,s)",
    "TTMc4": "A(i,r,s,t) = T(i,j,k,l) * U(j,r) * V(k,s) * W(l,t)",
    "TTTP3": "S(i,j,k) = T(i,j,k) * U(i,r) * V(j,r) * W(k,r)",
    "SDDMM-SpMM": "A(i,l) = T(i,j) * C(i,k) * D(j,k) * E(j,l)",
    "SpTTM-TTM-TTM": "A(l,m,n) = T(i,j,k) * C(i,l) * D(j,m) * E(k,n)",
}
"""Kernels of Kanakagiri and Solomonik and of Dias et al.; T is sparse, S has its pattern."""

SPARSEAUTO = {
    "SpMMH-GEMM": "A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)",
    "SpMM-GEMM": "A(i,l) = T(i,j) * C(j,k) * D(k,l)",
    "SpTTM-TTM": "A(i,l,m) = T(i,j,k) * C(j,l) * D(k,m)",
    "SpTTM-SpTTM": "S(i,j,m) = T(i,j,k) * C(k,l) * D(l,m)",
    "SDDMM-SpMM": SPTTN["SDDMM-SpMM"],
    "MTTKRP-GEMM": "A(i,m) = T(i,k,l) * C(l,j) * D(k,j) * E(j,m)",
    "SDDMM-SpMM-GEMM": "A(i,m) = T(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)",
    "SpTTM-TTM-TTM": SPTTN["SpTTM-TTM-TTM"],
}
"""Table 2 of SparseAuto."""

LEFT = {
    "SpMMH-GEMM": ((2, 1), (2, 1)),
    "SpMM-GEMM": ((2, 1), (2, 1)),
    "SpTTM-TTM": ((3, 1), (3, 1)),
    "SpTTM-SpTTM": ((3, 1), (3, 1)),
    "SDDMM-SpMM": ((2, 2), (2, 2)),
    "MTTKRP-GEMM": ((7, 3), (4, 2)),
    "SDDMM-SpMM-GEMM": ((50, 15), (16, 8)),
    "SpTTM-TTM-TTM": ((36, 7), (20, 5)),
}
"""Schedules (buckets) after the depth poset and after SMT. The first three are those of Table 3."""

TTTC6 = "Z(e,n) = T(i,j,k,l,m,n) * A(i,a) * B(a,j,b) * C(b,k,c) * D(c,l,d) * E(d,m,e)"

EXTENTS = {name: 3 + place % 4 for place, name in enumerate("ijklmnrstabcde")}


def sparse_formats(assignment: Assignment) -> dict[str, str]:
    return {access.tensor: "csf" for access in (assignment.target, *accesses(assignment.value)) if access.tensor in ("S", "T")}


@cache
def forests(expression: str, rules: ForestRules | None = None) -> Forests:
    """Return the forests of a kernel, by name or text."""
    assignment = parse(SPTTN.get(expression, expression))
    return Forests(assignment, formats_of(assignment, sparse_formats(assignment)), rules)


def operands(assignment: Assignment, seed: int, density: float = 0.3) -> dict[str, Any]:
    """Return arrays of small integers, exact in any order of summation; T is sparse."""
    source = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for access in accesses(assignment.value):
        shape = tuple(EXTENTS[name] for name in access.indices)
        values = source.integers(1, 4, size=shape).astype(float)
        if access.tensor == "T":
            values = values * (source.random(shape) < density)
            found["T"] = tensor(values, "csf")
        else:
            found[access.tensor] = values
    return found


def expected(assignment: Assignment, given: dict[str, Any]) -> np.ndarray:
    factors = accesses(assignment.value)
    text = ",".join("".join(access.indices) for access in factors) + "->" + "".join(assignment.target.indices)
    arrays = [given[access.tensor] if access.tensor != "T" else given["T"].to_numpy() for access in factors]
    return np.einsum(text, *arrays)


def wrong(expression: str, schedules: Sequence[Schedule], folder: Path, name: str) -> list[str]:
    """Return the schedules whose kernels give other values than NumPy."""
    text = SPTTN.get(expression, expression)
    assignment = parse(text)
    compiled = [compile_kernel(text, sparse_formats(assignment), schedule=schedule) for schedule in schedules]
    build_together([one.default_kernel for one in compiled], folder, name)
    bad = []
    for seed, density in ((1, 0.3), (2, 0.05), (3, 1.0)):
        given = operands(assignment, seed, density)
        right = expected(assignment, given)
        for schedule, one in zip(schedules, compiled, strict=True):
            result = one(**given)
            dense = result if isinstance(result, np.ndarray) else result.to_numpy()
            fits = np.array_equal(dense, right)
            if not isinstance(result, np.ndarray):
                fits = fits and result.nnz == np.count_nonzero(right)  # all values are positive
            if not fits:
                bad.append(str(schedule))
    return bad
