"""The signs between tensors and arrays: ``+ - * /`` become expressions of index notation, with NumPy's broadcasting.

The result is sparse, in the format of the first sparse operand of its order (csr or csf where there is none). Nothing is filled on
the way: the sum with an array of the result's whole shape is an ndarray, and one with a number or a smaller array is refused.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import DataError, ExpressionError, ShapeError
from .evaluate import evaluate
from .format import Format
from .storage.arithmetic import narrowed
from .storage.construct import default_sparse_format
from .storage.dtypes import checked_dtype
from .storage.foreign import dense_array, is_matrix, read
from .storage.tensor import Tensor

_Operand: TypeAlias = "Tensor | NDArray[Any]"


def elementwise(sign: str, left: Any, right: Any) -> Any:
    """Return ``left + right``, or with another of the signs ``- * /``, where one of both is a Tensor.

    A quotient has the pattern of the numerator: entries that are not stored there are not computed, whatever the divisor.

    Returns:
        A Tensor, or an ndarray where no operand is sparse or a sum has a dense one; NotImplemented for what is no array.

    Raises:
        ShapeError: the shapes do not broadcast.
        ExpressionError: every entry of a sparse result would be filled: in a sum with a number other than 0 or with an array that
            is broadcast, or in a quotient by a sparse tensor.
        DataError: a fill value is not 0, or values are not supported.
    """
    if sign == "*" and (is_matrix(left) or is_matrix(right)):
        raise DataError("'*' with a matrix of NumPy or SciPy has two meanings; make it an array, or write '@' for the matrix product")
    first, second = _operand(left), _operand(right)
    if first is None or second is None:
        return NotImplemented
    first, second = _weak(left, first, second), _weak(right, second, first)
    if sign in "+-" and () in (first.shape, second.shape) and (_is_sparse(first) or _is_sparse(second)):
        return _sum_with_number(sign, first, second)
    if sign == "/" and _is_sparse(second):
        raise ExpressionError("a quotient by a sparse tensor is infinite or NaN wherever that has no entry; divide by its .to_numpy()")
    return _computed(sign, first, second)


def negated(tensor: Tensor) -> Tensor:
    """Return ``-tensor``, in the tensor's format and sharing its levels."""
    return _mapped(np.negative, tensor)


def absolute(tensor: Tensor) -> Tensor:
    """Return the absolute values, in the tensor's format and sharing its levels."""
    return _mapped(np.abs, tensor)


def _mapped(function: np.ufunc, tensor: Tensor) -> Tensor:
    try:
        values, fill = function(tensor.values), function(tensor.dtype.type(tensor.fill_value)).item()
    except TypeError:
        raise DataError(f"'{function.__name__}' has no meaning for values of type {tensor.dtype}; cast them with .astype") from None
    return Tensor.made(tensor.shape, tensor.format, tensor.levels, values, fill)


