"""A bundle of all that ``tuner.reports.gpu`` needs on a machine with a GPU, its driver and Python, but without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ...compiler.errors import BuildError, ResourceError

MOST_BYTES = 64 << 20
INPUT_BYTES = 20 << 20
INPUTS = (
    "cnr-2000.mtx.gz", "cage10.mtx.gz", "bcsstk16.mtx.gz", "email-Enron.mtx.gz", "delaunay_n15.mtx.gz", "sat14_atco_primal.mtx.gz",
    "luxembourg_osm.mtx.gz", "nell-995.tns.gz", "fb15k-237.tns.gz", "omniglot_small1.tns.gz",
)  # fmt: skip
"""The inputs to take along: matrices of a web graph, electrophoresis, a dam, mail, a triangulation, clauses of a formula and roads; tensors
of two knowledge bases and of handwritten characters."""
SYNTHETIC = ("random:rmat:scale=19:nnz=8e6", "random:banded:1000000:bandwidth=8", "random:uniform:200000x100000x50000:nnz=1e7")
"""Larger inputs, which are generated on the machine that measures."""

WHEELS = ("cffi", "pycparser", "cuda-core", "cuda-bindings", "cuda-pathfinder")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_24_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
ROOT = Path(__file__).resolve().parents[2]
_PARTS = ("compiler", "tuner", "datasets", "csrc", "configs")

_COMMANDS = """#!/bin/sh
# What the GPU of this machine does: ./run [FOLDER [MINUTES]] writes rows and a page into FOLDER (rows), for at most so many minutes (9).
# What is in FOLDER, or in rows, is not measured again: start it again to go on. It needs Python with numpy, scipy and click.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
folder=${1:-$here/rows}
mkdir -p "$folder" || exit 1
[ -e "$folder/gpu.csv" ] || [ ! -e "$here/rows/gpu.csv" ] || cp "$here/rows/gpu.csv" "$folder"
has() { python3 -c "import $1" 2>/dev/null; }
unpack() { for wheel in "$@"; do python3 -m zipfile -e "$wheel" "$here/packages" || exit 1; done; }
has cffi || unpack "$here"/wheels/cffi-*.whl "$here"/wheels/pycparser-*.whl
has cuda.core || unpack "$here"/wheels/cuda_*.whl
export PYTHONPATH="$here:$here/packages" SPARSETUNE_CACHE="$here/cache" PYTHONUNBUFFERED=1
exec python3 -m sparsetune.tuner.reports.gpu all "$here"/inputs/* INPUTS --folder "$folder" --output "$folder/gpu.md" --minutes "${2:-9}"
"""


def begin(target: Path) -> None:
    """Make the folder. Raises ``BuildError``: it exists already, or cannot be made."""
    try:
        target.mkdir(parents=True)
    except FileExistsError:
        raise BuildError(f"{target} is there already; name another folder, or remove it") from None
    except OSError as error:
        raise BuildError(f"{target} cannot be made: {error.strerror or error}") from None


def bundle(target: Path, data: Path, version: str) -> int:
    """Complete a bundle: to the ``cache`` of compiled kernels in a folder add everything else; return the bytes of all.

    Args:
        target: the folder. It gets ``sparsetune`` (the package), ``wheels``, ``inputs``, and ``run``, which starts the report.
        data: a folder of inputs, of which ten are taken; it may be missing.
        version: version of Python on the other machine, such as "3.12".

    Raises:
        BuildError: wheels cannot be fetched, or the folder cannot be written.
        ResourceError: the bundle is larger than 64 MiB.
    """
    try:
        package = target / "sparsetune"
        package.mkdir()
        for file in ROOT.glob("*.py"):
            shutil.copyfile(file, package / file.name)
        for part in _PARTS:
            shutil.copytree(ROOT / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
        (target / "inputs").mkdir()
        for source in chosen(data):
            shutil.copyfile(source, target / "inputs" / source.name)
        _fetch_wheels(target / "wheels", version)
        start = target / "run"
        start.write_text(_COMMANDS.replace("INPUTS", " ".join(SYNTHETIC)))
        start.chmod(0o755)
        size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    except OSError as error:
        raise BuildError(f"nothing can be put into {target}: {error.strerror or error}") from None
    if size > MOST_BYTES:
        raise ResourceError(f"{target} has {size >> 20} MiB, more than the {MOST_BYTES >> 20} that are taken along")
    return size


def chosen(data: Path) -> list[Path]:
    """Return those of ``INPUTS`` that a folder has, in their order.

    Raises:
        ResourceError: they are larger than 20 MiB.
    """
    there = {file.name: file for file in sorted(data.rglob("*")) if file.is_file()} if data.is_dir() else {}
    found = [there[name] for name in INPUTS if name in there]
    size = sum(file.stat().st_size for file in found)
    if size > INPUT_BYTES:
        raise ResourceError(f"the inputs of {data} have {size >> 20} MiB, more than the {INPUT_BYTES >> 20} that are taken along")
    return found


_PIPS: Sequence[Sequence[str]] = ((sys.executable, "-m", "pip"), ("pip",), ("pip3",))


def _fetch_wheels(folder: Path, version: str, programs: Sequence[Sequence[str]] = _PIPS) -> None:
    said = "there is no pip"
    there = ["--python-version", version, "--implementation", "cp", *(word for name in PLATFORMS for word in ("--platform", name))]
    for program in programs:
        try:
            words = [*program, "download", "--quiet", "--no-deps", "--only-binary", ":all:", *there, "-d", str(folder), *WHEELS]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            said = str(error)
            continue
        if not done.returncode:
            return
        said = (done.stderr.strip().splitlines() or ["no reason"])[-1]
    raise BuildError(f"the wheels of {', '.join(WHEELS)} could not be fetched: {said}; run the command again where there is a network")
