"""Properties of objects that never change, computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A property that is computed once and kept in the object's ``__dict__``. Unlike ``functools.cached_property`` it takes no lock."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name = compute, compute.__name__

    def __get__(self, held: object, owner: type | None = None) -> T:
        found = held.__dict__[self._name] = self._compute(held)
        return found
