"""What the tuner can use on this machine, and what is missing: the checks of ``tune-kernel doctor``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from ..compiler.errors import BuildError, DataError, SparsetuneError
from ..compiler.frozen import frozen
from ..compiler.native import team
from ..compiler.native.devices import find_nvcc
from ..compiler.native.folders import cache_folder, user_folder
from ..compiler.native.library import load_source
from ..compiler.native.machine import available_cores, this_machine
from ..compiler.native.toolchain import MISSING, available_compilers, find_compiler
from ..compiler.native.trust import flaw
from .calibration import calibrate
from .database import default_url, open_database, sqlite_path, studies_folder
from .environment import load_per_core
from .measure.limits import machine_limits
from .peers import all_peers, installed_peers

_BUSY = "other programs ran meanwhile, so the earlier measurement is kept instead; repeat this on an idle machine"


@frozen
class Check:
    """One check.

    Attributes:
        name: what it is.
        ok: whether it can be used.
        required: whether tuning is impossible without it.
        found: what is there.
        advice: what to do, where something is to be done.
    """

    name: str
    ok: bool
    required: bool
    found: str
    advice: str = ""


def run_checks(database: str | None) -> list[Check]:
    """Return all checks; required ones that fail come first."""
    checks = [check for find in (_compiler, _team, _processor, _memory, _load, _gpu, _mpi, _peers) for check in find()]
    checks += [
        _folder("kernel cache", _kernel_cache, "SPARSETUNE_CACHE"),
        _folder("data folder", _data_folder, "SPARSETUNE_DATA"),
        _folder("studies", lambda: studies_folder(database) or Path(tempfile.gettempdir()), "SPARSETUNE_DATABASE"),
        _database(database),
    ]
    return sorted(checks, key=lambda check: check.ok or not check.required)


def calibrated() -> list[Check]:
    """Measure the highest bandwidth and arithmetic of one thread and of all, for reports, and the static model's constants."""
    found = []
    for threads in sorted({1, available_cores()}):
        name = f"limits, {threads} thread{'s' * (threads > 1)}"
        try:
            limits = machine_limits(threads, anew=True)
            shown = f"{limits.bandwidth / 1e9:.1f} GB/s, {limits.operations / 1e9:.1f} GFLOP/s"
            found.append(Check(name, not limits.disturbed, False, shown, _BUSY if limits.disturbed else ""))
        except SparsetuneError as error:
            found.append(Check(name, False, False, str(error).splitlines()[0]))
    try:
        constants, disturbed = calibrate(available_cores())
        shown = f"operation {1e9 * constants.operation:.2g} ns, in sums over short rows {1e9 * constants.short_sums:.2g} ns, "
        shown += f"start of threads {1e6 * constants.start:.2g} us, chunk {1e9 * constants.chunk:.2g} ns"
        for what, is_summed in (("prefetch", False), ("prefetch of what is summed", True)):
            first, second, last, far = constants.prefetched(is_summed)
            shown += f", {what} {first:.2f} from the first level of cache, {second:.2f} from the second, {last:.2f} from the last, "
            shown += f"{far:.2f} from memory"
        shown += f", sums without prefetches {constants.stream_hit:.2f}, with prefetches far ahead {constants.stream_miss:.2f}"
        shown += f", vectors of half the width {constants.halved:.2f} of the time"
        found.append(Check("constants", not disturbed, False, shown, _BUSY if disturbed else ""))
    except SparsetuneError as error:
        found.append(Check("constants", False, False, str(error).splitlines()[0]))
    return found


def _compiler() -> Iterator[Check]:
    try:
        find_compiler()
        load_source("int st_probe(void) { return 42; }\n", "int st_probe(void);")
    except BuildError as error:
        advice = "" if str(error) == MISSING else MISSING
        yield Check("C compiler", False, True, str(error).splitlines()[0], advice)
        return
    found = "; ".join(f"{compiler.name}: {compiler.version}" for compiler in available_compilers())
    yield Check("C compiler", True, True, found)


