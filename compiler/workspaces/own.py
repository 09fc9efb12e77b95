"""The kinds of workspaces of this package, as schedules name them.

What makes a workspace is imported with the first one of its kind: choosing a schedule needs the names and properties alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .kind import WorkspaceKind

if TYPE_CHECKING:
    from .held import HeldWorkspace
    from .making import Making


class Scalar(WorkspaceKind):
    """A single value: a workspace without indices."""

    whole = True

    def make(self, making: Making) -> HeldWorkspace:
        from .scalar import make_scalar

        return make_scalar(making)


class Dense(WorkspaceKind):
    """An array over all coordinates, or over the positions of an operand, with one slot for every stored component."""

    whole = True

    def make(self, making: Making) -> HeldWorkspace:
        from .dense import make_array

        return make_array(making)


class Registers(WorkspaceKind):
    """An array over all coordinates in registers, so that its length must be a compile-time constant."""

    whole = True

    def make(self, making: Making) -> HeldWorkspace:
        from .dense import make_registers

        return make_registers(making)


class List(WorkspaceKind):
    """An array over the whole range, marks, and a list of the keys that were written."""

    keeps_entries = True

    def make(self, making: Making) -> HeldWorkspace:
        from .listed import make_list

        return make_list(making)


class Bitmap(WorkspaceKind):
    """An array over the whole range, and a bit for each key that says whether it was written."""

    keeps_entries = True

    def make(self, making: Making) -> HeldWorkspace:
        from .bitmap import make_bitmap

        return make_bitmap(making)


class Hashed(WorkspaceKind):
    """A map from keys to slots, for ranges too large for an array; on a GPU a table."""

    keeps_entries = True

    def make(self, making: Making) -> HeldWorkspace:
        from .hashed import make_map

        return make_map(making)
