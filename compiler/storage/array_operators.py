"""The operators of arrays on tensors: signs, products, sums and slices, each a call of the module that computes it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike

    from .tensor import Tensor


class ArrayOperators:
    """What a Tensor has of NumPy's protocol and of Python's operators. The modules that compute them import ``Tensor`` themselves."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Apply a NumPy function to the stored values if it maps 0 to 0; operators are those of ``compiler.operators``."""
        return NotImplemented if method != "__call__" or keywords else _operators().applied(ufunc, inputs)

    def __pow__(self, exponent: Any) -> Tensor:
        return _operators().power(self, exponent)

    def __add__(self, other: Any) -> Any:
        return _operators().elementwise("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return _operators().elementwise("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return _operators().elementwise("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _operators().elementwise("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _operators().elementwise("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operators().elementwise("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _operators().elementwise("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _operators().elementwise("/", other, self)

    def __neg__(self) -> Tensor:
        return _operators().negated(self)

    def __abs__(self) -> Tensor:
        return _operators().absolute(self)

    def __matmul__(self, other: Any) -> Any:
        return _arithmetic().matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _arithmetic().rmatmul(self, other)

    def __getitem__(self, key: Any) -> Any:
        """Return a slice: an integer drops a mode, a range keeps it; a scalar when every mode is given an integer."""
        return _arithmetic().take_slice(self, key)

    def sum(self, axis: int | tuple[int, ...] | None = None, dtype: DTypeLike | None = None, out: None = None) -> Any:
        """Return the sum over modes: a scalar for all of them, an ndarray if one mode is left, else a sparse Tensor.

        ``numpy.sum`` calls this with ``out``, which must be None.
        """
        if out is not None:
            raise DataError("sums of a Tensor are not written into a given array; leave out= away")
        return _arithmetic().sum_modes(self, axis, dtype)

    def max(self, axis: int | tuple[int, ...] | None = None, out: None = None) -> Any:
        """Return the largest value over modes, zeros that are not stored included: as ``sum``, a scalar, an ndarray or a Tensor."""
        if out is not None:
            raise DataError("the largest values of a Tensor are not written into a given array; leave out= away")
        return _arithmetic().max_modes(self, axis)


def _operators() -> Any:
    """Return the module of ``+ - * /``, imported at first use: it needs the whole compiler, which storage must not import."""
    return import_module("..operators", __package__)


def _arithmetic() -> Any:
    """Return the module of products, sums and slices, imported at first use: it makes tensors."""
    return import_module(".arithmetic", __package__)
