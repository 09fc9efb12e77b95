"""The parts of the measurements on a GPU; each goes on where it was stopped (``gpu_rows``)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...compiler.evaluate import compile_kernel
from ...compiler.frozen import frozen
from ...compiler.native.devices import gpu_state
from ...compiler.storage.construct import borrowed
from ...compiler.storage.tensor import Tensor
from ...datasets import load
from ..measure.eviction import FLUSHED
from .gpu_cases import CPU, DEFAULT, FAR, KERNELS, PLAIN, SPMV, UNROLLED, kernels_for
from .gpu_cusparse import cusparse
from .gpu_listed import LISTED, Listed, listed
from .gpu_matrices import banded, edges, far, fibred, in_order, skewed
from .gpu_race import Device, race, race_choice
from .gpu_rivals import installed
from .gpu_rows import Rows

COPIED = 4 << 30
SKEWS = (0.0, 1.0, 0.5, 0.25, 0.75)
SKEWED = (UNROLLED, "warp per row", "merge path", "row to a thread", "2048 nonzeros to a block, 8 to a thread")
"""The mappings of Figure 33, and two to compare them with."""
RANDOM = (UNROLLED, PLAIN, "warp per row", "row to a thread", CPU, DEFAULT)
"""The mappings that section 7.3 compares on four million entries at random."""
STREAMED = (
    DEFAULT, UNROLLED, "merge path", "row to a thread", "row to 2 lanes", "row to 2 lanes, 4 at a time", "row to 4 lanes",
    "row to 4 lanes, 4 at a time", "row to 8 lanes, 2 at a time", "1024 nonzeros to a block, 8 to a thread, products first",
)  # fmt: skip
"""The mappings that run on inputs far larger than the caches (``part_streams``)."""
WIDEST = 2 * 10**8
"""Most elements of a dense result; matrices with empty rows get fewer rows to keep it."""
TOOLS = ("memcheck", "racecheck", "initcheck")


@frozen
class Asked:
    """The options of a part.

    Attributes:
        inputs: files or names of inputs, for part kernels.
        runs: how many runs of each kernel are timed.
        size: size of generated inputs, as a share of the paper's.
    """

    inputs: Sequence[str]
    runs: int
    size: float

    def scaled(self, count: int, least: int, times: float = 1.0) -> int:
        """Return the share ``size`` of a count; ``times`` makes that share larger, up to the whole."""
        return max(least, int(count * min(1.0, times * self.size)))


def part_machine(device: Device, rows: Rows, asked: Asked) -> None:
    """Describe the machine, and measure its copy bandwidth."""
    click.echo(f"device: {device.name}; compiler: {device.compiler}; libraries: {', '.join(installed()) or 'none'}")
    copied = min(COPIED, int(COPIED * asked.size))
    rows.add("memory", copied, "copy", "device", "to itself", lambda: (device.rivals().copy_seconds(copied, asked.runs), 2 * copied, "yes"))
    there = [*installed(), *(["cuSPARSE"] if cusparse() is not None else [])]
    for library in ("cuSPARSE", "cupy", "torch"):
        found = "yes" if library in there else "is not here"
        rows.add("machine", 0, "library", library, "to race against", lambda found=found: ([], 0, found))


def part_right(device: Device, rows: Rows, asked: Asked) -> None:
    """Check schedules that the tuner lists, of every kernel, on whole numbers: results have to be equal bit for bit."""
    for case in listed(asked.scaled(LISTED, 8)):
        rows.add(case.name, 0, case.expression, "generated", case.schedule, lambda case=case: ([], 0, _fault(case, device)))


def _fault(case: Listed, device: Device) -> str:
    made = compile_kernel(case.expression, dict(case.formats), None, case.schedule, target=device.target)
    for pattern, operands in case.operands():
        found = made.bind_operands(operands)()
        array = found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)
        if not np.array_equal(array, case.expected(operands)):
            return f"wrong on {pattern}"
    return "yes"


def mappings(order: int) -> list[tuple[str, str]]:
    """Return the kernels over inputs of an order, with each of their mappings."""
    return [(kernel.name, what) for kernel in KERNELS if kernel.order == order for what, _ in kernel.schedules()]


def part_kernels(device: Device, rows: Rows, asked: Asked) -> None:
    """Race all kernels on the named inputs, with absolute values, so that no sum cancels and errors are those of rounding."""
    sources = {Path(source).name: source for source in asked.inputs}
    for name in rows.missing_first({name: mappings(3 if ".tns" in source else 2) for name, source in sources.items()}):
        data = loaded(sources[name])
        for kernel in kernels_for(data):
            race(kernel, name, data, device, rows, runs=asked.runs, flushed=FLUSHED if device.is_gpu else 0)


def loaded(source: str) -> Tensor:
    """Return the absolute values of an input: a matrix by rows, a tensor by fibres."""
    data = load(source, "csf" if source.partition(".tns")[1] else None)
    return abs(data if data.order > 2 else load(source, "csr"))


def part_choices(device: Device, rows: Rows, asked: Asked) -> None:
    """Time what the static model chooses for the named inputs, which nothing was measured on before."""
    for source in asked.inputs:
        data = loaded(source)
        for kernel in kernels_for(data):
            race_choice(kernel, Path(source).name, data, device, rows, runs=asked.runs, flushed=FLUSHED if device.is_gpu else 0)


def part_tensors(device: Device, rows: Rows, asked: Asked) -> None:
    """Race kernels of tensors on inputs so large that reading and writing them takes at least ten times as long as a launch."""
    slices, each = asked.scaled(2_000_000, 8), (asked.scaled(20_000_000 // length, 8) for length in (16, 128))
    made: dict[str, Callable[[], Tensor]] = {
        f"{slices:.0e} slices of 2 entries in order": lambda: in_order(slices, 1, 2),
        **{
            f"{fibres:.0e} fibres of {length}": lambda fibres=fibres, length=length: fibred(max(1, fibres // 8), 8, length, (2000, 50_000))
            for fibres, length in zip(each, (16, 128), strict=True)
        },
    }
    for name in rows.missing_first(dict.fromkeys(made, mappings(3))):
        data = made[name]()
        for kernel in kernels_for(data):
            race(kernel, name, data, device, rows, runs=asked.runs, flushed=FLUSHED if device.is_gpu else 0)


def part_edges(device: Device, rows: Rows, asked: Asked) -> None:
    """Check mappings on the edge cases of ``gpu_matrices.edges``."""
    for kernel in KERNELS:
        if kernel.order == 2 and not kernel.square:
            columns = max((extent for _, extent in kernel.columns), default=1)
            empty = asked.scaled(min(10**7, WIDEST // columns), 100)
            for name, matrix in edges(empty, asked.scaled(50_000, 100, 1000)).items():
                race(kernel, name, borrowed(matrix), device, rows, runs=2, others=False)


def part_skew(device: Device, rows: Rows, asked: Asked) -> None:
    """Race SpMV on entries at random, with and without Figure 2e's temporary, and on few long rows (section 7.3), and on rows of growing
    skew (Figure 33)."""
    spread, entries = asked.scaled(4_000_000, 400), asked.scaled(400_000_000, 400)
    rows_of = {skew: f"{entries:.0e} entries, skew {skew:g}" for skew in SKEWS}
    at_random, long = f"{spread:.0e} entries at random", "100 long rows"
    every = [what for what, _ in SPMV.schedules()]
    made: dict[str, tuple[Callable[[], Any], Sequence[str] | None]] = {
        at_random: (lambda: skewed(max(10, spread // 10), max(10, spread // 10), spread, 0.0), RANDOM),
        long: (lambda: skewed(100, asked.scaled(100_000, 10, 1000), asked.scaled(5_000_000, 10, 1000), 0.0), None),
        **{
            name: (lambda skew=skew: skewed(max(10, entries // 40), max(10, entries // 40), entries, skew), SKEWED)
            for skew, name in rows_of.items()
        },
    }
    for name in rows.missing_first({name: [(SPMV.name, what) for what in only or every] for name, (_, only) in made.items()}):
        make, only = made[name]
        race(SPMV, name, borrowed(make()), device, rows, runs=asked.runs, only=only)


def part_streams(device: Device, rows: Rows, asked: Asked) -> None:
    """Race SpMV on matrices that are read from memory once, while x stays in the caches from row to row."""
    side = int(asked.scaled(25_000_000, 9) ** 0.5)
    shapes: dict[str, tuple[int, Sequence[int]]] = {
        "rows of 17 in a band": (asked.scaled(8_000_000, 20), range(17)),
        "rows of 5 of a plane": (side * side, (0, side - 1, side, side + 1, 2 * side)),
    }
    made = {f"{count:.1e} {what}": (count, offsets) for what, (count, offsets) in shapes.items()}
    for name in rows.missing_first({name: [(SPMV.name, what) for what in STREAMED] for name in made}):
        race(SPMV, name, borrowed(banded(*made[name])), device, rows, runs=asked.runs, only=STREAMED)


def part_far(device: Device, rows: Rows, asked: Asked) -> None:
    """Race SpMV on more than 2^31 stored entries."""
    matrix = far(asked.scaled(2_200_000, 100))
    race(SPMV, f"{matrix.nnz:.2e} entries", borrowed(matrix), device, rows, runs=3, only=FAR, others=False)


def part_sanitizer(device: Device, rows: Rows, asked: Asked) -> None:
    """Run NVIDIA's compute-sanitizer, if installed, over a sample of part "right"."""
    program = shutil.which("compute-sanitizer")
    for tool in TOOLS:
        rows.add("whole numbers", 0, "a sample", "compute-sanitizer", tool, lambda tool=tool: ([], 0, _sanitized(program, tool)))


