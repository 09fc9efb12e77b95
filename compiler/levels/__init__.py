"""The kinds of levels, each in a file of its own. Importing this package registers them, in the order in which messages list them."""

from .bitmap import BITMAP
from .compressed import COMPRESSED
from .dense import DENSE
from .hashed import HASHED
from .kind import LevelKind
from .narrow import NARROW
from .padded import PADDED
from .patterned import PATTERNED
from .registry import level_kind, level_kinds, register
from .singleton import SINGLETON
from .sliced import SLICED
from .symmetric import SYMMETRIC

__all__ = ["COMPRESSED", "DENSE", "HASHED", "SINGLETON", "SYMMETRIC", "LevelKind", "level_kind", "level_kinds", "register"]

for kind in (DENSE, COMPRESSED, NARROW, PATTERNED, SINGLETON, HASHED, BITMAP, PADDED, SLICED, SYMMETRIC):
    register(kind)
