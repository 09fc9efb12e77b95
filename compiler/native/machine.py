"""This machine: the properties that decide which code is best, and that identify measurements."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import time
from functools import cache, lru_cache
from pathlib import Path

from ..frozen import frozen
from .quota import processor_quota

_CPU_FOLDER = Path("/sys/devices/system/cpu")
_SMALL = 2**14  # most bytes that are read of a file of the system: more than those have whose text is a value
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@frozen
class CacheLevel:
    """One data or unified cache of a core, and how many cores share it."""

    level: int
    bytes: int
    line_bytes: int
    shared_by: int


@frozen
class Machine:
    """The properties that distinguish machines.

    Attributes:
        system: operating system and instruction set, such as ``Linux x86_64``.
        model: the processor's name as the system gives it.
        cores: logical cores that the machine has; ``available_cores`` says how many this process may use.
        caches: data caches, innermost first; empty if the system does not report them.
        vector_bytes: width of the widest vector registers (16, 32 or 64).
        features: digest of the processor's feature flags: code for one set may not run with another.
    """

    system: str
    model: str
    cores: int
    caches: tuple[CacheLevel, ...]
    vector_bytes: int
    features: str

    @property
    def fingerprint(self) -> str:
        """A short text that is equal for machines on which, by these properties, kernels run equally fast."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def masks(self) -> bool:
        """Whether vector instructions can read and write only some of their lanes (AVX-512)."""
        return self.vector_bytes == 64

    @property
    def gathers(self) -> int | None:
        """The least number of iterations for which a sum of gathered elements is faster in vectors than one by one; None: never faster.

        With gather instructions it is 0. Without them elements are read one by one in any case; in sums of several vectors, parallel
        additions make up for the time of building the vectors.
        """
        if self.gather_bytes == 64:
            return 0
        return 8 if self.gather_bytes == 32 else None

    @property
    def gather_bytes(self) -> int:
        """The widest vectors in loops that gather, in bytes. On AMD, vectors of 32 bytes built from single loads are faster than an
        instruction that gathers 64 bytes."""
        return 32 if self.model.startswith("AMD") and self.vector_bytes == 64 else self.vector_bytes

    @property
    def last_level_cache(self) -> int:
        """Bytes of the outermost cache; 8 MiB if the system does not report it."""
        return max((cache.bytes for cache in self.caches), default=8 * 2**20)


@cache
def this_machine() -> Machine:
    """Return the machine that this process runs on."""
    model, flags = _processor()
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        model=model,
        cores=os.cpu_count() or 1,
        caches=_caches(),
        vector_bytes=_vector_bytes(flags),
        features=hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest()[:16],
    )


_BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def affinity() -> frozenset[int]:
    """Return the logical cores on which the calling thread may run now."""
    return frozenset(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))


def _affinity_before_binding() -> frozenset[int]:
    """Return the logical cores on which this process was started, as far as that can be known.

    With OMP_PROC_BIND, an OpenMP runtime binds the first thread to a core: GCC's when it is loaded, LLVM's in its first loop. If that was
    before this module was imported, other threads of the process, if any, and the runtime know more cores.
    """
    found = affinity()
    if not any(os.environ.get(name) for name in _BINDING):
        return found
    with contextlib.suppress(OSError, AttributeError):
        for thread in os.listdir("/proc/self/task"):
            found |= os.sched_getaffinity(int(thread))
    if len(found) < (os.cpu_count() or 1):
        from .runtimes import places_of_runtimes  # imported late: it is for few processes

        found |= places_of_runtimes()
    return found


_AT_FIRST = _affinity_before_binding()
"""The affinity when this module was imported: an OpenMP runtime in this process, such as PyTorch's, may bind the first thread later."""


def allowed_cores() -> frozenset[int]:
    """Return the logical cores on which this process was started, by affinity masks and the cpusets of containers."""
    return _AT_FIRST


def usable_cores() -> frozenset[int]:
    """Return the logical cores on which the calling thread may run now; if a runtime binds threads, also those from before."""
    now = affinity()
    bound = now != _AT_FIRST and any(os.environ.get(name) for name in _BINDING)
    return now | _AT_FIRST if bound else now


def available_cores() -> int:
    """Return how many threads of this process can run at once: one for each core that it may use, or fewer under a quota."""
    cores = len(usable_cores()) or 1
    quota = _quota(int(10 * time.monotonic()))
    return cores if quota is None else max(1, min(cores, int(quota)))


@lru_cache(maxsize=1)
def _quota(_tenth: int) -> float | None:
    """Return the quota, which may change while a process runs; it is read at most once in a tenth of a second."""
    return processor_quota()


def _processor() -> tuple[str, frozenset[str]]:
    """Return the name and the feature flags of the first core."""
    fields: dict[str, str] = {}
    try:
        for line in _text("/proc/cpuinfo").split("\n\n", 1)[0].splitlines():  # as much as is read at once has the first core
            key, _, value = line.partition(":")
            fields[key.strip().lower()] = value.strip()
    except OSError:
        return platform.processor() or platform.machine(), frozenset()
    part = " ".join(fields[key] for key in ("cpu implementer", "cpu part") if key in fields)
    flags = fields.get("flags") or fields.get("features") or ""
    return fields.get("model name") or part or platform.machine(), frozenset(flags.split())


def _vector_bytes(flags: frozenset[str]) -> int:
    if "avx512f" in flags:
        return 64
    return 32 if "avx2" in flags else 16


def _caches() -> tuple[CacheLevel, ...]:
    found = []
    for folder in _folders(f"{_CPU_FOLDER}/cpu0/cache", "index"):
        try:
            if _text(f"{folder}/type") == "Instruction":
                continue
            size = _text(f"{folder}/size")
            shared = _count_cores(_text(f"{folder}/shared_cpu_list"))
            line = int(_text(f"{folder}/coherency_line_size"))
            level = int(_text(f"{folder}/level"))
        except (OSError, ValueError):  # some of these files are missing on virtual machines
            continue
        found.append(CacheLevel(level, int(size.rstrip("KMG")) * _UNITS.get(size[-1], 1), line, shared))
    return tuple(sorted(found, key=lambda cache: cache.level))


def held_vectors(width: int) -> int:
    """Return how many vector registers rows and accumulators may take together. There are 32 registers of 64 bytes, or 16 of fewer bytes;
    some are left for sums and loads."""
    return 24 if width == 64 else 8


def _folders(place: str, prefix: str) -> list[str]:
    try:
        return [f"{place}/{name}" for name in sorted(os.listdir(place)) if name.startswith(prefix)]
    except OSError:
        return []


def _text(path: str) -> str:
    """Return the beginning of a file of the system. A file object would take twice as long, in every first lookup."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _SMALL).decode().strip()
    finally:
        os.close(file)


def _count_cores(cores: str) -> int:
    """Return how many cores a list in the kernel's notation has, such as ``0-3,8``."""
    total = 0
    for part in cores.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total
