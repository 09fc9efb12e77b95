"""The kinds of workspaces, as schedules name and judge them; ``lowering.where`` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class WorkspaceKind:
    """What is known of a workspace by its kind.

    Attributes:
        name: as ``workspace(w, NAME)`` says it.
        keeps_entries: it knows which components were written, so that what reads it may store only those. A scalar does so where it is
            asked to.
        whole: it has room for every component of its range, and is cleared and read whole.
    """

    name: str
    keeps_entries: bool = False
    whole: bool = False


_KINDS: Final = {
    kind.name: kind
    for kind in (
        WorkspaceKind("scalar", whole=True),
        WorkspaceKind("registers", whole=True),
        WorkspaceKind("dense", whole=True),
        WorkspaceKind("list", keeps_entries=True),
        WorkspaceKind("bitmap", keeps_entries=True),
        WorkspaceKind("hashed", keeps_entries=True),
        WorkspaceKind("positions"),
    )
}
WORKSPACES: Final = tuple(_KINDS)
KEEPING: Final = tuple(kind.name for kind in _KINDS.values() if kind.keeps_entries)
"""The kinds that keep their entries."""
KEEPERS: Final = f"{', '.join(KEEPING[:-1])} or {KEEPING[-1]}"
"""Their names, for messages."""


def keeps_entries(kind: str | None) -> bool:
    """Return whether workspaces of a kind know which components were written; False where none is said."""
    return kind is not None and _KINDS[kind].keeps_entries


def is_whole(kind: str) -> bool:
    """Return whether workspaces of a kind are cleared and read whole."""
    return _KINDS[kind].whole
