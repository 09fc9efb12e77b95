"""Probes measure what kernels do not show: packing, and the overhead of Python in a call. A suite names the probes of its nights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...datasets.generate import generate
from ..problem import Problem
from ..resolve import make_problem


@dataclass(frozen=True)
class Probe:
    """A probe: its operands, and what is timed on them (``race.CALLS``)."""

    name: str
    input: str
    call: str
    problem: Callable[[], Problem]


def _small() -> Problem:
    matrix = generate("random:uniform:10x10:nnz=30", "csr")
    return make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(10)}, threads=1, name="10 x 10")


def _packed(source: str, expression: str, form: str) -> Callable[[], Problem]:
    return lambda: make_problem(expression, {"B": generate(source, "coo")}, form, threads=1, name=source)


_MATRIX, _TENSOR = "random:uniform:20000x20000:nnz=2e5", "random:zipf:2000x300x400:nnz=1e5"

PROBES = (
    Probe("bound call", "10 x 10", "bound", _small),
    Probe("call", "10 x 10", "call", _small),
    Probe("pack csr", _MATRIX, "pack", _packed(_MATRIX, "A(i,j) = B(i,j)", "csr")),
    Probe("pack csf", _TENSOR, "pack", _packed(_TENSOR, "A(i,j,k) = B(i,j,k)", "csf")),
)


def chosen(names: Sequence[str]) -> list[Probe]:
    """Return the probes of some names, in their order."""
    return [probe for probe in PROBES if probe.name in names]
