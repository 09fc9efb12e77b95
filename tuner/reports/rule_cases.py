"""The kernels of Senanayake et al., Figure 20, on small inputs, with which rules on templates are judged.

Inputs are small because some templates that rules remove go through all coordinates and take a thousand times as long as others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ...compiler.frozen import frozen
from ...compiler.notation.parser import parse
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ..extents import known_extents, reads
from ..problem import Problem
from ..resolve import make_problem
from .workloads import random_dense

THREADS = 2


@frozen
class RuleCase:
    """A kernel of the paper: formats of its sparse tensors, inputs by name, and the other extents."""

    expression: str
    formats: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, str]]
    dims: Mapping[str, int] = field(default_factory=dict)


_MATRICES = {"uniform": "random:uniform:{0}x{0}:nnz={1}", "power law": "random:rmat:scale={2}:nnz={1}"}
_TENSORS = {"uniform": "random:uniform:200x200x200:nnz=1e5", "zipf": "random:zipf:200x160x400:nnz=1e5"}


def _matrix(scale: int, nnz: str) -> dict[str, Mapping[str, str]]:
    return {name: {"A": spec.format(2**scale, nnz, scale)} for name, spec in _MATRICES.items()}


RULE_CASES = {
    "SpMV": RuleCase("y(i) = A(i,j) * x(j)", {"A": "csr"}, _matrix(15, "6e5")),
    "SpMSpV": RuleCase(
        "y(i) = A(i,j) * x(j)",
        {"A": "csc", "x": "compressed"},
        {name: {**specs, "x": "random:uniform:8192:density=0.1"} for name, specs in _matrix(13, "2e6").items()},
    ),
    "SpMM": RuleCase("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, _matrix(12, "1e5"), {"k": 32}),
    "SDDMM": RuleCase("Z(i,k) = B(i,k) * C(i,j) * D(j,k)", {"B": "csr", "Z": "csr"},
                      {name: {"B": specs["A"]} for name, specs in _matrix(12, "5e4").items()}, {"j": 64}),
    "TTV": RuleCase("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"}, {name: {"B": spec} for name, spec in _TENSORS.items()}),
    "MTTKRP": RuleCase("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "dense, compressed, compressed"},
                       {name: {"B": spec} for name, spec in _TENSORS.items()}, {"r": 32}),
}  # fmt: skip


def problem_of_case(case: RuleCase, specs: Mapping[str, str], name: str) -> Problem:
    """Return a kernel with inputs and with dense operands."""
    from ...datasets.inputs import load

    operands: dict[str, Any] = {key: tensor(load(spec), case.formats[key], dtype=np.float64) for key, spec in specs.items()}
    result = case.formats.get(parse(case.expression).target.tensor)
    return make_problem(case.expression, operands | _dense(case, operands), result, threads=THREADS, name=name)


def _dense(case: RuleCase, stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    assignment = parse(case.expression)
    extents = known_extents(assignment, {name: operand.shape for name, operand in stored.items()}, case.dims)
    missing = {access.tensor: access for access in reads(assignment) if access.tensor not in stored}
    return {name: tensor(random_dense(name, tuple(extents[index] for index in access.indices))) for name, access in missing.items()}
