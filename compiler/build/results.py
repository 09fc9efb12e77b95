"""What a kernel gives back: memory for dense results, tensors around arrays that the kernel assembled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import DataError, ShapeError
from ..frozen import frozen
from ..lowering.kernel_spec import ResultSpec
from ..numpy_later import np
from ..storage import aligned
from ..storage.convert import convert
from ..storage.entries import Entries
from ..storage.pack import pack
from ..storage.pooled import pooled_empty
from ..storage.sealed import sealed
from ..storage.tensor import LevelArrays, Tensor
from .operands import Operand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..targets.target import Launch


@frozen
class Assembled:
    """Where a kernel leaves one array of an assembled result: slots of its pointer and length, and what it is."""

    pointer: int
    length: int
    part: str
    level: int | None
    dtype: np.dtype[Any]


def published(launch: Launch, parts: Sequence[Assembled]) -> dict[tuple[str, int | None], NDArray[Any]]:
    """Take over the arrays that the last run left in the kernel's slots, by part and level."""
    return {(array.part, array.level): launch.published(array.pointer, array.length, array.dtype) for array in parts}


def dense_result(
    spec: ResultSpec, extents: Mapping[str, int], out: Any, operands: Mapping[str, Operand]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a dense result's array in mode order and its flat storage, allocated (64-byte aligned) or over ``out``.

    Raises:
        DataError: ``out`` cannot take the result.
        ShapeError: ``out`` has another shape.
    """
    shape = tuple(extents[index] for index in spec.indices)
    order = spec.format.order
    dtype = np.dtype(spec.dtype)
    if out is not None:
        return out, _checked_out(out, shape, order, dtype, operands)
    flat = pooled_empty(math.prod(shape), dtype)
    if len(shape) < 2:
        return flat.reshape(shape), flat
    stored_shape = tuple(shape[mode] for mode in order)
    return flat.reshape(stored_shape).transpose([order.index(mode) for mode in range(len(order))]), flat


def _checked_out(
    out: Any, shape: tuple[int, ...], order: tuple[int, ...], dtype: np.dtype[Any], operands: Mapping[str, Operand]
) -> NDArray[Any]:
    if not isinstance(out, np.ndarray):
        raise DataError(f"out is an ndarray that is filled with the result, not {type(out).__name__}")
    if out.shape != shape:
        raise ShapeError(f"out has shape {out.shape}, but the result has shape {shape}")
    if out.dtype != dtype:
        raise DataError(f"out has dtype {out.dtype}, but the result has dtype {dtype}")
    stored = out.transpose(order)
    if not stored.flags.c_contiguous or not out.flags.writeable:
        fault = "is read-only" if not out.flags.writeable else "is not contiguous in the order of the result's format"
        raise DataError(f"out {fault}; give another array, or none")
    for operand in operands.values():
        arrays = [operand.values, *(array for level in operand.levels for array in level.parts.values())]
        if any(np.may_share_memory(out, array) for array in arrays):
            raise DataError(f"out shares memory with operand '{operand.spec.tensor}'; give another array, or none")
    return stored.reshape(-1)


def assembled_result(
    spec: ResultSpec, extents: Mapping[str, int], arrays: Mapping[tuple[str, int | None], NDArray[Any]], fill_value: Any
) -> Tensor:
    """Return the tensor around assembled arrays, given by part and level."""
    shape = tuple(extents[index] for index in spec.indices)
    levels = tuple(
        LevelArrays(**{part: sealed(_narrowed(part, array)) for (part, place), array in arrays.items() if place == level})
        for level in range(len(spec.format))
    )
    return Tensor.made(shape, spec.format, levels, arrays["values", None], fill_value)


def _narrowed(part: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return positions in 32 bits where they fit, as everything else that reads the tensor expects them; other arrays as they are."""
    if part != "pos" or (array.size and array[-1] > aligned.INDEX_LIMIT):
        return array
    return array.astype(np.int32)


def fill_of(spec: ResultSpec) -> Any:
    """Return the fill value as the result's dtype holds it."""
    return np.dtype(spec.dtype).type(spec.fill_value).item()


def requested_form(spec: ResultSpec, made: Tensor) -> Any:
    """Return a made result in the format that was asked for; an ndarray where that is dense."""
    converted = convert(made, spec.requested, drop_padding=False)  # zeros in dense levels may be computed values: all are entries
    return converted.to_numpy() if spec.requested.is_dense else converted


def empty_result(spec: ResultSpec, extents: Mapping[str, int], fill_value: Any) -> Tensor:
    """Return a sparse result that stores nothing."""
    shape = tuple(extents[index] for index in spec.indices)
    columns = tuple(np.empty(0, np.int32) for _ in shape)
    return pack(Entries(shape, columns, np.empty(0, spec.dtype)), spec.format, fill_value)


def shared_levels(spec: ResultSpec, pattern: Operand, shape: tuple[int, ...]) -> tuple[tuple[LevelArrays, ...], int]:
    """Return the levels of a result that has the pattern of an operand, and how many values it holds.

    The operand's first levels are the result's too; dense levels over indices of its own may follow.
    """
    depth = 1 + max(level for level, kind in enumerate(spec.format.levels) if kind.stores_coordinates)
    levels = [level.owned() for level in pattern.levels[:depth]]
    length = pattern.lengths[depth - 1]
    for level in range(depth, len(spec.format)):
        levels.append(LevelArrays())
        length *= shape[spec.format.order[level]]
    return tuple(levels), length
