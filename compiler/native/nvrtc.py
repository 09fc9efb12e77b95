"""NVRTC, NVIDIA's compiler as a library, through cuda-core: compiles CUDA C++ to a cubin. It needs no GPU and no toolkit."""

from __future__ import annotations

import warnings
from importlib import import_module, metadata
from pathlib import Path
from threading import Lock
from typing import Any

from ..errors import BuildError

_MISSING = "pip install 'sparsetune[cuda]'"


def compile_cubin(source: str, arch: str, include: Path) -> bytes:
    """Compile kernels.

    Args:
        source: CUDA C++.
        arch: such as "sm_90".
        include: the folder of its headers.

    Raises:
        BuildError: cuda-core or NVRTC is missing, does not know the architecture, or refuses the source.
    """
    core = _core()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cuda-core warns on a machine without a driver
            options = core.ProgramOptions(arch=arch, std="c++17", include_path=[str(include)])
            return bytes(core.Program(source, "c++", options).compile("cubin").code)
    except Exception as error:
        raise _refusal(error, arch) from None


def nvrtc_version() -> str:
    """Return the name and the installed version of the compiler; "NVRTC: none" if it is missing and kernels come from the cache."""
    try:
        return f"NVRTC: {metadata.version('nvidia-cuda-nvrtc')}"
    except metadata.PackageNotFoundError:
        return "NVRTC: none"


_IMPORTING = Lock()


def _core() -> Any:
    try:
        with _IMPORTING:  # two threads that import it at once could see half of it
            return import_module("cuda.core")
    except Exception as error:  # whatever a broken installation raises
        raise BuildError(f"kernels for GPUs are compiled by NVRTC through cuda-core, which this Python lacks: {_MISSING}") from error


def _refusal(error: Exception, arch: str) -> BuildError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("gpu-architecture" in line or "INVALID_OPTION" in line for line in lines):
        return BuildError(f"NVRTC does not know the architecture {arch}; install a newer nvidia-cuda-nvrtc, or name another arch")
    if any("libnvrtc" in line or "Failure finding" in line for line in lines):
        return BuildError(f"NVRTC was not found: {_MISSING}")
    failure = BuildError(f"NVRTC failed: {next((line for line in lines if 'error:' in line), lines[0] if lines else repr(error))}")
    failure.add_note("\n".join(lines[:40]))
    return failure
