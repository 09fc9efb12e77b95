"""Chooses names for generated code. They are deterministic, resemble those of the expression, and are unique where they are visible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..fresh import fresh


class Names:
    """Hands out names. Local names may be used again after the end of their block."""

    def __init__(self) -> None:
        self._permanent: set[str] = set()
        self._ever: set[str] = set()
        self._blocks: list[set[str]] = [set()]

    def permanent(self, wish: str) -> str:
        """Return a name that no other part of the kernel uses."""
        name = fresh(wish, self._ever, "_")
        self._permanent.add(name)
        self._ever.add(name)
        return name

    def local(self, wish: str) -> str:
        """Return a name for a variable of the current block that differs from all visible names."""
        name = fresh(wish, self._permanent.union(*self._blocks), "_")
        self._blocks[-1].add(name)
        self._ever.add(name)
        return name

    @contextmanager
    def block(self) -> Iterator[None]:
        """Open a block of generated code; its local names are released at its end."""
        self._blocks.append(set())
        try:
            yield
        finally:
            self._blocks.pop()
