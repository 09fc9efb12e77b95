"""How tensors are stored: level arrays, packing, conversion between formats, and construction from other libraries' arrays."""

from .construct import tensor
from .tensor import LevelArrays, Tensor

__all__ = ["LevelArrays", "Tensor", "tensor"]
