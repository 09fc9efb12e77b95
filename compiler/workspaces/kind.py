"""What every kind of workspace is asked, and which kinds there are (Kjolstad et al., "Tensor algebra compilation with workspaces").

A kind is one file beside this one, with an object of it that is registered: schedules name it, legality, the space and the cost models ask
for its properties, lowering has it make the workspace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ScheduleError
from ..frozen import frozen
from ..ir.names import Names
from ..ir.nodes import Allocate, Const, Declare, Free, Step, Type, Value, Var

if TYPE_CHECKING:
    from .held import HeldWorkspace


@frozen
class Making:
    """A workspace that is to be made, at one place of the nest.

    Attributes:
        name, indices, extents: of the workspace.
        length: the product of the extents.
        type, zero: of its values, and the identity of the semiring's add.
        key_type: of the numbers of its components.
        depth: how many guards stand around the ``where`` that owns it.
        asked: whether what reads it stores only entries.
        looked_up: whether its entries are only looked up, so that nobody asks for them in order.
        again: whether it is filled in every iteration around, by one producer alone.
        on_gpu: whether kernels of a GPU fill it, while which nothing grows.
        names: of the kernel.
        before, after: what stands where memory is made once: at the start and end of the kernel, or of a thread.
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
    before: list[Step]
    after: list[Step]

    def array(self, suffix: str, kind: Type, length: Value, *, zero: bool = False) -> str:
        """Return the name of an array that is made once."""
        name = self.names.permanent(self.name + suffix)
        self.before.append(Allocate(name, kind, length, "heap", zero))
        self.after.append(Free(name))
        return name

    def counter(self, suffix: str, initial: Value) -> Var:
        """Return a variable of 64 bits that is declared once."""
        variable = Var(self.names.permanent(self.name + suffix), initial.type)
        self.before.append(Declare(variable, initial))
        return variable


class WorkspaceKind(str):
    """A kind of workspaces, whose text is its name in ``workspace(w, NAME)``.

    Attributes:
        keeps_entries: it knows which components were written, so that what reads it may store only those. A scalar does so where it is
            asked to.
        whole: it has room for every component of its range, and is cleared and read whole.
    """

    keeps_entries = False
    whole = False

    def make(self, making: Making) -> HeldWorkspace:
        """Return the workspace, whose arrays are made where memory is made once.

        Raises:
            ScheduleError: there is none of this kind for what is asked.
        """
        raise NotImplementedError


_known: dict[str, WorkspaceKind] = {}
WORKSPACES = _known.keys()
"""The names of all kinds, those registered later too."""


def register(kind: WorkspaceKind) -> WorkspaceKind:
    """Make a kind known under its name, and return it.

    Raises:
        ScheduleError: the name is taken.
    """
    if kind in _known:
        raise ScheduleError(f"there is a kind of workspace '{kind}' already; choose another name")
    _known[str(kind)] = kind
    return kind


def unregister(kind: WorkspaceKind) -> None:
    """Make a kind unknown again."""
    del _known[kind]


def workspace_kind(name: str) -> WorkspaceKind:
    """Return the kind of a name that a schedule or a pass has given."""
    return _known[name]


def keeps_entries(kind: str | None) -> bool:
    """Return whether workspaces of a kind know which components were written; False where none is said."""
    return kind is not None and _known[kind].keeps_entries


def is_whole(kind: str) -> bool:
    """Return whether workspaces of a kind are cleared and read whole."""
    return _known[kind].whole


def keeping_kinds() -> tuple[str, ...]:
    """Return the names of the kinds that keep their entries."""
    return tuple(name for name, kind in _known.items() if kind.keeps_entries)


def keepers() -> str:
    """Return the names of the kinds that keep their entries, for messages."""
    *most, last = keeping_kinds()
    return f"{', '.join(most)} or {last}"
