"""The schedules that ship with the package, ``results/schedules.jsonl``: what won on the machines of the published measurements.

They are tried early in a search and never used unmeasured: what is fastest on one machine need not be on another.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .database.interchange import read_json_lines
from .records import Decision

FILE = Path(__file__).resolve().parents[1] / "results" / "schedules.jsonl"


@cache
def shipped_decisions() -> tuple[Decision, ...]:
    """Return the decisions that ship; none where the file is missing.

    Raises:
        DatabaseError: the file is damaged.
    """
    if not FILE.exists():
        return ()
    return tuple(record for record in read_json_lines(FILE) if isinstance(record, Decision))
