"""The schedules that ship with the package, ``results/schedules.jsonl``: what won on the machines of the published measurements.

They are tried early in a search. Lookup takes them where this machine knows nothing similar, if they are of a machine of the same kind:
what is fastest on one machine need not be on another. They are never taken for what was tuned here, and those of an older version of the
code stay of use, as what is worth trying. ``tune-kernel db export results/schedules.jsonl --as shipped`` makes the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO

from .database.interchange import read_json_lines
from .records import Decision, to_json

SHIPPED = "SPARSETUNE_SHIPPED"
"""Environment variable: another file in place of the package's own, or nothing, and then nothing counts but what was tuned."""

FILE = Path(__file__).resolve().parents[1] / "results" / "schedules.jsonl"

MOST_BYTES = 1_000_000
"""Of the file."""

_TOLD = ("processor", "system", "vector_bytes", "caches", "cores")
"""What lookup and readers ask of the machine that a decision was made on."""


def shipped_decisions(kernel: str, formats: str) -> tuple[Decision, ...]:
    """Return the decisions that ship for a canonical expression and the formats of its tensors; none where the file is missing.

    Raises:
        DatabaseError: the file is damaged.
    """
    file = os.environ.get(SHIPPED, str(FILE))
    return _read(file, kernel, formats) if file and os.path.exists(file) else ()


@cache
def _read(file: str, kernel: str, formats: str) -> tuple[Decision, ...]:
    return tuple(record for record in read_json_lines(Path(file), holding=(kernel, formats)) if isinstance(record, Decision))


def write_shipped(decisions: Iterable[Decision], stream: IO[str]) -> int:
    """Write what is worth shipping, those that gain most first, up to ``MOST_BYTES``; return how many."""
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
    """Yield what is worth shipping: the latest decision for every input of a workload, if finals are sure, and what lookup asks of it."""
    latest = {(decision.workload.key, decision.input.key): decision for decision in decisions}
    for decision in latest.values():
        if decision.workload.target == "cpu" and (not decision.schedule or decision.speedup_low > 1):
            told = {name: decision.environment[name] for name in _TOLD if name in decision.environment}
            policy = {name: decision.policy[name] for name in ("memory_bound", "cache_share") if name in decision.policy}
            yield replace(decision, environment=told, policy=policy, ties=(), campaign="")
