"""Checks the operands that a caller gives against what a kernel expects, and brings them into the formats that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from ..concrete.bounds import broken_bound
from ..errors import DataError, ShapeError
from ..format import dense_format
from ..frozen import frozen
from ..ir.nodes import Type
from ..levels import LevelKind
from ..lowering.kernel_spec import KernelSpec, OperandSpec
from ..numpy_later import np
from ..storage.construct import borrowed, tensor
from ..storage.convert import convert
from ..storage.on_device import DeviceTensor
from ..storage.sealed import sealed
from ..storage.tensor import LevelArrays, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


@frozen
class Operand:
    """One operand as the kernel reads it, but for copies that each call makes (``build.copies``).

    Attributes:
        values: flat; those of an ndarray that is not in C order as they are.
    """

    spec: OperandSpec
    shape: tuple[int, ...]
    levels: tuple[LevelArrays, ...]
    values: NDArray[Any]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Number of positions of each level."""
        found, positions = [], 1
        for level, kind in enumerate(self.spec.format.levels):
            parts = self.levels[level].parts if self.levels else {}
            positions = kind.positions(parts, positions, self.shape[self.spec.format.order[level]])
            found.append(positions)
        return tuple(found)

    def array(self, part: str, level: int | None) -> NDArray[Any]:
        """Return the values, or an array of a level by its name."""
        found = self.part(part, level)
        if found is None:
            raise AssertionError(f"level {level} of {self.spec.key} has no {part}")
        return found

    def part(self, part: str, level: int | None) -> NDArray[Any] | None:
        """Return what ``array`` does; None where there is none, as in another format."""
        return self.values if level is None else self.levels[level].parts.get(part) if level < len(self.levels) else None


@frozen
class Expected:
    """What a kernel expects of one operand, with the facts that every call checks computed beforehand.

    Attributes:
        fill_value: the value of entries that are not stored.
        plain: whether the format is dense and row-major.
    """

    spec: OperandSpec
    dtype: np.dtype[Any]
    fill_value: Any
    order: int
    plain: bool

    @classmethod
    def of(cls, spec: OperandSpec, fill_value: Any) -> Expected:
        """Return what is expected of an operand with this specification; ``fill_value`` is the value of entries that are not stored."""
        order = len(spec.format)
        return cls(spec, np.dtype(spec.dtype), fill_value, order, spec.format == dense_format(order))


def prepare(expected: Expected, data: Any, once: bool = False, unit: int | float | bool = 1) -> Operand:
    """Bring one operand into the kernel's format and dtype, without a copy where its layout allows.

    Args:
        once: the kernel runs once, right away, so that index arrays of other libraries are checked, but not copied.
        unit: the value of the single entry of a ``point`` operand, which the compiler adds and nobody gives.

    Raises:
        ShapeError: it has another number of modes than the expression says.
        DataError: its values do not fit the kernel's dtype, or its fill value is not the kernel's.
        FormatError: it cannot be stored in the format.
    """
    spec, dtype = expected.spec, expected.dtype
    if spec.point:
        return Operand(spec, (1,), (LevelArrays(),), np.array([unit], dtype))
    if expected.plain and type(data) is np.ndarray and data.dtype == dtype and (once or data.flags.c_contiguous):
        _check_order(spec, data.ndim)
        return Operand(spec, data.shape, (), data.reshape(-1) if data.ndim != 1 and data.flags.c_contiguous else data)
    if type(data) is DeviceTensor:
        return _there(expected, data)
    if isinstance(data, Tensor):
        _check_order(spec, data.order)
        _check_fill(spec, data, expected.fill_value)
        stored = data if data.format == spec.format and data.dtype == dtype else _converted(spec, data, dtype, expected.fill_value)
    else:
        stored = _converted(spec, data, dtype, expected.fill_value, once)
    return Operand(spec, stored.intact.shape, stored.levels if expected.plain else _with_widths(spec, stored), stored.values)


def _there(expected: Expected, data: DeviceTensor) -> Operand:
    """Take an operand in the memory of a GPU as it is; nothing is converted there."""
    spec = expected.spec
    _check_order(spec, data.order)
    if data.format != spec.format or data.dtype != expected.dtype:
        raise DataError(
            f"operand '{spec.tensor}' is on a GPU as {data.format} of {data.dtype}, and the kernel reads {spec.format} of {expected.dtype};"
            " nothing is converted there"
        )
    for kind, arrays, bits in zip(spec.format.levels, data.levels, spec.widths, strict=False):
        if any(8 * array.itemsize != bits for array in _indices(kind, arrays).values()):
            raise DataError(f"operand '{spec.tensor}' has index arrays on a GPU that are not of {bits} bits; nothing is converted there")
    return Operand(spec, data.shape, data.levels, data.values)  # type: ignore[arg-type]  # kernels read it on the device


