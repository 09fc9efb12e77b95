"""The supported element types of tensors, and casts that raise an error rather than lose something."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..numpy_later import np
from ..shown import shown
from .aligned import aligned_empty
from .kernels import light

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_ADVICE = {
    "float16": "convert with .astype('float32')",
    "longdouble": "convert with .astype('float64')",
    "clongdouble": "convert with .astype('complex128')",
    "object": "give numbers of one type, for example with .astype('float64')",
}


@cache
def supported() -> frozenset[np.dtype[Any]]:
    """Return the dtypes that tensors may have."""
    kinds = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    return frozenset(map(np.dtype, (*kinds, "float32", "float64", "complex64", "complex128")))


def checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return a dtype in native byte order.

    Raises:
        DataError: tensors of this dtype are not supported; the message says what to do.
    """
    if isinstance(dtype, np.dtype) and dtype in supported():  # dtypes of foreign byte order are not equal to these
        return dtype
    try:
        found = np.dtype(dtype)
        kind = found if found.isnative else found.newbyteorder("=")  # some native dtypes have no byte order
    except Exception:  # NumPy asks a foreign object for its dtype, which may fail in any way
        raise DataError(f"{shown(dtype)} is no dtype; use float64, float32, an integer type or bool") from None
    if kind not in supported():
        advice = _ADVICE.get(kind.name) or _ADVICE.get({"g": "longdouble", "G": "clongdouble"}.get(kind.char, ""))
        raise DataError(f"values of type {kind} are not supported; {advice or 'use float64, float32, an integer type or bool'}")
    return kind


def cast_values(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values as a contiguous array of a supported dtype, without a copy where they are one already.

    Raises:
        DataError: the cast would lose imaginary parts.
    """
    if values.dtype == dtype and values.flags.c_contiguous and values.flags.aligned:
        return values
    if values.dtype == dtype:
        return light(values.size).copied(values).reshape(values.shape)
    if values.dtype.kind == "c" and dtype.kind != "c":
        raise DataError(f"cannot cast {values.dtype} to {dtype} without losing the imaginary part; take .real of the values first")
    cast = aligned_empty(values.size, dtype).reshape(values.shape)
    cast[...] = values
    return cast


def checked_fill(fill_value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value, as a Python scalar, that the dtype can hold.

    Raises:
        DataError: the dtype cannot hold it; int64, for example, cannot hold infinity.
    """
    try:
        with np.errstate(all="ignore"):
            held = np.asarray(fill_value).astype(dtype).item()
            same = bool(held == fill_value or (held != held and fill_value != fill_value))
    except Exception:  # whatever a foreign object does
        held, same = None, False
    if not same:
        raise DataError(f"fill value {shown(fill_value)} cannot be stored as {dtype}; use a float dtype, or another fill value")
    return held


def equals_fill(values: NDArray[Any], fill_value: Any) -> NDArray[np.bool_]:
    """Return where values equal the fill value; NaN equals a fill value of NaN."""
    return np.isnan(values) if fill_value != fill_value else values == fill_value
