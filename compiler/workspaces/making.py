"""What a workspace is made from, and the steps that make its arrays and counters."""

from __future__ import annotations

from ..frozen import frozen
from ..ir.names import Names
from ..ir.nodes import Allocate, Const, Declare, Type, Value, Var


@frozen
class Making:
    """What a kind needs to make a workspace at one place of the nest.

    Attributes:
        name, indices, extents: those of the workspace.
        length: the product of the extents.
        type, zero: the type of its values, and the identity of the semiring's add.
        key_type: the type of keys, the row-major numbers of its components.
        depth: how many guards are around the ``where`` to which it belongs.
        asked: whether its consumer needs to know which components were written.
        looked_up: whether its entries are only located, and never read in order.
        again: whether one producer alone fills it anew in every iteration of the loop around.
        on_gpu: whether a kernel of a GPU fills it, so that its arrays cannot grow.
        names: the names of the kernel.
    """

    name: str
    indices: tuple[str, ...]
    extents: tuple[Value, ...]
    length: Value
    type: Type
    zero: Const
    key_type: Type
    depth: int
    asked: bool
    looked_up: bool
    again: bool
    on_gpu: bool
    names: Names

    def array(self, suffix: str, kind: Type, length: Value, *, zero: bool = False) -> Allocate:
        """Return the step that makes an array, for ``HeldWorkspace.once``."""
        return Allocate(self.names.permanent(self.name + suffix), kind, length, "heap", zero)

    def counter(self, suffix: str, initial: Value) -> Declare:
        """Return the step that declares a variable of 64 bits, for ``HeldWorkspace.once``."""
        return Declare(Var(self.names.permanent(self.name + suffix), initial.type), initial)
