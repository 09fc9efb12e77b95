"""How long expressions take to compile: from text to C, and from C to a kernel that can be called, with an empty cache."""

from __future__ import annotations

import csv
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from ...compiler.frozen import frozen
from ...compiler.pipeline import compile_kernel
from .records import write_records

_NAMES = "BCDEF"
_MIXED = {"A": "csr", "B": "csr", "C": "dcsr", "D": "coo", "E": "csr", "F": "dcsr"}
_FIVE = {
    "sum": "A(i,j) = B(i,j) + C(i,j) + D(i,j) + E(i,j) + F(i,j)",
    "differences": "A(i,j) = B(i,j) - (C(i,j) - (D(i,j) - (E(i,j) - F(i,j))))",
    "product": "A(i,j) = B(i,j) * C(i,j) * D(i,j) * E(i,j) * F(i,j)",
    "sum of products": "A(i,j) = B(i,j) * C(i,j) + D(i,j) * E(i,j) + F(i,j)",
    "product of sums": "A(i,j) = (B(i,j) + C(i,j)) * (D(i,j) + E(i,j)) * F(i,j)",
    "sum with transposes": "A(i,j) = B(i,j) + C(j,i) + D(i,j) + E(j,i) + F(i,j)",
    "chain of products": "A(i,n) = B(i,j) * C(j,k) * D(k,l) * E(l,m) * F(m,n)",
    "sum of contractions": "A(i,j) = B(i,k) * C(k,j) + D(i,k) * E(k,j) - F(i,j)",
    "contraction of sums": "A(i,j) = (B(i,k) + C(i,k)) * (D(k,j) + E(k,j)) + F(i,j)",
}
TYPICAL, MOST = 0.5, 3.0
"""The aim: a typical kernel, and any expression of up to five operands, take at most so many seconds."""


@frozen
class Expression:
    """An expression whose compilation is timed, with the formats of its tensors; ``typical``: it counts among the typical kernels."""

    name: str
    text: str
    formats: Mapping[str, str]
    typical: bool = False


@frozen
class CompileTime:
    """Seconds of wall time, the least of some runs: ``lowering`` from text to C, ``compiling`` from C to a loaded kernel; lines of C."""

    name: str
    formats: str
    typical: bool
    lowering: float
    compiling: float
    lines: int

    @property
    def seconds(self) -> float:
        """Seconds from the text to a loaded kernel."""
        return self.lowering + self.compiling


TYPICAL_EXPRESSIONS = (
    Expression("SpMV", "y(i) = A(i,j) * x(j)", {"A": "csr"}, True),
    Expression("SpMM", "Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, True),
    Expression("SDDMM", "S(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": "csr", "S": "csr"}, True),
    Expression("SpGEMM", "A(i,j) = B(i,k) * C(k,j)", dict.fromkeys("ABC", "csr"), True),
    Expression("addition", "A(i,j) = B(i,j) + C(i,j)", dict.fromkeys("ABC", "csr"), True),
    Expression("MTTKRP", "A(i,r) = T(i,j,k) * B(j,r) * C(k,r)", {"T": "csf"}, True),
    Expression("TTV", "A(i,j) = T(i,j,k) * c(k)", {"T": "csf", "A": "dcsr"}, True),
)


def five_operands() -> Iterator[Expression]:
    """Yield expressions of five sparse matrices with a sparse result, in uniform formats and mixed ones."""
    for name, text in _FIVE.items():
        for form in ("csr", "dcsr", "coo"):
            yield Expression(name, text, dict.fromkeys(("A", *_NAMES), form))
        yield Expression(name, text, _MIXED)


def sums_of_high_order() -> Iterator[Expression]:
    """Yield sums of two sparse tensors of order 3 to 8: the higher the order, the more cases the loops distinguish."""
    for order in range(3, 9):
        indices = ",".join("ijklmnop"[:order])
        yield Expression(f"sum of order {order}", f"A({indices}) = B({indices}) + C({indices})", dict.fromkeys("ABC", "csf"))


def compile_time(expression: Expression, repeats: int = 2) -> CompileTime:
    """Return how long an expression takes to compile, the least of ``repeats`` runs."""
    found = [_compiled(expression) for _ in range(repeats)]
    return min(found, key=lambda one: one.seconds)


def _compiled(expression: Expression) -> CompileTime:
    with _empty_cache():
        started = time.perf_counter()
        kernel = compile_kernel(expression.text, expression.formats).default_kernel
        lines = len(kernel.source.splitlines())
        lowered = time.perf_counter()
        kernel.load()
        loaded = time.perf_counter()
    forms = ", ".join(dict.fromkeys(expression.formats.values()))
    return CompileTime(expression.name, forms, expression.typical, lowered - started, loaded - lowered, lines)


@contextmanager
def _empty_cache() -> Iterator[None]:
    before = os.environ.get("SPARSETUNE_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPARSETUNE_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["SPARSETUNE_CACHE"]
            else:
                os.environ["SPARSETUNE_CACHE"] = before


def write_times(path: Path, times: Iterable[CompileTime]) -> None:
    """Write times of compilation as CSV."""
    header = [field.name for field in fields(CompileTime)]
    rows = ((one.name, one.formats, int(one.typical), f"{one.lowering:.4f}", f"{one.compiling:.4f}", one.lines) for one in times)
    write_records(path, header, rows)


def read_times(path: Path) -> list[CompileTime]:
    """Return the times of compilation in a CSV file; none where it is missing."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_read(row) for row in csv.DictReader(file)]


def _read(row: dict[str, str]) -> CompileTime:
    seconds = float(row["lowering"]), float(row["compiling"])
    return CompileTime(row["name"], row["formats"], row["typical"] == "1", *seconds, int(row["lines"]))
