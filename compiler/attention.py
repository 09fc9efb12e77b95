"""Notes on what takes long, for people who wait: at terminals, in notebooks, and where $SPARSETUNE_VERBOSE asks for them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

VERBOSE = "SPARSETUNE_VERBOSE"
"""The environment variable: 1 says what takes long wherever a program runs, 0 nowhere."""

PATIENCE = 1.0
"""Seconds after which people want to know what they are waiting for."""


def in_notebook() -> bool:
    """Return whether this process runs a notebook's cells."""
    return "ipykernel" in sys.modules


def is_watched() -> bool:
    """Return whether notes are wanted: somebody sees standard error, or has asked for them."""
    asked = os.environ.get(VERBOSE, "")
    return asked != "0" if asked else in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def note(message: str) -> None:
    """Tell something beside the result."""
    print(f"sparsetune: {message}", file=sys.stderr, flush=True)


@contextmanager
def noted_if_long(message: str) -> Iterator[None]:
    """Say what is being done once it has taken a second, where somebody watches."""
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
