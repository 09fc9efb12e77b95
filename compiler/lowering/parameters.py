"""The parameters of a kernel, arrays and sizes, which are declared at their first use, and the names in it."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.arithmetic import integer
from ..ir.names import Names
from ..ir.nodes import I64, ArrayParameter, SizeParameter, Type, Value, Var


class Parameters:
    """The parameters of one kernel.

    Attributes:
        extents: compile-time constant extents by index.
        aliases: for indices that are not in the expression, the index of the expression with the same range.
    """

    def __init__(self, extents: Mapping[str, int], aliases: Mapping[str, str]) -> None:
        self.extents, self.aliases = dict(extents), dict(aliases)
        self.names = Names()
        self.arrays: dict[tuple[object, ...], ArrayParameter] = {}
        self.sizes: dict[tuple[object, ...], SizeParameter] = {}

    def array(self, tensor: str, part: str, level: int | None, kind: Type, *, writable: bool = False) -> str:
        """Return the name of an array parameter."""
        source = (tensor, part) if level is None else (tensor, part, level)
        if source not in self.arrays:
            wish = f"{tensor}_vals" if level is None else f"{tensor}{level + 1}_{part}"
            self.arrays[source] = ArrayParameter(self.names.permanent(wish), kind, source, writable)
        return self.arrays[source].name

    def assembled(self, tensor: str, part: str, level: int | None, kind: Type, array: str) -> None:
        """Declare that the kernel hands an array that it makes to the caller."""
        source = (tensor, part) if level is None else (tensor, part, level)
        self.arrays[source] = ArrayParameter(f"{array}_out", kind, source, writable=True, assembled=True)

    def size_parameter(self, source: tuple[str, str] | tuple[str, str, int], wish: str) -> Var:
        """Return the variable of a size, such as an extent or the number of positions of a level."""
        if source not in self.sizes:
            self.sizes[source] = SizeParameter(self.names.permanent(wish), source)
        return Var(self.sizes[source].name, I64)

    def size(self, index: str) -> Value:
        """Return the extent of an original index."""
        if index in self.extents:
            return integer(self.extents[index])
        name = self.aliases.get(index, index)
        return self.size_parameter(("index", name), f"{name}_size")
