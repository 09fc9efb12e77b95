"""Importing with the garbage collector switched off.

An import makes modules and classes, which are no garbage. Searching them, and all objects of NumPy and SciPy, takes a third of the time of
a first import.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Run a block without garbage collection, and treat the objects that it made as long-lived."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # moves all objects to the oldest generation, which is seldom searched
            gc.enable()
