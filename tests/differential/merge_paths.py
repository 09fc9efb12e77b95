"""Random schedules of the kernels of the papers that go along a merge path."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.notation.parser import parse

from .drawer import Drawer, drawn
from .runner import Failure
from .scheduled import Scheduled, default_program, fault, interpreted_fault, kinds_of, run

PATHS: tuple[tuple[str, str, str], ...] = (
    ("y(i) = A(i,j) * x(j)", "A=csr", "collapse(i, j, f); pos(f, p, A)"),
    ("y(i) = A(i,j) * x(j)", "A=dcsr", "collapse(i, j, f); pos(f, p, A)"),
    ("a = A(i,j) * x(j)", "A=csr", "collapse(i, j, f); pos(f, p, A)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "collapse(i, j, f); pos(f, p, A)"),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", "collapse(i, j, f); pos(f, p, B)"),
    ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", "B=csf", "collapse(j, k, f); collapse(i, f, g); pos(g, p, B)"),
    ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", "B=csf", "collapse(j, k, f); pos(f, p, B)"),
    ("T(i,j) = B(i,j,k) * c(k)", "B=csf T=dcsr", "collapse(j, k, f); collapse(i, f, g); pos(g, p, B)"),
)
"""Sums, and how positions of several levels are come by, whose merge path may be taken."""


def random_path(seed: int) -> Scheduled:
    """Return a case of a seed that goes along a merge path; what else is drawn is drawn as in ``random_scheduled``."""
    rng = Random(f"merge path {seed}")
    expression, text, begun = PATHS[seed % len(PATHS)]
    formats, found = kinds_of(text), default_program(expression, kinds_of(text))
    drawer = Drawer(rng, parse(expression).target.tensor, {}, found.formats)
    made = drawn(drawer, found.program, begun=[*begun.split("; "), "merge_path(p, m)"])
    return Scheduled(seed, expression, formats, made.schedule)


def run_paths(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    """Compile and run the cases of some seeds that go along a merge path, as C and in the interpreter; return those that fail."""

    def check(case: Scheduled, made: Kernel) -> str | None:
        return fault(case, made) or interpreted_fault(case, made)

    return run([random_path(seed) for seed in seeds], flags, check)
