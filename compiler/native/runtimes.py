"""OpenMP runtimes that this process has loaded, such as those of PyTorch and MKL."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_NAMES = ("libgomp", "libiomp5", "libomp")


def places_of_runtimes() -> frozenset[int]:
    """Return the logical cores on which the runtimes place their threads, by OpenMP's own functions.

    A runtime that binds threads keeps the first one's affinity from before. A runtime of LLVM that was not used yet begins when it is
    asked, as its first loop would make it do, and binds the calling thread.
    """
    return frozenset(core for runtime in _loaded() for core in _places(runtime))


def _places(runtime: ctypes.CDLL) -> Iterator[int]:
    with suppress(AttributeError):  # these functions came with OpenMP 4.5
        for place in range(runtime.omp_get_num_places()):
            cores = (ctypes.c_int * runtime.omp_get_place_num_procs(place))()
            runtime.omp_get_place_proc_ids(place, cores)
            yield from cores


def _loaded() -> Iterator[ctypes.CDLL]:
    for path in sorted(loaded_objects()):
        if Path(path).name.split(".")[0].split("-")[0] in _NAMES:
            with suppress(OSError):
                yield ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)


def loaded_objects() -> set[str]:
    """Return the paths of the files that are mapped into this process, such as shared objects; none if the system does not list them."""
    with suppress(OSError):
        return {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines() if line.count("/")}
    return set()