def _sanitized(program: str | None, tool: str) -> str:
    if program is None:
        return "is not here"
    code = "from sparsetune.tuner.reports.gpu_parts import check_sample; raise SystemExit(check_sample())"
    try:
        command = [program, "--tool", tool, "--error-exitcode", "9", sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    except subprocess.TimeoutExpired:
        return "took longer than 150 s"
    lines = [line.strip("= ") for line in (done.stdout + done.stderr).splitlines() if line.startswith("========= ")]
    return "yes" if not done.returncode else next((line for line in lines if line and "COMPUTE-SANITIZER" not in line), "failed")


def check_sample() -> int:
    """Run 12 of the schedules of part "right"; return how many are wrong."""
    device = Device.here("cuda")
    return sum(_fault(case, device) != "yes" for case in listed(12))


def note_state(rows: Rows, when: str) -> None:
    """Record the clocks of the device and what holds them back."""
    state = gpu_state()
    if state:
        shown = ", ".join(f"{name} {value}" for name, value in state.items() if name not in ("name", "driver_version"))
        rows.add(rows.part, 0, "state", "driver", f"{when} {time.strftime('%H:%M:%S')}: {shown}", lambda: ([], 0, "yes"))


Part = Callable[[Device, Rows, Asked], None]
PARTS: Mapping[str, Part] = {
    "machine": part_machine, "streams": part_streams, "skew": part_skew, "far": part_far, "tensors": part_tensors, "kernels": part_kernels,
    "choices": part_choices, "edges": part_edges, "right": part_right, "sanitizer": part_sanitizer,
}  # fmt: skip
"""The parts by name, the most important first; parts that are not finished on a device come before those that are."""

MINUTES = {
    "machine": 0.5, "streams": 1.0, "skew": 4.0, "far": 1.5, "tensors": 2.0, "kernels": 4.0, "choices": 1.5, "edges": 1.5, "right": 2.0,
    "sanitizer": 2.0,
}  # fmt: skip
"""Minutes that each part has in the first round."""
