"""The interface of workspace kinds, and their registry (Kjolstad et al., "Tensor algebra compilation with workspaces").

A kind is one file beside this one: a class, and one object of it that is registered. Schedules name it; legality, the space and the cost
models read its properties; lowering calls ``make``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ScheduleError
from ..frozen import frozen
from ..ir.names import Names
from ..ir.nodes import Allocate, Const, Declare, Type, Value, Var

if TYPE_CHECKING:
    from .held import HeldWorkspace


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


class WorkspaceKind(str):
    """A kind of workspaces. As a string it is its name in ``workspace(w, NAME)``.

    Attributes:
        keeps_entries: it knows which components were written, so that its consumer can store only those. A scalar knows it if it is
            asked to.
        whole: it has room for every component of its range, and all of it is cleared and read.
    """

    keeps_entries = False
    whole = False

    def make(self, making: Making) -> HeldWorkspace:
        """Return the workspace.

        Raises:
            ScheduleError: this kind cannot make it.
        """
        raise NotImplementedError


_known: dict[str, WorkspaceKind] = {}
WORKSPACES = _known.keys()
"""The names of all kinds, including those that are registered later."""


def register(kind: WorkspaceKind) -> WorkspaceKind:
    """Register a kind under its name, and return it.

    Raises:
        ScheduleError: the name is taken.
    """
    if kind in _known:
        raise ScheduleError(f"there is a kind of workspace '{kind}' already; choose another name")
    _known[str(kind)] = kind
    return kind


def unregister(kind: WorkspaceKind) -> None:
    """Remove a kind from the registry."""
    del _known[kind]


def workspace_kind(name: str) -> WorkspaceKind:
    """Return the kind with a name, which a schedule or a pass has checked."""
    return _known[name]


def keeps_entries(kind: str | None) -> bool:
    """Return whether workspaces of a kind know which components were written; False for None."""
    return kind is not None and _known[kind].keeps_entries


def is_whole(kind: str) -> bool:
    """Return whether all of a workspace of this kind is cleared and read."""
    return _known[kind].whole


def keeping_kinds() -> tuple[str, ...]:
    """Return the names of the kinds that keep their entries."""
    return tuple(name for name, kind in _known.items() if kind.keeps_entries)


def keepers() -> str:
    """Return the names of the kinds that keep their entries, for messages."""
    *most, last = keeping_kinds()
    return f"{', '.join(most)} or {last}"
