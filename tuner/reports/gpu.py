"""``python -m sparsetune.tuner.reports.gpu PART``: what generated kernels do on the GPU of this machine, beside rivals.

Parts are short and can be interrupted: every result is a row of a CSV file as soon as it is there, and the same command goes on where
the last one stopped. Part "page" writes results/gpu.md from the files. With --target cuda-executor everything runs on the processor,
which shows that it runs, not how fast.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...compiler.errors import BuildError, SparsetuneError
from ...compiler.evaluate import compile_kernel, evaluate
from ...compiler.frozen import frozen
from ...compiler.native.cache import cache_folder
from ...compiler.native.devices import architecture_here
from ...compiler.storage.construct import borrowed
from ...compiler.storage.tensor import Tensor
from ...compiler.targets.cuda import CudaKernel, CudaLaunch, load_library, load_on_device
from ...compiler.targets.cuda_objects import cubin_of, host_object
from ...compiler.targets.executor import FLAGS as EXECUTOR_FLAGS
from ...datasets import load
from ..measure.eviction import FLUSHED
from .gpu_bundle import begin, bundle
from .gpu_cases import KERNELS, Kernel, edges, kernels_for, skewed
from .gpu_page import page
from .gpu_rivals import SOURCE, Run, by_hand, installed, runs_by_hand, runs_of_libraries
from .gpu_rows import Rows, read_rows

RUNS = 20
COPIED = 4 << 30
SKEWS = (0.0, 0.25, 0.5, 0.75, 1.0)


@frozen
class Device:
    """Where kernels run: ``target`` of ``sparsetune.compile``, what the device is called, and its architecture or the compiler for it."""

    target: str
    name: str
    compiler: str

    @classmethod
    def here(cls, target: str) -> Device:
        """Return the GPU of this machine, or the executor. Raises ``BuildError`` where it is missing."""
        if target == "cuda-executor":
            compiler = shutil.which("g++")
            if compiler is None:
                raise BuildError("no C++ compiler was found (g++)")
            return cls(target, "the executor, on a processor", compiler)
        arch = architecture_here()
        query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.mem,clocks.max.sm", "--format=csv,noheader"]
        shown = subprocess.run(query, capture_output=True, text=True, check=False, timeout=20).stdout.strip().splitlines()
        return cls(target, shown[0] if shown else arch, arch)

    def rivals(self) -> CudaKernel:
        source = SOURCE.read_text()
        if self.target == "cuda-executor":
            return by_hand(load_library(source, self.compiler, EXECUTOR_FLAGS, ".cpp", 300.0), self.compiler)
        return by_hand(load_on_device(source, self.compiler, 300.0), self.compiler)


def same(found: Any, wanted: Any) -> str:
    """Return "yes" where a result is right, to rounding, or how far it is off."""
    left, right = (np.asarray(value.toarray() if hasattr(value, "toarray") else value) for value in _aligned(found, wanted))
    if left.shape != right.shape:
        return f"its shape is {left.shape}, not {right.shape}"
    error = float(np.max(np.abs(left - right) / np.maximum(np.abs(right), 1.0), initial=0.0))
    return "yes" if error < 1e-9 else f"wrong by {error:.2g}"


def _aligned(found: Any, wanted: Any) -> tuple[Any, Any]:
    """Return two things to compare: stored values, the difference of sparse matrices and nothing, or both as they are."""
    if isinstance(wanted, Tensor):
        if isinstance(found, np.ndarray) and found.shape == wanted.values.shape:
            return found, wanted.values
        wanted = wanted.to_scipy() if wanted.order == 2 else wanted.to_numpy()
    if isinstance(found, Tensor):
        found = found.to_scipy() if found.order == 2 else found.to_numpy()
    if not isinstance(found, np.ndarray) and not isinstance(wanted, np.ndarray):
        difference = abs(found.tocsr() - wanted.tocsr())
        return np.array([difference.max() if difference.nnz else 0.0]), np.zeros(1)
    return found, wanted


def race(kernel: Kernel, name: str, data: Tensor, device: Device, rows: Rows, flushed: int, runs: int, others: bool = True) -> None:
    """Measure every schedule of a kernel, and its rivals, on one input."""
    formats, operands = dict(kernel.formats), kernel.operands(data)
    target = next((form for tensor, form in kernel.formats if tensor not in operands), None)
    wanted: list[Any] = []

    def reference() -> Any:
        if not wanted:
            wanted.append(evaluate(kernel.expression, operands, output_format=target, schedule="default"))
        return wanted[0]

    def total(result: Any) -> int:
        return sum(int(found.nbytes) for found in operands.values()) + int(getattr(result, "nbytes", 0))

    def ours(schedule: str) -> Callable[[], tuple[list[float], int, str]]:
        def measured() -> tuple[list[float], int, str]:
            made = compile_kernel(kernel.expression, formats, dict(kernel.columns), schedule, target=device.target)
            bound = made.bind(**operands)
            right, launch = same(bound(), reference()), bound.launch
            assert isinstance(launch, CudaLaunch)
            return launch.seconds(runs, flushed), total(reference()), right

        return measured

    def theirs(run: Run) -> Callable[[], tuple[list[float], int, str]]:
        return lambda: (run.seconds(runs, flushed), total(reference()), same(run.result(), reference()))

    count = int(data.nnz)
    for what, schedule in kernel.schedules():
        rows.add(name, count, kernel.name, "generated", what, ours(schedule))
    if others:
        for run in runs_by_hand(device.rivals(), kernel.name, operands):
            rows.add(name, count, kernel.name, "by hand", run.what, theirs(run))
        for library, run in runs_of_libraries(kernel.name, operands) if device.target == "cuda" else ():
            rows.add(name, count, kernel.name, library, run.what, theirs(run))


def part_machine(device: Device, rows: Rows, inputs: Sequence[str], runs: int, size: float) -> None:
    """What the machine has, and its copy bandwidth."""
    click.echo(f"device: {device.name}; compiler: {device.compiler}; libraries: {', '.join(installed()) or 'none'}")
    copied = min(COPIED, int(COPIED * size))
    rows.add("memory", copied, "copy", "device", "to itself", lambda: (device.rivals().copy_seconds(copied, runs), 2 * copied, "yes"))


def part_edges(device: Device, rows: Rows, inputs: Sequence[str], runs: int, size: float) -> None:
    """Mappings on matrices that break careless ones: right or not."""
    for name, matrix in edges(max(100, int(10_000_000 * size)), max(100, int(50_000 * min(1.0, 1000 * size)))).items():
        for kernel in KERNELS:
            if kernel.order == 2 and not kernel.square:
                race(kernel, name, borrowed(matrix), device, rows, 0, 2)


def part_kernels(device: Device, rows: Rows, inputs: Sequence[str], runs: int, size: float) -> None:
    """All kernels on the inputs that are named."""
    for source in inputs:
        data = load(source, "csf" if source.partition(".tns")[1] else None)
        data = data if data.order > 2 else load(source, "csr")
        for kernel in kernels_for(data):
            race(kernel, Path(source).name, data, device, rows, FLUSHED if device.target == "cuda" else 0, runs)


def part_skew(device: Device, rows: Rows, inputs: Sequence[str], runs: int, size: float) -> None:
    """Figure 33: rows of ever more different lengths; and few long rows (section 7.3)."""
    entries = int(400_000_000 * size)
    for skew in SKEWS:
        matrix = skewed(max(10, entries // 40), max(10, entries // 40), entries, skew)
        race(KERNELS[0], f"{entries:.0e} entries, skew {skew:g}", borrowed(matrix), device, rows, 0, runs)
    wide = skewed(100, max(10, int(100_000 * min(1.0, 1000 * size))), int(5_000_000 * min(1.0, 1000 * size)), 0.0)
    race(KERNELS[0], "100 long rows", borrowed(wide), device, rows, 0, runs)


def prepare(arch: str) -> int:
    """Compile everything that the parts run into the cache, for a device that is not here, and return how many kernels these are."""
    sources = [SOURCE.read_text()]
    for kernel in KERNELS:
        for _, schedule in kernel.schedules():
            made = compile_kernel(kernel.expression, dict(kernel.formats), dict(kernel.columns), schedule, target="cuda", arch=arch)
            sources.append(made.source)
    for source in sources:
        cubin_of(source, arch)
        host_object(source, 300.0)
    return len(sources)


PARTS = {"machine": part_machine, "edges": part_edges, "kernels": part_kernels, "skew": part_skew}


@click.command()
@click.argument("part", type=click.Choice([*PARTS, "page", "prepare"]))
@click.argument("inputs", nargs=-1)
@click.option("--folder", type=click.Path(path_type=Path), default=Path("results/gpu"), show_default=True, help="Where rows are kept.")
@click.option("--minutes", type=float, default=7.5, show_default=True, help="After which the part stops; run it again to go on.")
@click.option("--target", type=click.Choice(["cuda", "cuda-executor"]), default="cuda", show_default=True)
@click.option("--runs", type=int, default=RUNS, show_default=True, help="Of each kernel.")
@click.option("--size", type=float, default=1.0, show_default=True, help="Of what is generated, as a share of what the paper has.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("results/gpu.md"), show_default=True, help="Of page.")
@click.option("--arch", default="sm_90", show_default=True, help="Of part prepare: compiled for it.")
@click.option("--bundle", "taken", type=click.Path(path_type=Path), help="Of part prepare: a new folder, for all to take along.")
@click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data"), show_default=True, help="Of part prepare: inputs.")
def main(
    part: str, inputs: Sequence[str], folder: Path, minutes: float, target: str, runs: int, size: float, output: Path, arch: str,
    taken: Path | None, data: Path,
) -> None:  # fmt: skip
    """Run a PART: machine, edges, kernels (on INPUTS: files or names), skew; or page, or prepare, which need no device."""
    if part == "page":
        output.write_text(page([row for name in PARTS for row in read_rows(folder / f"gpu_{name}.csv")]))
        return
    try:
        if part == "prepare":
            if taken is not None:
                begin(taken)
                os.environ["SPARSETUNE_CACHE"] = str(taken.resolve() / "cache")  # which has nothing else
            click.echo(f"{prepare(arch)} kernels are compiled for {arch} in {cache_folder()}; take the folder along as SPARSETUNE_CACHE")
            if taken is not None:
                size = bundle(taken, data) / (1 << 20)
                click.echo(f"{taken} has {size:.0f} MiB, with {len(list((taken / 'inputs').iterdir()))} inputs: copy it, and start its run")
            return
        device = Device.here(target)
        PARTS[part](device, Rows(folder, part, device.name, minutes), inputs, runs, size)
    except TimeoutError:
        click.echo(f"{minutes:g} minutes are over: run the same command again to go on", err=True)
    except SparsetuneError as error:
        raise click.ClickException(str(error).splitlines()[0]) from None


if __name__ == "__main__":
    main()
