"""What is taken along to a machine that has a GPU, its driver and Python, and no network: all that ``tuner.reports.gpu`` needs there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...compiler.errors import BuildError, ResourceError

MOST_BYTES = 64 << 20
INPUT_BYTES, INPUTS = 20 << 20, 10
WHEELS = ("cuda-core", "cuda-bindings", "cuda-pathfinder")
ROOT = Path(__file__).resolve().parents[2]
_PARTS = ("compiler", "tuner", "datasets", "csrc", "configs")

_COMMANDS = """#!/bin/sh
# What the GPU of this machine does: parts that can be stopped and go on. It needs Python with numpy, scipy, cffi and click.
cd "$(dirname "$0")" || exit 1
export PYTHONPATH="$PWD:$PWD/packages" SPARSETUNE_CACHE="$PWD/cache"
for wheel in wheels/*.whl; do [ -e "$wheel" ] && python3 -m zipfile -e "$wheel" packages; done
for part in machine edges skew; do python3 -m sparsetune.tuner.reports.gpu $part --folder rows; done
for input in inputs/*; do [ -e "$input" ] && python3 -m sparsetune.tuner.reports.gpu kernels "$input" --folder rows; done
"""


def begin(target: Path) -> None:
    """Make the folder. Raises ``BuildError`` where it is there already, or cannot be made."""
    try:
        target.mkdir(parents=True)
    except FileExistsError:
        raise BuildError(f"{target} is there already; name another folder, or remove it") from None
    except OSError as error:
        raise BuildError(f"{target} cannot be made: {error.strerror or error}") from None


def bundle(target: Path, data: Path) -> int:
    """Put beside the ``cache`` of a folder, which has kernels for the device, what else is taken along; return the bytes of all.

    Args:
        target: gets ``sparsetune`` (the package), ``wheels``, ``inputs``, and ``run``, which starts it all.
        data: inputs, of which ten are taken, or a folder that is not there.

    Raises:
        BuildError: wheels are not to be had, or the folder is not to be written.
        ResourceError: all is larger than 64 MiB.
    """
    try:
        package = target / "sparsetune"
        package.mkdir()
        for file in ROOT.glob("*.py"):
            shutil.copyfile(file, package / file.name)
        for part in _PARTS:
            shutil.copytree(ROOT / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
        (target / "inputs").mkdir()
        for source in chosen(data.rglob("*") if data.is_dir() else ()):
            shutil.copyfile(source, target / "inputs" / source.name)
        _fetch_wheels(target / "wheels")
        start = target / "run"
        start.write_text(_COMMANDS)
        start.chmod(0o755)
        size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    except OSError as error:
        raise BuildError(f"nothing can be put into {target}: {error.strerror or error}") from None
    if size > MOST_BYTES:
        raise ResourceError(f"{target} has {size >> 20} MiB, more than the {MOST_BYTES >> 20} that are taken along")
    return size


def chosen(files: Iterable[Path]) -> list[Path]:
    """Return ten matrices and tensors of 20 MiB together, as large ones as leave the others room, each name once."""
    kept = {file.name: file for file in sorted(files) if file.is_file() and {".mtx", ".tns", ".npz"} & set(file.suffixes)}
    found: list[Path] = []
    left = INPUT_BYTES
    sizes = sorted(file.stat().st_size for file in kept.values())
    for file in sorted(kept.values(), key=lambda file: (-file.stat().st_size, file.name)):
        size, others = file.stat().st_size, INPUTS - len(found) - 1
        if others >= 0 and size + sum(sizes[:others]) <= left:
            found.append(file)
            left -= size
    return found


def _fetch_wheels(folder: Path, programs: Sequence[Sequence[str]] = ((sys.executable, "-m", "pip"), ("pip",), ("pip3",))) -> None:
    said = "there is no pip"
    for program in programs:
        try:
            words = [*program, "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", str(folder), *WHEELS]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            said = str(error)
            continue
        if not done.returncode:
            return
        said = (done.stderr.strip().splitlines() or ["no reason"])[-1]
    raise BuildError(f"the wheels of {', '.join(WHEELS)} could not be fetched: {said}; run the command again where there is a network")
