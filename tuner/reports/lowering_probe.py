"""Prints as JSON how long one version of sparsetune takes to compile to C: ``python -P lowering_probe.py`` with its folder first on
the path.

Only the public interface of the version is used. The request, JSON on standard input, has an expression, formats, schedules, and modules
that are imported before. The reply has seconds of processor time: of the import, from text to the C of a first kernel, and of applying,
checking and lowering each schedule, with the lines of its C.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any


def measure(expression: str, formats: dict[str, str], schedules: list[str], before: list[str]) -> dict[str, Any]:
    """Return {"import": seconds, "first": seconds, "each": {schedule: (seconds, lines)}}, without schedules that the version refuses."""
    for name in before:
        importlib.import_module(name)
    start = time.process_time()
    sparsetune = importlib.import_module("sparsetune")
    imported = time.process_time() - start
    each: dict[str, tuple[float, int]] = {}
    start = time.process_time()
    assert sparsetune.compile(expression, formats=formats).source
    first = time.process_time() - start
    for schedule in schedules:
        start = time.process_time()
        try:
            source = sparsetune.compile(expression, formats=formats, schedule=schedule).source
        except sparsetune.SparsetuneError:
            continue
        each[schedule] = time.process_time() - start, source.count("\n")
    return {"import": imported, "first": first, "each": each}


if __name__ == "__main__":
    print(json.dumps(measure(**json.load(sys.stdin))))
