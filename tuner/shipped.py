"""The schedules that ship with the package, ``results/schedules.jsonl``: what won on the machines of the published measurements.

They are tried early in a search. Lookup takes them where this machine knows nothing similar, if they are of a machine of the same kind:
what is fastest on one machine need not be on another. They never count as tuned on this machine; those of an older version of the
code are still worth trying. ``tune-kernel db export results/schedules.jsonl --as shipped`` makes the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO

from ..compiler.errors import DatabaseError
from ..compiler.units import is_processor
from .database.interchange import read_json_lines
from .records import STOPPED, Decision, Workload, to_json
from .urls import SHIPPED, file_stamp, shipped_file

MOST_BYTES = 1_000_000
"""Most bytes of the file."""

_TOLD = ("processor", "system", "vector_bytes", "caches", "cores", STOPPED)
"""The facts about a decision's machine that lookup and readers of the file need."""


def shipped_decisions(workload: Workload, any_threads: bool = False) -> tuple[Decision, ...]:
    """Return the decisions that ship for a workload, whatever machine they are of; none where the package's own file is missing.

    Args:
        workload: that of the problem.
        any_threads: also those for other numbers of threads.

    Raises:
        DatabaseError: the file is damaged, or $SPARSETUNE_SHIPPED names none.
    """
    file, asked = shipped_file(), replace(workload, machine="", threads=0 if any_threads else workload.threads)
    if file is None:
        return ()
    if not file.is_file():
        if os.environ.get(SHIPPED):
            raise DatabaseError(f"{SHIPPED} names {file}, which is no file; set it to '' where no schedules are to ship")
        return ()
    return _read(file, file_stamp(str(file)), asked)


@cache
def _read(file: Path, _stamp: tuple[int, ...] | None, workload: Workload) -> tuple[Decision, ...]:
    """Return the decisions in a file for a workload on any machine, with any number of threads where that of the workload is 0. Their
    schedules are checked when they are used. A file that has changed (its stamp) is read again."""
    threads = {"threads": workload.threads} if workload.threads else {}
    like = {"expression": workload.kernel, "formats": workload.formats, "dtype": workload.dtype, "target": workload.target, **threads}
    found = (record for record in read_json_lines(file, like=like, judged=False) if isinstance(record, Decision))
    return tuple(record for record in found if record.workload.semiring == workload.semiring)


def write_shipped(decisions: Iterable[Decision], stream: IO[str]) -> int:
    """Write the decisions worth shipping, those of the largest gain first, up to ``MOST_BYTES``; return how many."""
    count = size = 0
    for decision in sorted(to_ship(decisions), key=lambda one: (-one.speedup_low, one.key)):
        line = json.dumps(to_json(decision)) + "\n"
        size += len(line.encode())
        if size > MOST_BYTES:
            break
        stream.write(line)
        count += 1
    return count


def to_ship(decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Yield the decisions worth shipping, with the facts that lookup needs: the latest of every workload and input, if it is sure."""
    latest = {(decision.workload.key, decision.input.key): decision for decision in decisions}
    for decision in latest.values():
        if is_processor(decision.workload.target) and (not decision.schedule or decision.speedup_low > 1):
            told = {name: decision.environment[name] for name in _TOLD if name in decision.environment}
            policy = {name: decision.policy[name] for name in ("memory_bound", "cache_share") if name in decision.policy}
            yield replace(decision, environment=told, policy=policy, ties=(), campaign="")
