"""The command line as tests read it."""

from __future__ import annotations

import json


def call_json(call, *arguments: str) -> dict:
    """Return what a command prints as JSON."""
    status, out, _ = call(*arguments, "--json")
    assert status == 0
    return json.loads(out)
