"""Arrays that stay as they are: index arrays that nobody can write, and memory that nobody can resize.

Kernels follow positions and coordinates without looking whether they lead out of an array. So what was found in range once must stay
in range, whoever holds the arrays: a tensor's index arrays are *sealed*. Values may change as their owner likes, where they are.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Sealed(np.ndarray[Any, Any]):
    """The memory behind a sealed array; arrays that lie over it by way of a read-only buffer cannot be made writable again."""


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a flat, contiguous array as one that cannot be written. It is our own: nobody else holds it, or its memory."""
    if is_sealed(array):
        return array
    memory = array.view(_Sealed)
    memory.flags.writeable = array.flags.writeable = False
    return np.frombuffer(memory.data, array.dtype)


def is_sealed(array: NDArray[Any]) -> bool:
    """Return whether ``sealed`` has made an array."""
    base = array.base
    return type(base) is memoryview and type(base.obj) is _Sealed


def kept(array: NDArray[Any]) -> NDArray[Any]:
    """Return a sealed array of the same content: a copy, unless the array is sealed already."""
    return array if is_sealed(array) else sealed(np.array(array, order="C").reshape(-1))


def pin(array: NDArray[Any]) -> object:
    """Return what keeps an array's memory where it is, as long as it lives.

    ``ndarray.resize(..., refcheck=False)`` looks at neither references nor buffers that were handed out, but refuses where something
    refers weakly to the array that owns the memory.
    """
    owner = array
    while (base := owner.base) is not None:
        if type(base) is memoryview:
            base = base.obj
        if not isinstance(base, np.ndarray):
            return None
        owner = base
    return weakref.ref(owner)
