"""Random legal GPU schedules of the kernels of the papers: run on the GPU of this machine, or where it has none, thread by thread on the
processor, with everything that they do checked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import cffi
import numpy as np
from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.codegen.c import KERNEL
from sparsetune.compiler.concrete.nodes import Forall, Program, loops, walk
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.native.devices import architecture_here
from sparsetune.compiler.native.library import CSRC
from sparsetune.compiler.native.toolchain import find_program
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.targets.cuda_launch import DECLARATIONS, CudaKernel
from sparsetune.compiler.targets.cuda_objects import cubin_of, host_object
from sparsetune.compiler.targets.executor import executor_flags

from . import compare
from .cases import Case, random_case
from .drawer import Drawer, Drawn, chains
from .gpu_templates import searched_templates
from .runner import Failure, SomeCase, last_lines
from .scheduled import MANY_ROWS, SHAPES, Scheduled, _difference, kinds_of, random_draw
from .whole_numbers import reference

TARGET = "cuda" if find_program("nvidia-smi") else "cuda-executor"
"""What runs the kernels of tests: the GPU of this machine, or the executor where it has none."""
NEVER = "on a GPU"
"""How refusals begin of what is legal, but has no form on a GPU: lists that several fill, tables of which several would have copies."""

UNITS = ("gpu_block", "gpu_warp", "gpu_thread")
LANES = (2, 4, 8, 16, 32)
"""What a warp may have: parts of 32."""
REGISTERS = (16, 40, 255)
"""What a thread may have."""


class GpuDrawer(Drawer):
    """Draws blocks, warps and threads of a GPU in place of threads and vectors."""

    def finishing(self, program: Program) -> str:
        """Also that a sparse result is counted, then filled: else hardly any loop of one would be distributed."""
        if not self.formats[self.result].is_dense and not program.assembly and self.rng.random() < 0.7:
            return f"assemble({self.result}, insert)"
        return self._thread(program) if self.rng.random() < 0.6 else super().finishing(program)

    def _thread(self, program: Program) -> str:
        """Blocks before warps, warps before threads, each inside a loop of the one before where there is one."""
        tagged = [node for node in walk(program.statement) if isinstance(node, Forall) and node.tag.unit]
        last = max((UNITS.index(str(node.tag.unit)) for node in tagged), default=-1)
        unit = self.rng.choice(UNITS[min(last + 1, 2) :])
        inside = [inner.index for node in tagged for inner in walk(node.body) if isinstance(inner, Forall)]
        loop = self.rng.choice(inside) if inside else self.rng.choice([chain[0] for chain in chains(program)])
        parts = f", lanes, {self.rng.choice(LANES)}" if unit == "gpu_warp" and self.rng.random() < 0.5 else ""
        if unit == "gpu_thread" and self.rng.random() < 0.2:
            parts = f", registers, {self.rng.choice(REGISTERS)}"
        return f"parallelize({loop}, {unit}, {self._race(program, loop)}{parts})"

    def _vector(self, program: Program) -> str:
        return f"parallelize({self._loop(program)}, gpu_thread, {self._race(program, loops(program.statement)[0])})"

    def _build(self, program: Program) -> str:
        return self._thread(program)


def random_gpu(seed: int) -> Scheduled:
    """Return the case of a seed."""
    return _drawn(seed)[0]


def drawn_schedule(seed: int) -> Drawn:
    """Return what was drawn for a seed."""
    return _drawn(seed)[1]


@cache
def _drawn(seed: int) -> tuple[Scheduled, Drawn]:
    return random_draw(seed, Random(f"gpu {seed}"), GpuDrawer, lambda directive: "ignore_races" not in directive)


@dataclass(frozen=True)
class Draws:
    """Cases that were drawn until there were as many to run as wanted.

    Attributes:
        seeds: of those to run.
        refused: how many others have no form on a GPU, by reason.
    """

    seeds: tuple[int, ...]
    refused: Mapping[str, int]

    def __str__(self) -> str:
        total = sum(self.refused.values())
        reasons = "".join(f"\n  {count}: {reason}" for reason, count in sorted(self.refused.items(), key=lambda found: -found[1]))
        return f"{len(self.seeds) + total} drawn, {len(self.seeds)} to run, {total} refused{':' if total else ''}{reasons}"


def draws(first: int, wanted: int) -> Draws:
    """Draw cases from a seed on, until so many have a form on a GPU."""
    seeds, refused = list[int](), Counter[str]()
    for seed in count(first):
        if len(seeds) == wanted:
            return Draws(tuple(seeds), refused)
        try:
            _ = compiled(random_gpu(seed)).source
        except ScheduleError as error:
            if NEVER not in str(error):
                raise
            refused[NEVER + re.split("[,;]", str(error).partition(NEVER)[2])[0]] += 1
        else:
            seeds.append(seed)
    raise AssertionError("there is no last seed")


def compiled(case: Scheduled, target: str = TARGET) -> Kernel:
    return compile_kernel(case.expression, dict(case.formats), dict(case.extents), case.schedule, case.dtype, target)


def fault(case: Scheduled, made: Kernel, patterns: Sequence[tuple[int, str]]) -> str | None:
    """Run a case on some shapes and patterns; return what is wrong with the first wrong result, or None."""
    for number, pattern in patterns:
        shape = case.extents_in(SIZES[number])
        arrays = case.operands(shape, pattern, np.random.default_rng(number))
        wrong = _difference(case, made.bind_operands(arrays)(), reference(case.expression, arrays, shape))
        if wrong:
            return f"{wrong}, shape {shape}, {pattern}"
    return None


def build(kernels: Sequence[TypedKernel], folder: Path, name: str) -> None:
    """Compile kernels for what runs them, many at a time."""
    if TARGET == "cuda-executor":
        build_on_processor(kernels, folder, name)
        return
    arch, sources = architecture_here(), [kernel.source for kernel in kernels]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = [pool.submit(host_object, source, 300.0) for source in sources]
        for made in [*objects, *(pool.submit(cubin_of, source, arch) for source in sources)]:
            made.result()


def build_on_processor(kernels: Sequence[TypedKernel], folder: Path, name: str) -> None:
    """Compile kernels into one shared object for the executor, and give each its function, as ``TypedKernel.load`` would."""
    parts = ['#include "st_cuda.h"\n']
    for number, kernel in enumerate(kernels):
        text = kernel.source.replace('#include "st_cuda.h"\n', "").replace(f"int32_t {KERNEL}(", f"int32_t {KERNEL}_{number}(")
        parts.append(f"namespace st_file{number} {{\n{text}}}\n")
    source, target = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text("".join(parts))
    compiler = str(shutil.which("g++"))
    command = [compiler, *executor_flags(compiler), "-I", str(CSRC), str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the C++ compiler failed on {source}:\n{done.stderr[:4000]}")
    ffi = cffi.FFI()
    entry = f"int32_t {KERNEL}(void **arrays, int64_t *sizes, int64_t threads);"
    ffi.cdef("".join(entry.replace(KERNEL, f"{KERNEL}_{number}") for number in range(len(kernels))))
    ffi.cdef(DECLARATIONS.replace(entry, ""))
    library: Any = ffi.dlopen(str(target))
    for number, kernel in enumerate(kernels):
        reads = kernel.spec.result.initial != "any"
        function = kernel.spec.function
        unit = kernel.target.vectors(kernel.spec)
        made = CudaKernel(library, getattr(library, f"{KERNEL}_{number}"), function.arrays, reads, "g++", (), function, unit)
        kernel.__dict__["executable"] = made


SUMS: tuple[tuple[str, str, str, str], ...] = (
    ("y(i) = A(i,j) * x(j)", "A=csr", "collapse(i, j, f); pos(f, p, A)", ""),
    ("y(i) = A(i,j) * x(j)", "A=coo", "collapse(i, j, f); pos(f, p, A)", ""),
    ("y(i) = A(i,j) * x(j)", "A=dcsr", "collapse(i, j, f); pos(f, p, A)", ""),
    ("a = A(i,j) * x(j)", "A=csr", "collapse(i, j, f); pos(f, p, A)", ""),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", "collapse(i, j, f); pos(f, p, A)", "k"),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=coo", "collapse(i, j, f); pos(f, p, A)", "k"),
    ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", "B=csf", "collapse(j, k, f); collapse(i, f, g); pos(g, p, B)", "l"),
    ("T(i,j) = B(i,j,k) * c(k)", "B=csf", "collapse(j, k, f); collapse(i, f, g); pos(g, p, B)", ""),
    ("T(i,j) = B(i,j,k) * c(k)", "B=csf T=dcsr", "collapse(j, k, f); collapse(i, f, g); pos(g, p, B)", ""),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", "B=csf", "collapse(j, k, f); collapse(i, f, g); pos(g, p, B)", "l"),
)
"""Sums over an operand's positions: how these are come by, and the dense index of a row of the result."""


