"""How tensors are stored: level arrays, packing, conversion between formats, and construction from other libraries' arrays."""

from .block import block, unblock
from .construct import from_entries, tensor
from .tensor import LevelArrays, Tensor

__all__ = ["LevelArrays", "Tensor", "block", "from_entries", "tensor", "unblock"]
