"""Random legal schedules of the kernels of the papers, each compiled once and run on many shapes with one and several threads."""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import Concretized, concretize
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.storage.tensor import Tensor

from .again import spoil
from .drawer import Drawer, Drawn, drawn
from .interpreted import interpreted
from .runner import Failure, built, last_lines
from .whole_numbers import operands, reference

SECONDS = 20
"""A kernel that runs longer than this hangs."""
LONG = 0.01
"""A kernel that runs longer than this on 210 rows is not run on more: a workspace over all pairs of places takes 18 GB there."""

EXPRESSIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("y(i) = A(i,j) * x(j)", ("A=csr", "A=csc", "A=dcsr", "A=coo", "", "A=csr x=compressed", "A=csc x=compressed", "A=dcsr x=compressed",
                              "A=csr y=compressed", "A=dm")),
    ("Y(i,k) = A(i,j) * X(j,k)", ("A=csr", "A=csc", "A=dcsr", "A=coo", "A=csr X=csr", "A=dm")),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", ("B=csr Z=csr", "B=csr", "B=dcsr Z=dcsr", "B=csc Z=csc", "B=coo Z=coo")),
    ("T(i,j) = B(i,j,k) * c(k)", ("B=csf T=dcsr", "B=csf", "B=dss T=csr", "B=coo", "B=csf c=compressed")),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", ("B=csf T=ssd", "B=csf", "B=dss", "B=coo")),
    ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", ("B=csf", "B=dss", "B=coo", "B=csf M=csr", "B=csf C=csr D=csr M=csr")),
    ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", ("B=csf", "B=dss")),
    ("C(i,j) = A(i,k) * B(k,j)", ("A=csr B=csr C=csr", "A=csr B=csr", "A=dcsr B=dcsr C=dcsr", "A=csc B=csc C=csc", "A=csr B=csc C=csr",
                                  "A=coo B=csr", "A=dm B=csr", "A=csr B=dm", "")),
    ("Z(i,j) = B(i,j) + C(i,j)", ("B=csr C=csr Z=csr", "B=csr C=csr", "B=dcsr C=dcsr Z=dcsr", "B=coo C=coo", "B=dcsr C=csr Z=csr",
                                  "B=csr Z=csr C=coo")),
    ("a = B(i,j) * C(i,j)", ("B=csr C=csr", "B=dcsr C=csr", "B=csr")),
    ("Z(i,j) = B(i,j) + C(i,j) + D(i,j)", ("B=csr C=csr D=csr Z=csr", "B=csr C=dcsr", "B=dcsr C=dcsr D=coo Z=dcsr")),
    ("Z(i,j) = B(i,j) * C(i,j) + D(i,j)", ("B=csr C=csr D=csr Z=csr", "B=dcsr C=csr D=csr", "B=csr D=dcsr Z=dcsr")),
    ("Z(i,j) = B(i,j) * C(i,j) * D(i,j)", ("B=csr C=csr D=csr Z=csr", "B=dcsr C=csr D=coo Z=csr")),
    ("y(i) = A(i,j) * x(j) + b(i)", ("A=csr", "A=csr b=compressed", "A=csr b=compressed y=compressed", "A=dcsr x=compressed",
                                         "A=dm")),
    ("y(i) = A(i,j) * x(j) - B(i,j) * z(j)", ("A=csr B=csr", "A=csr B=dcsr x=compressed", "A=csc B=csc", "A=dm B=csr", "A=dm B=dm")),
    ("Y(i,k) = A(i,j) * (X(j,k) + Z(j,k))", ("A=csr", "A=csr X=csr Z=csr", "A=dcsr X=csr")),
    ("Z(i,j) = A(i,k) * B(k,j) + C(i,j)", ("A=csr B=csr C=csr Z=csr", "A=csr B=csr", "A=csr C=csr")),
    ("T(i,j,k) = B(i,j,k) + C(i,j,k)", ("B=csf C=csf T=csf", "B=csf", "B=dss C=csf T=csf")),
    ("a = B(i,j,k) * C(i,j,k)", ("B=csf C=csf", "B=csf", "B=dss C=coo")),
    ("Z(i,j) = b(i) * c(j)", ("b=compressed c=compressed Z=dcsr", "b=compressed", "c=compressed Z=csr")),
    ("Z(i,j) = 2 * B(j,i)", ("B=csr Z=csr", "B=coo Z=csr", "B=csr")),
    ("a = B(i,j) * x(i) * z(j)", ("B=csr", "B=csr x=compressed", "B=coo z=compressed")),
)  # fmt: skip

