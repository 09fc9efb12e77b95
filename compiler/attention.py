"""Lines on standard error for people who wait for something slow or want to see decisions: at terminals, in notebooks, and where
$SPARSETUNE_VERBOSE asks for them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

VERBOSE = "SPARSETUNE_VERBOSE"
"""The environment variable: 1 prints notes wherever a program runs, 0 prints none."""

PATIENCE = 1.0
"""Seconds after which a note says what the program is doing."""


def in_notebook() -> bool:
    """Return whether this process runs a notebook's cells."""
    return "ipykernel" in sys.modules


def on_terminal() -> bool:
    """Return whether somebody sees standard error as it is written. A process may have none."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_watched() -> bool:
    """Return whether notes are wanted: standard error is seen by somebody, or the environment variable asks for them."""
    asked = os.environ.get(VERBOSE, "")
    return asked != "0" if asked else in_notebook() or on_terminal()


def note(message: str) -> None:
    """Print a note on standard error."""
    print(f"sparsetune: {message}", file=sys.stderr, flush=True)


def tell(decision: str) -> None:
    """Print a decision and its reason, if the environment variable is 1."""
    if os.environ.get(VERBOSE, "") == "1":
        print(f"sparsetune: {' '.join(decision.split())}", file=sys.stderr)


@contextmanager
def noted_if_long(message: str) -> Iterator[None]:
    """Print a note once the block has run for a second, if notes are wanted."""
    if not is_watched():
        yield
        return
    timer = threading.Timer(PATIENCE, note, (message,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
