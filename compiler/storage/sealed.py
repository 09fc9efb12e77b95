"""Index arrays that cannot be written, and memory that cannot be resized.

Kernels use positions and coordinates without checking that they are in range. So arrays that were checked once must not change, whoever
holds them: a tensor's index arrays are *sealed*. The owner may change values in place.
"""

from __future__ import annotations

import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

from ..numpy_later import np
from .kernels import light

if TYPE_CHECKING:
    from numpy.typing import NDArray


@cache
def _sealed_memory() -> type[np.ndarray[Any, Any]]:
    """Return the class of the memory of sealed arrays. Arrays over a read-only buffer of it cannot be made writable again."""
    return type("Sealed", (np.ndarray,), {})


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a flat, contiguous array as one that cannot be written. The caller must be the only holder of the array and its memory."""
    if is_sealed(array):
        return array
    memory = array.view(_sealed_memory())
    memory.setflags(write=False)
    array.setflags(write=False)
    return np.frombuffer(memory.data, array.dtype)


def is_sealed(array: NDArray[Any]) -> bool:
    """Return whether ``sealed`` has made an array."""
    base = array.base
    return type(base) is memoryview and type(base.obj) is _sealed_memory()


def kept(array: NDArray[Any]) -> NDArray[Any]:
    """Return a sealed array of the same content: a copy, unless the array is sealed already."""
    return array if is_sealed(array) else sealed(light(0).copied(array))  # a copy is no reason to load them


def pin(array: NDArray[Any]) -> object:
    """Return an object that keeps an array's memory from being resized as long as the object lives.

    ``ndarray.resize(..., refcheck=False)`` ignores references and exported buffers, but refuses if there is a weak reference to the array
    that owns the memory.
    """
    owner = array
    while (base := owner.base) is not None:
        if type(base) is memoryview:
            base = base.obj
        if not isinstance(base, np.ndarray):
            return None
        owner = base
    return weakref.ref(owner)
