"""The kinds of workspaces. Importing this package registers its own, in the order in which messages list them."""

from .kind import WORKSPACES, WorkspaceKind, is_whole, keepers, keeping_kinds, keeps_entries, register, workspace_kind
from .own import Bitmap, Dense, Hashed, List, Registers, Scalar

__all__ = [
    "WORKSPACES", "WorkspaceKind", "is_whole", "keepers", "keeping_kinds", "keeps_entries", "register", "workspace_kind",
]  # fmt: skip

OWN = (
    Scalar("scalar"), Registers("registers"), Dense("dense"), List("list"), Bitmap("bitmap"), Hashed("hashed"), Dense("positions"),
)  # fmt: skip

for kind in OWN:
    register(kind)
