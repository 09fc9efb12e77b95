"""The kinds of workspaces, each in a file of its own. Importing this package registers them, in the order in which messages list them."""

from .bitmap import BITMAP
from .dense import DENSE, POSITIONS, REGISTERS
from .hashed import HASHED
from .kind import WORKSPACES, WorkspaceKind, is_whole, keepers, keeping_kinds, keeps_entries, register, workspace_kind
from .listed import LIST
from .scalar import SCALAR

__all__ = [
    "WORKSPACES", "WorkspaceKind", "is_whole", "keepers", "keeping_kinds", "keeps_entries", "register", "workspace_kind",
]  # fmt: skip

for kind in (SCALAR, REGISTERS, DENSE, LIST, BITMAP, HASHED, POSITIONS):
    register(kind)
