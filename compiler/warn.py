"""Warnings that point at the user's line of source, and notes for the log ``sparsetune.native``."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def inform(message: str, *values: object) -> None:
    """Write to the log ``sparsetune.native``, which tells what replaces the native helpers."""
    import logging  # seldom needed

    logging.getLogger("sparsetune.native").info(message, *values)


def warn(message: str) -> None:
    """Warn that something works, but not as the user expects. The warning points at the line that called this package."""
    frame, depth, level = sys._getframe(), 1, 1
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
            level = depth + 1
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
