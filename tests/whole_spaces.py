"""The whole spaces of some kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.full import Filter
from sparsetune.compiler.space.options import RUNS, Options
from sparsetune.compiler.space.whole import WholeSpace

KERNELS = {
    "SpMV": ("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}),
    "SpGEMM": ("C(i,k) = A(i,j) * B(j,k)", {"A": "csr", "B": "csr"}),
    "product": ("C(i,j) = A(i,j) * B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    "SDDMM": ("Z(i,j) = A(i,j) * C(i,k) * D(j,k)", {"A": "csr"}),
    "residual": ("y(i) = b(i) - A(i,j) * x(j)", {"A": "csr"}),
    "merged sum": ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    "dense addend": ("Y(i,k) = A(i,j) * X(j,k) + B(i,k)", {"A": "csr"}),
    "accumulation": ("y(i) += A(i,j) * x(j)", {"A": "csr"}),
}


def usual_numbers(options: Options) -> Options:
    """Narrow numbers to a few that are tried often."""
    return replace(options, sizes=(4, 8, 16, 32), chunks=(1, 16, 64), unrolls=(2, 4, 8), distances=(8, 16, 512))


def unsaid(options: Options) -> Options:
    """Let nothing be said but loops and parallel units."""
    closed = replace(options, protocols=False, formats=False, kinds=(), results=(), merges=(), calls=())
    return replace(closed, bounds=(), unrolls=(), distances=(), builds=())


FILTERS = (
    Filter("usual numbers", usual_numbers),
    Filter("loops and units", unsaid),
    Filter("loops that differ", lambda options: replace(options, runs=tuple(RUNS))),
    Filter("outermost threads", lambda options: replace(options, outermost=True)),
)


@cache
def whole(name: str) -> WholeSpace:
    expression, formats = KERNELS[name]
    assignment = parse(expression)
    return WholeSpace(assignment, formats_of(assignment, formats))