SHAPES: tuple[Mapping[str, int], ...] = (
    {"i": 7, "j": 11, "k": 5, "l": 3, "m": 3, "r": 5, "n": 2},
    {"i": 13, "j": 3, "k": 9, "l": 6, "m": 2, "r": 3, "n": 3},
    {"i": 1, "j": 1, "k": 1, "l": 1, "m": 1, "r": 1, "n": 1},
    {"i": 0, "j": 4, "k": 3, "l": 2, "m": 2, "r": 2, "n": 2},
    {"i": 5, "j": 0, "k": 2, "l": 4, "m": 2, "r": 3, "n": 2},
    {"i": 4, "j": 3, "k": 0, "l": 0, "m": 3, "r": 0, "n": 2},
    {"i": 17, "j": 6, "k": 6, "l": 2, "m": 4, "r": 4, "n": 2},
)
MANY_ROWS: tuple[Mapping[str, int], ...] = (
    {"i": 210, "j": 37, "k": 4, "l": 3, "m": 2, "r": 3, "n": 2},
    {"i": 517, "j": 130, "k": 9, "l": 3, "m": 2, "r": 3, "n": 2},
)
CONSTANTS = (4, 6, 8)
DTYPES = ("float64", "float64", "float64", "float32", "int32", "int64")
PATTERNS = ("scattered", "rows", "one", "full", "none")
RUNS: tuple[tuple[Mapping[str, int], str], ...] = (
    *((shape, pattern) for number, shape in enumerate(SHAPES) for pattern in (PATTERNS if number < 2 else PATTERNS[:1])),
    *((shape, "blocks") for shape in MANY_ROWS),
)
"""Shapes and patterns that a case is run on."""
THREADS = (1, 3)


