"""``python -m sparsetune.tuner.reports.gpu PART``: generated kernels on the GPU of this machine, raced with rivals.

Parts are short and can be interrupted: every result is at once a row of gpu.csv, and the same command goes on where the last one stopped.
Part "all" runs the others, each in a process of its own, and writes gpu.md from the rows; part "page" only writes the page. With --target
cuda-executor everything runs on the processor, which checks the code and says nothing of its speed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from ...compiler.errors import DataError, SparsetuneError
from ...compiler.evaluate import compile_kernel
from ...compiler.kernel import Signature
from ...compiler.native.folders import cache_folder
from ...compiler.targets.cuda_objects import cubin_of, host_object
from .gpu_bundle import SYNTHETIC, begin, bundle, chosen
from .gpu_cases import FAR, KERNELS, SPMV, USUAL_ARCH, kernels_for
from .gpu_fit import races, report
from .gpu_listed import LISTED, listed
from .gpu_page import PICTURE, page, picture
from .gpu_parts import MINUTES, PARTS, Asked, loaded, note_state
from .gpu_race import Device
from .gpu_rivals import SOURCE
from .gpu_rows import FILE, DeviceLostError, Rows, forgive_cut, left_first, read_rows
from .publishing import folder_option, output_option, publish

RUNS = 20
PYTHON = ".".join(map(str, sys.version_info[:2]))
STOPPED, LOST = 4, 5
"""Exit statuses of a part: its time is over; the device refuses all further work of this process."""
MOST_FAILURES = 12
"""How many processes a part may lose before other parts have their turn."""
GRACE = 20
"""Seconds that a part may take to finish what it does when its time is over."""


def sources(number: int, inputs: Sequence[str] = ()) -> Iterable[str]:
    """Yield the sources of all kernels that the parts run.

    Args:
        number: how many of the schedules that the tuner lists.
        inputs: files or names, for which the static model chooses.
    """
    yield SOURCE.read_text()
    for kernel in KERNELS:
        for what, schedule in kernel.schedules():
            made = compile_kernel(kernel.expression, dict(kernel.formats), dict(kernel.columns), schedule, target="cuda", arch=USUAL_ARCH)
            yield made.source
            if kernel is SPMV and what in FAR:
                wide = Signature((("A", "float64"), ("x", "float64")), (("A", (64, 64)), ("x", (64,))), wide=True)
                yield made.kernel_for(wide).source
    for case in listed(number):
        made = compile_kernel(case.expression, dict(case.formats), None, case.schedule, target="cuda", arch=USUAL_ARCH)
        yield made.specialised(next(case.operands())[1], {})[0].source
    for source in inputs:
        data = loaded(source)
        for kernel in kernels_for(data):
            schedule = kernel.choice(kernel.operands(data))
            made = compile_kernel(kernel.expression, dict(kernel.formats), dict(kernel.columns), schedule, target="cuda", arch=USUAL_ARCH)
            yield made.source


def prepare(arch: str, number: int, inputs: Sequence[str] = ()) -> int:
    """Compile everything that the parts run into the cache, for a device on another machine; return the number of kernels.

    Args:
        arch: of the device.
        number: how many of the schedules that the tuner lists.
        inputs: files or names, for which the static model chooses.
    """
    every = [*dict.fromkeys(sources(number, inputs))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        hosts = [pool.submit(host_object, source, 300.0) for source in every]
        for source in every:
            cubin_of(source, arch)
        for host in hosts:
            host.result()
    return len(every)


def run_part(part: str, device: Device, folder: Path, minutes: float, asked: Asked) -> int:
    """Run a part until it is finished or its time is over, and return 0, ``STOPPED`` or ``LOST``."""
    rows = Rows(folder, part, device.name, minutes)
    try:
        note_state(rows, "begin")
        PARTS[part](device, rows, asked)
        note_state(rows, "end")
    except TimeoutError:
        return STOPPED
    except DeviceLostError:
        return LOST
    return 0


def run_all(words: Sequence[str], folder: Path, minutes: float, output: Path, device: str) -> None:
    """Run all parts, each for its share of the time at first, then for the rest of the time; the page is written after each.

    Parts that were finished on the device before come last, since there may be new mappings.
    """
    end, left = time.monotonic() + 60 * minutes, left_first(PARTS, read_rows(folder / FILE), device)
    for shares in (MINUTES, dict.fromkeys(PARTS, minutes)):
        for part in [*left]:
            seconds = min(end - time.monotonic(), 60 * shares[part])
            if _is_through([part, *words, "--folder", str(folder)], seconds, folder):
                left.remove(part)
            _write_page(folder, output)
    click.echo(f"left for another time: {', '.join(left) or 'nothing'}")


def _write_page(folder: Path, output: Path) -> None:
    """Write the page, and its picture if matplotlib is installed."""
    rows = read_rows(folder / FILE)
    try:
        drawn = picture(rows)
    except DataError:
        drawn = None
    if drawn is not None:
        publish(output.with_name(PICTURE), drawn)
    publish(output, page(rows, drawn is not None))


def _is_through(words: Sequence[str], seconds: float, folder: Path) -> bool:
    """Run a part until it is finished (True) or its time is over (False), in a new process each time that a kernel ends the last one."""
    end, failures = time.monotonic() + seconds, 0
    while failures < MOST_FAILURES and (left := end - time.monotonic()) > GRACE:
        command = [sys.executable, "-m", "sparsetune.tuner.reports.gpu", *words, "--minutes", f"{left / 60:.3f}"]
        try:
            ended = subprocess.run(command, check=False, timeout=left + GRACE).returncode
        except subprocess.TimeoutExpired:
            forgive_cut(folder)
            return False
        if ended in (0, STOPPED):
            return not ended
        failures += 1
    return False


@click.command()
@click.argument("part", type=click.Choice([*PARTS, "all", "page", "prepare", "fit"]))
@click.argument("inputs", nargs=-1)
@folder_option("--folder", Path("results"), "Where rows are kept.")
@click.option("--minutes", type=float, default=7.5, show_default=True, help="After which it stops; run it again to go on.")
@click.option("--target", type=click.Choice(["cuda", "cuda-executor"]), default="cuda", show_default=True)
@click.option("--runs", type=int, default=RUNS, show_default=True, help="Of each kernel.")
@click.option("--size", type=float, default=1.0, show_default=True, help="Of what is generated, as a share of what the paper has.")
@output_option(Path("results/gpu.md"), "Of page and all.")
@click.option("--arch", default="sm_90", show_default=True, help="Of part prepare: compiled for it.")
@click.option("--bundle", "taken", type=click.Path(path_type=Path), help="Of part prepare: a new folder, for all to take along.")
@click.option("--python", "version", default=PYTHON, show_default=True, help="Of part prepare: the version there.")
@click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data"), show_default=True, help="Of part prepare: inputs.")
def main(
    part: str, inputs: Sequence[str], folder: Path, minutes: float, target: str, runs: int, size: float, output: Path, arch: str,
    taken: Path | None, version: str, data: Path,
) -> None:  # fmt: skip
    """Run a PART: machine, streams, skew, far, tensors, kernels and choices (on INPUTS: files or names), edges, right, sanitizer, or all of
    them; or page, prepare, or fit (the static model to the rows of kernels on INPUTS), which need no device."""
    if part == "page":
        _write_page(folder, output)
        return
    try:
        if part == "fit":
            for paragraph in report(list(races(read_rows(folder / FILE), inputs))):
                click.echo(f"{paragraph}\n")
            return
        if part == "prepare":
            if taken is not None:
                begin(taken)
                os.environ["SPARSETUNE_CACHE"] = str(taken.resolve() / "cache")  # so that the bundle holds only what was compiled here
            count = prepare(arch, LISTED, [] if taken is None else [*map(str, chosen(data)), *SYNTHETIC])
            click.echo(f"{count} kernels are compiled for {arch} in {cache_folder()}; take the folder along as SPARSETUNE_CACHE")
            if taken is not None:
                size = bundle(taken, data, version) / (1 << 20)
                click.echo(f"{taken} has {size:.0f} MiB, with {len(list((taken / 'inputs').iterdir()))} inputs: copy it, and start its run")
            return
        device = Device.here(target)
        if part == "all":
            words = [*inputs, "--target", target, "--runs", str(runs), "--size", str(size)]
            run_all(words, folder, minutes, output, device.name)
            return
        ended = run_part(part, device, folder, minutes, Asked(inputs, runs, size))
    except SparsetuneError as error:
        raise click.ClickException(str(error).splitlines()[0]) from None
    if ended == STOPPED:
        click.echo(f"{minutes:g} minutes are over: run the same command again to go on", err=True)
    if ended == LOST:
        click.echo("the device reported an error, which is in a row: run the same command again to go on behind it", err=True)
    raise SystemExit(ended)


if __name__ == "__main__":
    main()
