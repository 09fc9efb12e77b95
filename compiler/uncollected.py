"""Importing without collecting garbage in between.

Modules and their classes stay, so that there is nothing to be found among them; beside NumPy and SciPy, whose objects are looked through
each time, that search takes a third of the time of a first import.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no cyclic garbage meanwhile, and take what was made for objects that stay."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # among the oldest objects, where the next collections do not look for what has become garbage
            gc.enable()
