"""A kernel as a whole: its parameters and its body."""

from __future__ import annotations

from ...frozen import frozen
from .steps import Steps
from .types import Type

PAST_CACHES = "past_caches"
"""In the ``source`` of a size: (tensor, "past_caches", 0) is 1 if stores to rows of the result are to bypass the caches."""

STEP = "step"
"""In the ``source`` of a size: (tensor, "step", level) is how many items the rows of a matrix lie apart, whose last level this is."""


@frozen
class ArrayParameter:
    """An array that the caller gives, or receives if it is ``assembled``.

    ``source`` says which: (tensor, "values"), or (tensor, part, level), where ``part`` is the name of an array of the level's kind, such
    as "pos" or "crd". A tensor that is read in several formats has a name for each (``key`` of ``lowering.kernel_spec.OperandSpec``).
    """

    name: str
    type: Type
    source: tuple[str, str] | tuple[str, str, int]
    writable: bool = False
    assembled: bool = False


@frozen
class SizeParameter:
    """An i64 scalar. Its ``source`` is ("index", i) for the extent of an index, (tensor, "length", level) for the number of positions of
    a level, (tensor, "step", level) for ``STEP``, ("threads", "count") for the number of shares into
    which work is cut, or (tensor, "past_caches", 0) for whether stores to a result are to bypass the caches.
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
