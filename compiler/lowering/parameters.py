"""The parameters of a kernel, arrays and sizes. What it may take is known before it is lowered; it takes what its steps use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..frozen import frozen
from ..ir.arithmetic import integer
from ..ir.nodes import I64, ArrayParameter, SizeParameter, Value, Var

ArraySource: TypeAlias = "tuple[str, str] | tuple[str, str, int]"
"""The tensor or stored copy, the part of it, and, but for values, the level."""

SizeSource: TypeAlias = "tuple[str, str] | tuple[str, str, int]"
"""``("index", name)``, an extent; ``(key, "extent", mode)``, ``(key, "length", level)`` and ``(key, "step", level)`` of a stored copy;
``THREADS``."""

THREADS: SizeSource = ("threads", "count")


@frozen
class Sizes:
    """The sizes that a kernel may take.

    Attributes:
        parameters: every one, by its source.
        extents: compile-time constant extents by index.
        aliases: for indices that are not in the expression, the index of the expression with the same range.
    """

    parameters: Mapping[SizeSource, SizeParameter]
    extents: Mapping[str, int]
    aliases: Mapping[str, str]

    def parameter(self, source: SizeSource) -> Var:
        """Return the variable of a size, such as an extent or the number of positions of a level."""
        return Var(self.parameters[source].name, I64)

    def of(self, index: str) -> Value:
        """Return the extent of an original index."""
        if index in self.extents:
            return integer(self.extents[index])
        return self.parameter(("index", self.aliases.get(index, index)))


@frozen
class Parameters:
    """The arrays and the sizes that a kernel may take, in the order in which it takes them."""

    arrays: Mapping[ArraySource, ArrayParameter]
    sizes: Sizes

    def array(self, source: ArraySource) -> str:
        """Return the name of an array."""
        return self.arrays[source].name
