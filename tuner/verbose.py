"""Lines on standard error, one for each decision, if ``SPARSETUNE_VERBOSE`` is 1."""

from __future__ import annotations

import os
import sys

from ..compiler.attention import VERBOSE


def tell(decision: str) -> None:
    """Print a decision and its reason, if ``SPARSETUNE_VERBOSE`` is 1."""
    if os.environ.get(VERBOSE, "") == "1":
        print(f"sparsetune: {' '.join(decision.split())}", file=sys.stderr)