@cache
def carried_gpu(seed: int) -> Scheduled:
    """Return sums whose threads carry them in order, of tiles of any sizes on any units, with the row's loop at any place."""
    rng = Random(f"carried {seed}")
    expression, formats, positions, row = rng.choice(SUMS)
    units = [unit for unit in UNITS if rng.random() < 0.6] or ["gpu_block"]
    sizes = sorted((rng.randint(1, 40) for _ in units), reverse=True)
    steps, left, loops = [positions], "p", list[str]()
    if "=coo" not in formats and rng.random() < 0.5:
        steps, left = [positions, "merge_path(p, m)"], "m"
    for number, size in enumerate(sizes):
        steps.append(f"split({left}, t{number}, q{number}, {size})")
        loops.append(f"t{number}")
        left = f"q{number}"
    if row:
        order = [*loops, left]
        order.insert(rng.randint(0, len(order)), row)
        steps.append(f"reorder({', '.join(order)})")
        if order.index(row) > len(loops) - 1 and units[-1] != "gpu_thread" and rng.random() < 0.5:
            steps.append(f"parallelize({row}, gpu_thread, no_races)")
    steps += [f"parallelize({loop}, {unit}, temporary)" for loop, unit in zip(loops, units, strict=True)]
    return Scheduled(seed, expression, kinds_of(formats), "; ".join(steps))