def _team() -> Iterator[Check]:
    if not available_compilers():
        return
    if team.is_there():
        yield Check("team", True, False, "threads of a process work together")
    else:
        yield Check("team", False, False, "does not compile", "kernels run on one thread; see the log sparsetune.native")


def _processor() -> Iterator[Check]:
    machine = this_machine()
    caches = ", ".join(f"L{cache.level} {cache.bytes // 1024} KiB" for cache in machine.caches) or "caches unknown"
    yield Check("processor", True, False, f"{machine.model}, {caches}, {8 * machine.vector_bytes}-bit vectors")
    limit = os.environ.get("SPARSETUNE_THREADS")
    try:
        threads = team.thread_count(None)
    except DataError as error:
        yield Check("threads", False, True, str(error), "set it to such a number, or unset it")
        return
    named = f", SPARSETUNE_THREADS={threads}" if limit else ""
    yield Check("threads", True, False, f"{available_cores()} of {machine.cores} cores{named}")


def _memory() -> Iterator[Check]:
    import psutil

    memory = psutil.virtual_memory()
    yield Check("memory", True, False, f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free")


def _load() -> Iterator[Check]:
    load = load_per_core()
    if load is not None:
        busy = load > 0.5
        yield Check("load", not busy, False, f"{load:.2f} a core", "times are unreliable while other programs run" if busy else "")


def _gpu() -> Iterator[Check]:
    driver = shutil.which("nvidia-smi")
    if driver is None:
        yield Check("GPU", False, False, "no NVIDIA driver", "needed for --target cuda only")
        return
    query = [driver, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    shown = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    name = (shown.stdout.strip().splitlines() or ["no GPU answers"])[0]
    try:
        compiler, remedy = find_nvcc(), ""
    except BuildError as error:
        compiler, remedy = "not found", str(error)
    yield Check("GPU", shown.returncode == 0 and not remedy, False, f"{name}; nvcc {compiler}", remedy)


def _mpi() -> Iterator[Check]:
    there = find_spec("mpi4py") is not None
    yield Check("MPI", there, False, "mpi4py" if there else "mpi4py is not installed", "" if there else "needed for distributed runs only")


def _peers() -> Iterator[Check]:
    found = installed_peers()
    advice = "" if len(found) == len(all_peers()) else "pip install 'sparsetune[peers]' adds MKL and PyData sparse to 'tune-kernel bench'"
    yield Check("peers", True, False, ", ".join(f"{name} {version}" for name, version in found.items()) or "none", advice)


def _folder(name: str, place: Callable[[], Path], variable: str) -> Check:
    try:
        folder = place()
        there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())  # nothing is made here
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except (OSError, SparsetuneError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        trouble = reason if isinstance(error, BuildError) else f"cannot be written: {reason}"
        return Check(name, False, False, trouble, f"set {variable} to a folder of your own that can be written")
    return Check(name, True, False, f"{folder}, {free / 2**30:.1f} GiB free")


def _kernel_cache() -> Path:
    """Return the folder of compiled kernels. Raises ``BuildError`` where it is not used."""
    folder = cache_folder()
    if found := flaw(folder):
        raise BuildError(f"{folder} is not used: {found}, and whoever writes there runs code as you")
    return folder


def _data_folder() -> Path:
    if chosen := os.environ.get("SPARSETUNE_DATA"):
        return Path(chosen).expanduser()
    return user_folder("data") / "data"


def _database(url: str | None) -> Check:
    text = url or default_url()
    try:
        path = sqlite_path(text)
        if path is not None and path != ":memory:" and not os.path.exists(os.path.expanduser(path)):
            return Check("database", True, True, f"{path} (made at the first use)")
        with open_database(text) as database:
            problems = database.check()
            found = database.stats()
    except SparsetuneError as error:
        return Check("database", False, True, str(error).splitlines()[0], "give another with --db or SPARSETUNE_DATABASE")
    shown = f"{database.url}: {found['records']} records of {found['kernels']} kernels"
    return Check("database", not problems, True, problems[0] if problems else shown)