_SIGNS = {np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/"}


def applied(function: np.ufunc, operands: tuple[Any, ...]) -> Any:
    """Return what a function of NumPy gives for operands of which at least one is a Tensor.

    Operators become expressions; functions of one operand that map 0 to 0 act on the stored values.

    Raises:
        ExpressionError: the function would fill the tensor.
    """
    if function in _SIGNS and len(operands) == 2:
        return elementwise(_SIGNS[function], *operands)
    if function is np.matmul:
        left, right = operands
        return left @ right if isinstance(left, Tensor) else right.__rmatmul__(left)
    if function is np.power and isinstance(operands[0], Tensor):
        return power(*operands)
    if len(operands) != 1 or function.nout != 1:
        return NotImplemented
    return _of_values(function, operands[0])


def power(tensor: Tensor, exponent: Any) -> Tensor:
    """Return the tensor with the powers of the stored values; the exponent must be a positive number, so that 0 stays 0."""
    if isinstance(exponent, bool) or not isinstance(exponent, (int, float, np.integer, np.floating)):
        return NotImplemented
    if not exponent > 0:
        raise ExpressionError(f"'** {exponent}' would fill every coordinate of a sparse tensor; use .to_numpy()")
    return _of_values(lambda values: values**exponent, tensor)


def _of_values(function: Any, tensor: Tensor) -> Tensor:
    name = getattr(function, "__name__", "**")
    if tensor.fill_value != 0:
        raise DataError(f"'{name}' needs a fill value of 0, this tensor's is {tensor.fill_value}; apply it to .values, see with_values")
    try:
        with np.errstate(all="ignore"):
            zero = function(np.zeros(1, tensor.dtype))[0]
    except TypeError:
        raise DataError(f"'{name}' has no meaning for values of type {tensor.dtype}; cast them with .astype") from None
    if zero != 0 and not tensor.format.is_dense:
        raise ExpressionError(f"'{name}' makes {zero} of 0 and would fill every coordinate of a sparse tensor; use .to_numpy()")
    return tensor.with_values(function(tensor.values))


def _operand(data: Any) -> _Operand | None:
    """Return data as a tensor or an ndarray; None for anything else. Scalars become arrays; ``_weak`` gives Python's numbers a type."""
    if type(data) in (int, float):
        return np.zeros(())
    tensor = data if isinstance(data, Tensor) else read(data)
    if tensor is None:
        try:
            array = dense_array(data)
            checked_dtype(array.dtype)
            return array
        except DataError:
            if isinstance(data, np.ndarray):
                raise
            return None
    if tensor.fill_value != 0:
        raise DataError(f"signs need a fill value of 0, this tensor's is {tensor.fill_value}; use sparsetune.evaluate with a semiring")
    return tensor if tensor.order else tensor.to_numpy()


def _weak(data: Any, operand: _Operand, other: _Operand) -> _Operand:
    """Return the operand. A Python number gets the type that NumPy gives it beside the other operand."""
    if type(data) not in (int, float):
        return operand
    kind = np.result_type(other.dtype, data)
    try:
        return np.asarray(data, kind)
    except OverflowError:
        raise DataError(f"{data} does not fit into values of type {kind}; cast the tensor with .astype") from None


def _is_sparse(operand: _Operand) -> bool:
    return isinstance(operand, Tensor) and not operand.format.is_dense


def _sum_with_number(sign: str, first: _Operand, second: _Operand) -> Tensor:
    """Return the sparse operand of a sum whose other operand is 0; other numbers are refused."""
    tensor, number = (first, second) if isinstance(first, Tensor) else (second, first)
    assert isinstance(tensor, Tensor)
    assert isinstance(number, np.ndarray)
    if number != 0:
        raise _filling(sign, str(number))
    cast = tensor.astype(np.result_type(tensor.dtype, number.dtype))
    return negated(cast) if sign == "-" and tensor is second else cast


def _filling(sign: str, other: str) -> ExpressionError:
    return ExpressionError(f"'{sign}' with {other} would fill every coordinate of a sparse tensor; use .to_numpy(), or a product")


def _computed(sign: str, first: _Operand, second: _Operand) -> Any:
    """Evaluate the expression that the operator means. Modes of extent 1 that are broadcast are left out of it."""
    shape = _broadcast(sign, first.shape, second.shape)
    if sign in "+-" and _is_sparse(first) != _is_sparse(second):
        dense = second if _is_sparse(first) else first
        if dense.shape != shape:
            raise _filling(sign, f"an array of shape {dense.shape}")
    operands: dict[str, Any] = {}
    accesses = {"C": list(range(len(shape)))}
    for name, operand in (("A", first), ("B", second)):
        ahead = len(shape) - len(operand.shape)
        kept = [mode for mode, extent in enumerate(operand.shape) if extent == shape[ahead + mode]]
        operands[name] = narrowed(operand, kept)
        accesses[name] = [ahead + mode for mode in kept]
    target, *sides = (f"{name}({','.join(f'i{index}' for index in indices)})" if indices else name for name, indices in accesses.items())
    return evaluate(f"{target} = {f' {sign} '.join(sides)}", operands, _format(sign, first, second, len(shape)))


def _broadcast(sign: str, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Return the broadcast shape. NumPy's own function cannot be used: it refuses shapes of more than 2**63 elements."""
    order = max(len(first), len(second))
    pairs = list(zip((1,) * (order - len(first)) + first, (1,) * (order - len(second)) + second, strict=True))
    if any(one != other and 1 not in (one, other) for one, other in pairs):
        raise ShapeError(f"'{sign}': shapes {first} and {second} do not broadcast")
    return tuple(other if one == 1 else one for one, other in pairs)


def _format(sign: str, first: _Operand, second: _Operand, order: int) -> Format | None:
    """Return the format of a sparse result; None for a dense one."""
    sparse = [operand.format.plain for operand in (first, second) if isinstance(operand, Tensor) and _is_sparse(operand)]
    if not sparse or (sign in "+-" and len(sparse) < 2):
        return None
    return next((known for known in sparse if len(known) == order and _holds_anything(known)), default_sparse_format(order))


def _holds_anything(format: Format) -> bool:
    """Whether singleton levels only stand below those of coordinates."""
    return all(not lower.shares_positions or upper.steps_in_order for upper, lower in pairwise(format.levels))