def run_carried(seeds: Sequence[int], flags: Sequence[str] = ()) -> list[Failure]:
    """Compile and run sums that are carried; return those that fail, those that atomics are needed for among them."""

    def made(case: Scheduled) -> tuple[Kernel, TypedKernel]:
        found = compiled(case)
        assert "st_device.carry(" in found.source
        return found, found.default_kernel

    return _run([carried_gpu(seed) for seed in seeds], made, lambda case, found: fault(case, found, MANY))


SIZES = (*SHAPES, *MANY_ROWS)
FEW = ((0, "scattered"), (0, "rows"), (3, "scattered"), (6, "full"), (len(SHAPES), "blocks"))
MANY = tuple((number, pattern) for number in range(len(SHAPES)) for pattern in ("scattered", "rows", "one", "full", "none"))


def run_searched(seeds: Sequence[int], flags: Sequence[str] = ()) -> list[Failure]:
    """Compile and run what the tuner lists for GPUs, by their numbers; return those that fail."""
    return _run_scheduled([searched_templates()[seed] for seed in seeds])


def run_templates(listed: Mapping[int, Scheduled], seeds: Sequence[int], flags: Sequence[str] = ()) -> list[Failure]:
    """Compile and run templates by their numbers, as listed: to list all takes minutes in each process. Return those that fail."""
    return _run_scheduled([listed[seed] for seed in seeds], FEW[:2])


def run_gpu(seeds: Sequence[int], flags: Sequence[str] = (), patterns: Sequence[tuple[int, str]] = FEW) -> list[Failure]:
    """Compile and run the scheduled cases of some seeds; return those that fail. ``flags``: not used, the executor has its own."""
    return _run_scheduled([random_gpu(seed) for seed in seeds], patterns)


def _run_scheduled(cases: Sequence[Scheduled], patterns: Sequence[tuple[int, str]] = FEW) -> list[Failure]:
    def made(case: Scheduled) -> tuple[Kernel, TypedKernel]:
        found = compiled(case)
        return found, found.default_kernel

    return _run(cases, made, lambda case, found: fault(case, found, patterns))


def run_mapped(seeds: Sequence[int], flags: Sequence[str] = ()) -> list[Failure]:
    """Compile and run random expressions as they are mapped to a GPU by default."""

    def made(case: Case) -> tuple[Kernel, TypedKernel]:
        semiring = None if case.semiring == ("+", "*") else case.semiring
        found = compile_kernel(case.text, case.formats, case.constants, semiring=semiring, target=TARGET)
        return found, found.specialised({name: operand.given for name, operand in case.operands.items()}, case.given)[0]

    return _run([random_case(seed) for seed in seeds], made, lambda case, found: compare.fault(case, found, interpreted_every=10**9))


def _run(
    cases: Sequence[SomeCase],
    make: Callable[[SomeCase], tuple[Kernel, TypedKernel]],
    check: Callable[[SomeCase, Kernel], str | None],
) -> list[Failure]:
    failures: list[Failure] = []
    ready: list[tuple[SomeCase, Kernel, TypedKernel]] = []
    for case in cases:
        try:
            made, kernel = make(case)
            _ = kernel.source
        except Exception:
            failures.append(Failure(case.seed, str(case), f"does not compile: {last_lines(traceback.format_exc())}"))
        else:
            ready.append((case, made, kernel))
    with tempfile.TemporaryDirectory() as folder:
        build([kernel for _, _, kernel in ready], Path(folder), "kernels")
        for case, made, _ in ready:
            try:
                message = check(case, made)
            except Exception:
                message = f"does not run: {last_lines(traceback.format_exc())}"
            failures += [] if message is None else [Failure(case.seed, str(case), message)]
    return failures
