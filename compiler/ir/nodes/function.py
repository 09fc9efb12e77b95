"""A kernel as a whole: its parameters and its body."""

from __future__ import annotations

from ...frozen import frozen
from .steps import Steps
from .types import Type

PAST_CACHES = "past_caches"
"""In the ``source`` of a size: (tensor, "past_caches", 0) is 1 where rows of the result are to be written past the caches."""


@frozen
class ArrayParameter:
    """An array that the caller hands in (or, ``assembled``, receives).

    ``source`` says which: (tensor, "values"), or (tensor, part, level) with a name that the kind of the level has for its arrays, such as
    "pos" or "crd". A tensor that is read in several formats has a name for each (``key`` of ``lowering.kernel_spec.OperandSpec``).
    """

    name: str
    type: Type
    source: tuple[str, str] | tuple[str, str, int]
    writable: bool = False
    assembled: bool = False


@frozen
class SizeParameter:
    """An i64 scalar: ("index", i) is the extent of an index; (tensor, "length", level) the positions of a level;
    ("threads", "count") into how many shares work is cut; (tensor, "past_caches", 0) whether a result is to be written past the
    caches.
    """

    name: str
    source: tuple[str, str] | tuple[str, str, int]


@frozen
class Function:
    """A kernel: ``int32_t name(void **arrays, int64_t *sizes, int64_t threads)`` in C, parameters in slot order."""

    name: str
    arrays: tuple[ArrayParameter, ...]
    sizes: tuple[SizeParameter, ...]
    body: Steps