@dataclass(frozen=True)
class Scheduled:
    """A schedule that ``apply`` accepts, of one expression.

    Attributes:
        seed: names the case among those of its kind.
        formats: of operands and result that are not dense.
        extents: handed to the compiler as constants.
        dtype: of all values.
    """

    seed: int
    expression: str
    formats: tuple[tuple[str, str], ...]
    schedule: str
    extents: tuple[tuple[str, int], ...] = ()
    dtype: str = "float64"

    def __str__(self) -> str:
        kinds = " ".join(f"{name}={form}" for name, form in self.formats)
        return f"{self.seed}: {self.expression} | {kinds} | {self.schedule} | {dict(self.extents)} | {self.dtype}"

    @property
    def threads(self) -> tuple[int, ...]:
        """Schedules that say to ignore races may have some: one thread has none."""
        return (1,) if "ignore_races" in self.schedule else THREADS

    @property
    def sparse(self) -> set[str]:
        return {name for name, _ in self.formats}

    @property
    def halves(self) -> dict[str, tuple[str, str]]:
        """The indices of symmetric operands, of which one half is stored."""
        assignment = parse(self.expression)
        formats = formats_of(assignment, dict(self.formats))
        read = [access for access in accesses(assignment.value) if formats[access.tensor].mirrors]
        return {access.tensor: (access.indices[0], access.indices[1]) for access in read}

    def extents_in(self, shape: Mapping[str, int]) -> dict[str, int]:
        """Return the extents of a shape, those of symmetric operands made equal."""
        return square({**shape, **dict(self.extents)}, self.halves)

    def operands(self, shape: Mapping[str, int], pattern: str, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Return operands of a shape (``extents_in``) by a pattern."""
        arrays = operands(self.expression, self.sparse, shape, pattern, rng, self.dtype)
        whole = {name: np.tril(arrays[name]) + np.tril(arrays[name], -1).T for name in self.halves}
        return {**arrays, **whole}

    def compiled(self) -> Kernel:
        return compile_kernel(self.expression, dict(self.formats), dict(self.extents), self.schedule, self.dtype)


def square(extents: Mapping[str, int], pairs: Mapping[str, tuple[str, str]]) -> dict[str, int]:
    """Return extents, where both indices of each pair have the extent of the first of them that has one."""
    found = dict(extents)
    for first, second in pairs.values():
        if first in found or second in found:
            found[first] = found[second] = found.get(first, found.get(second, 0))
    return found


def kinds_of(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, form) for name, form in (item.split("=") for item in text.split()))


def fault(case: Scheduled, made: Kernel, threads: Sequence[int] = (), times: int = 1) -> str | None:
    """Run a case on all shapes and patterns; return what is wrong with the first wrong result, or None."""
    copies = "temporary" in case.schedule  # of the whole result, maybe in every iteration of a loop: minutes with many rows
    for number, (shape, pattern) in enumerate(RUNS[: -len(MANY_ROWS)] if copies else RUNS):
        shape = case.extents_in(shape)
        arrays = case.operands(shape, pattern, np.random.default_rng((case.seed, number)))
        expected = reference(case.expression, arrays, shape)
        for count in threads or case.threads:
            bound = made.bind_operands(arrays, count)
            for _ in range(times):
                spoil(bound)
                began = time.perf_counter()
                found = bound.once() if times == 1 else bound()
                long = time.perf_counter() - began > LONG
                wrong = _difference(case, found, expected)
                if wrong:
                    return f"{wrong}, shape {shape}, {pattern}, {count} threads"
                if long and number == len(RUNS) - len(MANY_ROWS):
                    return None
    return None


def _difference(case: Scheduled, found: Any, expected: NDArray[Any]) -> str:
    """Return what is wrong with a result, values and pattern, or ""."""
    dense = found.to_numpy() if isinstance(found, Tensor) else np.asarray(found)
    if dense.shape != expected.shape:
        return f"wrong: shape {dense.shape} instead of {expected.shape}"
    if not np.array_equal(dense, expected):
        return f"wrong: {int(np.count_nonzero(dense != expected))} of {expected.size} values"
    plain = "-" not in case.expression and '"dense"' not in case.schedule and expected.any()
    entries = isinstance(found, Tensor) and found.format.levels[-1].stores_coordinates
    if plain and entries and found.nnz != np.count_nonzero(expected):
        return f"wrong: {found.nnz} entries instead of {np.count_nonzero(expected)}"
    return ""


def default_program(expression: str, formats: tuple[tuple[str, str], ...]) -> Concretized:
    assignment = parse(expression)
    return concretize(assignment, formats_of(assignment, dict(formats)))


def random_scheduled(seed: int) -> Scheduled:
    """Return the case of a seed: directives are drawn one by one, those that are refused are dropped."""
    return random_draw(seed, Random(seed))[0]


def drawn_schedule(seed: int) -> Drawn:
    """Return what was drawn for a seed."""
    return random_draw(seed, Random(seed))[1]


def random_draw(
    seed: int, rng: Random, kind: type[Drawer] = Drawer, keeps: Callable[[str], bool] = bool
) -> tuple[Scheduled, Drawn]:
    """Return a case and what was drawn for it, by a kind of drawer; ``keeps`` says whether a legal directive may stay."""
    expression, choices = EXPRESSIONS[seed % len(EXPRESSIONS)]
    formats = kinds_of(rng.choice(choices))
    found = default_program(expression, formats)
    indices = dict.fromkeys(name for access in accesses(parse(expression).value) for name in access.indices)
    halves = Scheduled(seed, expression, formats, "").halves
    extents = square({name: rng.choice(CONSTANTS) for name in indices if rng.random() < 0.2}, halves)
    drawer = kind(rng, parse(expression).target.tensor, extents, found.formats)
    made = drawn(drawer, found.program, keeps)
    dtype = Random(f"dtype {seed}").choice(DTYPES)
    return Scheduled(seed, expression, formats, made.schedule, tuple(extents.items()), dtype), made


def run_random(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    return run([random_scheduled(seed) for seed in seeds], flags)


def run_interpreted(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    """Run random schedules in the interpreter of the loop IR, on few shapes."""
    return run([random_scheduled(seed) for seed in seeds], flags, interpreted_fault)


def interpreted_fault(case: Scheduled, made: Kernel) -> str | None:
    """Return what is wrong with the result of the interpreter, or None."""
    for number, shape in ((0, SHAPES[0]), *enumerate(SHAPES[2:6], 2)):
        shape = case.extents_in(shape)
        arrays = case.operands(shape, "scattered", np.random.default_rng(number))
        found, _ = interpreted(made.bind_operands(arrays, 1), "ignore_races" in case.schedule)
        wrong = _difference(case, found, reference(case.expression, arrays, shape))
        if wrong:
            return f"interpreted {wrong}, shape {shape}"
    return None


Check: TypeAlias = "Callable[[Scheduled, Kernel], str | None]"


def run(cases: Sequence[Scheduled], flags: Sequence[str], check: Check = fault, patience: int = 1) -> list[Failure]:
    """Compile, build together and run cases; return those that fail. A kernel that hangs ends the process."""
    failures: list[Failure] = []
    ready: list[tuple[Scheduled, Kernel, TypedKernel]] = []
    for case in cases:
        try:
            made = case.compiled()
            _ = made.default_kernel.source
        except Exception:
            failures.append(Failure(case.seed, str(case), f"does not compile: {last_lines(traceback.format_exc())}"))
        else:
            ready.append((case, made, made.default_kernel))
    with tempfile.TemporaryDirectory() as folder:
        for case, made, _ in built(ready, Path(folder), "scheduled", flags, failures):
            signal.alarm(SECONDS * patience)
            try:
                message = check(case, made)
            except Exception:
                message = f"does not run: {last_lines(traceback.format_exc())}"
            signal.alarm(0)
            if message is not None:
                failures.append(Failure(case.seed, str(case), message))
    return failures
