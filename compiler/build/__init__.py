"""Kernels that run: generated code compiled, loaded, and called on operands."""

from .kernel import BoundKernel, Kernel

__all__ = ["BoundKernel", "Kernel"]
