"""Kernels that run: generated code compiled, loaded, and called on operands."""

from .bound import BoundKernel
from .kernel import TypedKernel

__all__ = ["BoundKernel", "TypedKernel"]
