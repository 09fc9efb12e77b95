"""What was found out about an operand, remembered as long as the operand lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..compiler.storage.tensor import Tensor

Found = TypeVar("Found")

_remembered: weakref.WeakKeyDictionary[Tensor, dict[tuple[object, ...], Any]] = weakref.WeakKeyDictionary()


def remembered(tensor: Tensor, key: tuple[object, ...], find: Callable[[], Found]) -> Found:
    """Return what depends on an operand's pattern and a key, found once as long as the operand lives."""
    known = _remembered.setdefault(tensor, {})
    if key not in known:
        known[key] = find()
    return known[key]
