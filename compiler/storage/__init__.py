"""How tensors are stored: level arrays, packing, conversion between formats, and construction from other libraries' arrays.

``construct.tensor`` is not repeated here: the module ``tensor`` has its name.
"""

from .block import block, unblock
from .construct import from_entries
from .tensor import LevelArrays, Tensor

__all__ = ["LevelArrays", "Tensor", "block", "from_entries", "unblock"]
