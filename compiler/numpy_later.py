"""NumPy, imported when something of it is first used: an expression becomes C without it, and importing it takes longer than that.

Modules that a first kernel's text needs take ``np`` from here. A program that has imported NumPy before gets NumPy itself.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Later(ModuleType):
        """Becomes an ordinary module with NumPy's names once one of them is asked for, so that further uses cost nothing."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            self.__dict__.update(numpy.__dict__)
            self.__class__ = ModuleType
            return getattr(numpy, name)

    np = sys.modules.get("numpy") or _Later("numpy")

__all__ = ["np"]
