"""Generated code without its comments, which name the schedule."""

from __future__ import annotations

import re


def plain(source: str) -> str:
    """Return the lines of C or CUDA C++ that a compiler sees; its strings have no signs of comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL).lstrip()
