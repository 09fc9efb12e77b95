"""GPUs: whether this machine has one, and the names of architectures."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

from ..errors import BuildError, ScheduleError
from ..shown import shown
from .toolchain import find_program

_ARCHITECTURE = re.compile(r"sm_([1-9][0-9]{1,2})[af]?", re.ASCII)
_ANSWER_SECONDS = 20


def ask_driver(*fields: str) -> str:
    """Return fields that the driver reports of its GPUs, one line for each GPU; an empty text if it does not answer."""
    import subprocess  # imported late: printing the source of a kernel does not need it

    query = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def require_gpu(wish: str, instead: str = "use target cpu") -> None:
    """Raise an error if this machine has no GPU.

    Args:
        wish: what needs the GPU, as the beginning of the message: "target cuda".
        instead: what to do without one, as its end.

    Raises:
        BuildError: there is no GPU.
    """
    if find_program("nvidia-smi") is None:
        raise BuildError(f"{wish} needs an NVIDIA GPU with its driver, and none was found (nvidia-smi is missing); {instead}")


def check_architecture(arch: object) -> None:
    """Raise ``ScheduleError`` if something is not the name of an architecture of NVIDIA's GPUs, such as "sm_90"."""
    if not (isinstance(arch, str) and _ARCHITECTURE.fullmatch(arch)):
        raise ScheduleError(f"arch {shown(arch)} is no architecture of an NVIDIA GPU; give its compute capability, such as 'sm_90'")


def architecture_here() -> str:
    """Return the architecture of this machine's first GPU, such as "sm_90".

    Raises:
        BuildError: there is none, or its driver does not answer.
    """
    require_gpu("target cuda")
    found = f"sm_{''.join(ask_driver('compute_cap').strip().splitlines()[:1]).replace('.', '')}"
    if not _ARCHITECTURE.fullmatch(found):
        raise BuildError("the driver does not say what GPU this is (nvidia-smi --query-gpu=compute_cap); give arch, such as 'sm_90'")
    return found


LEAST_SHARED = 48
"""KiB of shared memory that a block has on every GPU without special settings."""
_MOST_SHARED = {
    "70": 96, "72": 96, "75": 64, "80": 163, "86": 99, "87": 163, "88": 163, "89": 99, "90": 227, "100": 227, "101": 227, "103": 227,
    "110": 227, "120": 99, "121": 99,
}  # fmt: skip
"""Most KiB of shared memory of a block, by compute capability: CUDA C++ Programming Guide, table "Technical Specifications"."""


def shared_bytes(arch: str) -> int:
    """Return the most bytes of shared memory of a block on an architecture; for unknown ones, what every GPU has."""
    known = _ARCHITECTURE.fullmatch(arch)
    return 1024 * _MOST_SHARED.get(known[1] if known else "", LEAST_SHARED)


_STATE = ("name", "driver_version", "clocks.sm", "clocks.mem", "clocks_throttle_reasons.active", "temperature.gpu", "power.draw")


def gpu_state() -> dict[str, str]:
    """Return what the driver reports of this machine's first GPU: name, clocks, reasons for throttling; empty if it does not answer."""
    said = [part.strip() for part in (ask_driver(*_STATE).splitlines() or [""])[0].split(",")]
    return dict(zip(_STATE, said, strict=True)) if len(said) == len(_STATE) else {}


def find_nvcc() -> str:
    """Return the program nvcc: $SPARSETUNE_NVCC, the one on the path, or that of NVIDIA's wheels (extra ``cuda``).

    Raises:
        BuildError: there is none.
    """
    wanted = os.environ.get("SPARSETUNE_NVCC")
    found = find_program(wanted or "nvcc") or (None if wanted else _nvcc_of_wheels())
    if found is None:
        raise BuildError(f"nvcc was not found ({wanted or 'nvcc'}); pip install 'sparsetune[cuda]', or name it in SPARSETUNE_NVCC")
    return found


def _nvcc_of_wheels() -> str | None:
    wheels = find_spec("nvidia")
    places = () if wheels is None else wheels.submodule_search_locations or ()
    found = [program for place in places for program in Path(place).glob("cu[0-9]*/bin/nvcc") if os.access(program, os.X_OK)]
    return str(max(found)) if found else None
