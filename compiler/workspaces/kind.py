"""The interface of workspace kinds, and their registry (Kjolstad et al., "Tensor algebra compilation with workspaces").

A kind is a class, and one object of it that is registered. Schedules name it; legality, the space and the cost models read its properties;
lowering calls ``make``. Choosing a schedule makes no workspace, so that this module imports nothing of the code of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ScheduleError

if TYPE_CHECKING:
    from .held import HeldWorkspace
    from .making import Making


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
