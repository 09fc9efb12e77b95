"""Frozen dataclasses of which little is generated, so that importing them is quick.

``dataclasses`` writes and compiles the source of six methods for each class, which takes most of the time until a first kernel. How
objects are compared, hashed and shown hangs on the names of their fields alone, so that all classes share these methods here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(made: type[T]) -> type[T]:
    """Return a class as ``dataclass(frozen=True)`` does; methods that it has itself are kept."""
    own = frozenset(made.__dict__)
    whole = dataclass(frozen=True, eq=False, repr=False)(made)
    values = _values(tuple(entry.name for entry in fields(whole) if entry.compare))  # type: ignore[arg-type]  # it is a dataclass

    def equal(one: object, other: object) -> bool:
        return values(one) == values(other) if other.__class__ is one.__class__ else NotImplemented

    def hashed(one: object) -> int:
        return hash(values(one))

    for name, method in (("__eq__", equal), ("__hash__", hashed), ("__repr__", _shown)):
        if name not in own or (name == "__hash__" and made.__dict__[name] is None):
            setattr(whole, name, method)
    return whole


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of some attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda one: (getattr(one, names[0]),)) if names else lambda one: ()


def _shown(one: Any) -> str:
    shown = ", ".join(f"{entry.name}={getattr(one, entry.name)!r}" for entry in fields(one) if entry.repr)
    return f"{type(one).__qualname__}({shown})"
