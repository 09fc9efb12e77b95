"""Chooses names for generated code. They are deterministic, resemble those of the expression, and are unique where they are visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class Names:
    """Hands out names. Local names may be used again after the end of their block."""

    def __init__(self) -> None:
        self._permanent: set[str] = set()
        self._ever: set[str] = set()
        self._blocks: list[set[str]] = [set()]

    def permanent(self, wish: str) -> str:
        """Return a name that no other part of the kernel uses."""
        name = self._free(wish, self._ever)
        self._permanent.add(name)
        self._ever.add(name)
        return name

    def local(self, wish: str) -> str:
        """Return a name for a variable of the current block that differs from all visible names."""
        name = self._free(wish, self._permanent.union(*self._blocks))
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

    @staticmethod
    def _free(wish: str, taken: set[str]) -> str:
        name, count = wish, 1
        while name in taken:
            count += 1
            name = f"{wish}_{count}"
        return name


def numbered(taken: Iterable[str]) -> Callable[[str], str]:
    """Return a function that hands out names: the wish itself or, if it is taken or was handed out, with a number behind it, from 2 on."""
    given = set(taken)

    def name_of(wish: str) -> str:
        name, count = wish, 1
        while name in given:
            count += 1
            name = f"{wish}{count}"
        given.add(name)
        return name

    return name_of
