"""The public calls that join compiler, data files and tuner; each imports what it needs when it is called."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


@cache
def lookups() -> ModuleType:
    """Import what looks schedules up."""
    from ..together import together

    with together("known"):
        from .. import asking as module

    return module
