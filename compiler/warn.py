"""Warnings to users, where the line of source that is shown is theirs, and notes for the log ``sparsetune.native``."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def inform(message: str, *values: object) -> None:
    """Note in the log ``sparsetune.native`` how the native helpers are replaced."""
    import logging  # hardly ever needed

    logging.getLogger("sparsetune.native").info(message, *values)


def warn(message: str) -> None:
    """Warn of something that goes on, but not as the user thinks; the place that is shown is where this package was called."""
    frame, depth, level = sys._getframe(), 1, 1
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
            level = depth + 1
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
