"""Kernels that run: generated code compiled, loaded, and called on operands."""

from .kernel import BoundKernel, TypedKernel

__all__ = ["BoundKernel", "TypedKernel"]
