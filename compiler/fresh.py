"""Fresh names: each is like what is wished for, and none is taken. All parts of the compiler that make up names choose them here."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import count


def fresh(wish: str, taken: Container[str], mark: str = "") -> str:
    """Return the wish or, if it is taken, the wish, ``mark`` and the first number from 2 on that give a name that is not.

    Programs, which users name in schedules, number without a mark, ``w2``; generated code has an underscore, ``j_2``.
    """
    return wish if wish not in taken else numbered(f"{wish}{mark}", taken, 2)


def numbered(stem: str, taken: Container[str], first: int = 1) -> str:
    """Return the stem with the first number, from ``first`` on, that gives a name that is not taken."""
    return next(name for name in (f"{stem}{number}" for number in count(first)) if name not in taken)


class FreshNames:
    """Hands out names, each once. ``mark`` is as for ``fresh``."""

    def __init__(self, taken: Iterable[str] = (), mark: str = "") -> None:
        self._taken, self._mark = set(taken), mark

    def fresh(self, wish: str) -> str:
        name = fresh(wish, self._taken, self._mark)
        self._taken.add(name)
        return name
