"""The resources of the measuring process: all cores, most of the memory but not all, and priority over other programs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

CORES = "SPARSETUNE_WORKER_CORES"
"""Environment variable: the numbers of the cores that a worker may use, with commas between them."""

_MEMORY_SHARE = 0.9  # share of the machine's memory beyond which an allocation of a candidate fails
_PRECEDENCE = -10  # nice value: about ten times the time of a usual process on a core that both want


def take_all_cores() -> None:
    """Run on every core that the parent may use, though its first thread may be bound to one of them (OMP_PROC_BIND)."""
    cores = {int(core) for core in os.environ.get(CORES, "").split(",") if core}
    if cores and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def take_precedence() -> None:
    """Run before other programs where this user may, so that they disturb measurements less.

    Where Linux gives each session a share of the cores (sched(7), autogroup), a priority counts within the session alone: then the session
    takes precedence too, if it is this process's own.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRECEDENCE)
    with contextlib.suppress(OSError, AttributeError):
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text(str(_PRECEDENCE))


def limit_memory() -> None:
    """Let an allocation beyond most of the machine's memory fail here instead of taking the machine down."""
    try:
        import resource

        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_DATA, (int(_MEMORY_SHARE * physical), resource.RLIM_INFINITY))
    except (ImportError, ValueError, OSError):
        return