def _converted(spec: OperandSpec, data: Any, dtype: np.dtype[Any], fill_value: Any, once: bool = False) -> Tensor:
    order = getattr(data, "ndim", None)
    if isinstance(order, int):
        _check_order(spec, order)
    try:
        found = borrowed(data) if once else tensor(data)
    except DataError as error:
        raise DataError(f"operand '{spec.tensor}': {error}") from None
    _check_order(spec, found.order)
    _check_fill(spec, found, fill_value)
    if not np.can_cast(found.dtype, dtype, "same_kind"):
        values = f"values of type {found.dtype}"
        raise DataError(f"operand '{spec.tensor}' has {values}, but the kernel was compiled for {dtype}; convert it first")
    if found.format == spec.format:
        return found.astype(dtype)
    if found.format.is_dense and not spec.format.is_dense:
        return tensor(found.to_numpy(), spec.format, dtype=dtype, fill_value=fill_value)
    if found.fill_value != fill_value:
        found = Tensor.made(found.shape, found.format, found.levels, found.values.astype(dtype), fill_value)
    as_expected = found.format == spec.given  # then what dense levels pad is an entry like any other, whatever the loop order
    return convert(found, spec.format, drop_padding=not as_expected).astype(dtype)


def check_order(name: str, order: int, expected: int) -> None:
    """Raise ``ShapeError`` where an operand has another number of modes than the expression indexes."""
    if order != expected:
        raise ShapeError(f"operand '{name}' has {order} modes, but the expression indexes {expected} of them")


def _check_order(spec: OperandSpec, order: int) -> None:
    check_order(spec.tensor, order, len(spec.format))


def _check_fill(spec: OperandSpec, data: Tensor, fill_value: Any) -> None:
    """Refuse a fill value that the kernel would silently take for another one.

    A fill value of 0 is accepted with every semiring: data without a notion of fill values have it too, and entries that are not stored
    are skipped.
    """
    if data.fill_value != 0 and data.fill_value != fill_value and not data.format.is_dense:
        raise DataError(
            f"operand '{spec.tensor}' has fill value {data.fill_value}, but the kernel takes what is not stored for {fill_value}; "
            "convert it, or use the semiring that it was made with"
        )


def _with_widths(spec: OperandSpec, stored: Tensor) -> tuple[LevelArrays, ...]:
    """Return the levels with positions and coordinates of the widths that the kernel reads."""
    levels, kinds = stored.levels, spec.format.levels
    for kind, arrays, bits in zip(kinds, levels, spec.widths, strict=True):
        if any(8 * array.itemsize != bits for array in _indices(kind, arrays).values()):
            return tuple(_cast(spec, *level) for level in zip(kinds, levels, spec.widths, strict=True))
    return levels


def _cast(spec: OperandSpec, kind: LevelKind, arrays: LevelArrays, bits: int) -> LevelArrays:
    wanted = np.dtype(f"int{bits}")
    indices = _indices(kind, arrays)
    for array in indices.values():
        if array.size and int(array.max()) > np.iinfo(wanted).max:
            raise DataError(f"operand '{spec.tensor}' is too large for 32-bit index arrays; compile the kernel for this operand")
    cast = {part: sealed(array.astype(wanted)) for part, array in indices.items() if array.dtype != wanted}
    return arrays.having(**cast) if cast else arrays


@cache
def _index_parts(kind: LevelKind) -> tuple[str, ...]:
    """Return the names of the arrays of positions and coordinates, whose integer width is chosen per level."""
    width = Type("index")
    return tuple(part for part, own in kind.types(width).items() if own == width)


def _indices(kind: LevelKind, arrays: LevelArrays) -> dict[str, NDArray[Any]]:
    return {part: arrays.parts[part] for part in _index_parts(kind)}


def find_extents(spec: KernelSpec, operands: Mapping[str, Operand], given: Mapping[str, int]) -> dict[str, int]:
    """Return the extent of every index, from the operands, the caller, and what the kernel was compiled for.

    Raises:
        ShapeError: two of them disagree, an index has no extent, or a bound of the schedule does not hold.
    """
    extents: dict[str, int] = {}
    origins: dict[str, str] = {}
    for wanted in spec.operands:
        for mode, index in enumerate(wanted.indices):
            if index is not None:
                _agree(extents, origins, index, operands[wanted.key].shape[mode], f"mode {mode} of operand '{wanted.tensor}' has")
    for index, extent in spec.extents:
        _agree(extents, origins, index, extent, "the kernel was compiled for")
    for index, extent in given.items():
        _agree(extents, origins, index, int(extent), "the given shape says")
    if spec.ranges is not None:
        extents = spec.ranges.complete(extents, {wanted.tensor: operands[wanted.key].shape for wanted in spec.operands})
    for index in (index for result in spec.results for index in result.indices):
        if index not in extents:
            advice = f"give its extent: shape={{'{index}': ...}}"
            raise ShapeError(f"no operand of '{spec.expression}' says how far index '{index}' goes; {advice}")
    broken = broken_bound(spec.relations, extents)
    if broken:
        raise ShapeError(f"the schedule of '{spec.expression}' says bound, and {broken}")
    return extents


def _agree(extents: dict[str, int], origins: dict[str, str], index: str, extent: int, origin: str) -> None:
    known = extents.setdefault(index, extent)
    if known != extent:
        raise ShapeError(f"index '{index}' has two extents: {origins[index]} {known}, but {origin} {extent}")
    origins.setdefault(index, origin)
