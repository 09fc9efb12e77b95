"""The team of threads that all kernels and helpers of this process share (csrc/st_team.c). It is compiled once and stays loaded.

The pointer ``st_team`` of every object with parallel loops is set to the team. If the team cannot be built, calling threads work alone.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any

from ..errors import BuildError, DataError
from ..numpy_later import np
from ..shown import shown
from ..warn import inform
from .library import CSRC, declared_in, foreign_interface, load_source
from .machine import affinity, available_cores, usable_cores

DECLARATION = "extern void *st_team;"
"""Declares the pointer to the team in an object with parallel loops."""

MOST_THREADS = 1024
"""The most shares into which the work of a call may be cut: some kernels keep a copy of the result for each."""

_FLAGS = ("-O2", "-pthread")
_PATIENCE = 1_000_000
"""The most nanoseconds for which an idle worker spins; a tenth of it if spinning uses up a quota of the process."""


def join_team(library: Any) -> None:
    """Point a loaded object to the team of this process."""
    found = _team()
    if found is not None:
        _tell(found, tuple(sorted(usable_cores())), available_cores())
        library.st_team = foreign_interface(_declarations()).cast("void *", found.st_team_run)


def respect_limits() -> int:
    """Tell the team on which cores, and on how many at once, it may run by the present affinity and quota; return how many.

    The team is not loaded for this; it is told when the first object joins it. Affinity is read in every call, the quota, which is in
    files, at most once in a tenth of a second.
    """
    global _respected
    now, tenth = affinity(), int(10 * time.monotonic())
    seen, at, running = _respected
    if now != seen or tenth != at:
        running = available_cores()
        found = _loaded_team()
        if found is not None:
            _tell(found, tuple(sorted(usable_cores())), running)
        _respected = now, tenth, running
    return running


def thread_count(threads: int | None) -> int:
    """Return how many threads a kernel runs with: the given number, or $SPARSETUNE_THREADS, or the available cores.

    Raises:
        DataError: the number is not a whole number from 1 to ``MOST_THREADS``.
    """
    running = respect_limits()
    asked: Any = threads
    if asked is None:
        asked = os.environ["SPARSETUNE_THREADS"] if "SPARSETUNE_THREADS" in os.environ else ""  # noqa: SIM401 twice as fast as get
        if not asked:
            return running
        if not asked.isdecimal() or not 1 <= int(asked) <= MOST_THREADS:
            raise DataError(f"SPARSETUNE_THREADS is a whole number from 1 to {MOST_THREADS}, not {asked!r}")
        return int(asked)
    if isinstance(asked, bool) or not isinstance(asked, (int, np.integer)) or not 1 <= asked <= MOST_THREADS:
        raise DataError(f"threads is a whole number from 1 to {MOST_THREADS}, not {shown(asked)}")
    return int(asked)


def is_there() -> bool:
    """Return whether the team can be built on this machine."""
    return _team() is not None


def workers() -> int:
    """Return how many threads the team has, without the calling ones."""
    found = _team()
    return 0 if found is None else found.st_team_workers()


def alone_calls() -> int:
    """Return how many calls of parallel loops worked alone because other programs had kept workers from their cores; 0 without a team."""
    found = _loaded_team()
    return 0 if found is None else found.st_team_alone_calls()


def gather() -> None:
    """Let the next calls use the workers again. After other programs have kept workers from their cores, calls work alone for a while."""
    found = _loaded_team()
    if found is not None:
        found.st_team_gather()


def _loaded_team() -> Any:
    return _team() if _team.cache_info().currsize else None


@cache
def _team() -> Any:
    try:
        return load_source("", _declarations(), flags=_FLAGS, files=("st_team.c",))
    except BuildError as error:
        inform("kernels run on one thread: %s", error)
        return None


_respected: tuple[frozenset[int], int, int] = (frozenset(), -1, 1)
_told: list[tuple[tuple[int, ...], int]] = []


def _tell(team: Any, cores: tuple[int, ...], running: int) -> None:
    if _told == [(cores, running)]:
        return
    words = [0] * (max(cores, default=0) // 64 + 1)
    for core in cores:
        words[core // 64] |= 1 << core % 64
    patience = _PATIENCE if running >= len(cores) else _PATIENCE // 10
    team.st_team_allow(running, foreign_interface(_declarations()).new("uint64_t[]", words), 8 * len(words), patience)
    _told[:] = [(cores, running)]


@cache
def _declarations() -> str:
    return declared_in(CSRC / "st_team.h") + "void st_team_run(void);"
