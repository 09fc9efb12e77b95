"""Hands the memory of operands to a kernel in later calls; the first call has found out what kinds of operands they are.

In every call, each kind of operand checks all that its owner may have changed since: types, shapes, layouts, and the contents of index
arrays that do not belong to this package. If anything has changed, ``place`` returns false, and the call is prepared from the beginning,
which also finds out what is wrong.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ..format import Format
from ..frozen import frozen
from ..numpy_later import np
from ..storage.kernels import active
from ..storage.level_arrays import LevelArrays
from ..storage.native_kernels import NativeKernels
from ..storage.sealed import pin
from ..storage.tensor import Tensor
from ..targets.c import interface
from .copies import CopyRule, copied
from .operands import Operand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .kernel import TypedKernel

Slots = dict[tuple[str, int | None], list[int]]
"""The kernel's slots for the arrays of an operand, by part and level (None: values)."""


class Input(Protocol):
    """An operand of a call that may be made again."""

    def place(self, data: Any, pointers: Any, kept: list[Any]) -> bool:
        """Put the addresses of an operand's memory into the kernel's slots, and what holds the memory into ``kept``.

        Returns:
            Whether the operand is like the one before. If not, the slots hold nothing of use, and the call is prepared from the beginning.
        """
        ...


@frozen(eq=False)
class DenseInput:
    """An ndarray that the kernel reads as it is, or from a copy.

    Attributes:
        leaves: whether another kernel reads matrices whose rows lie apart where they are.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slots: list[int]
    rule: CopyRule
    leaves: bool
    address: Callable[[Any], Any]
    cast: Callable[[str, Any], Any]

    def place(self, data: Any, pointers: Any, kept: list[Any]) -> bool:
        if type(data) is not np.ndarray or data.shape != self.shape or data.dtype != self.dtype:
            return False
        try:
            memory = self.address(data)
        except ValueError:  # cffi raises it for an array that is not in C order
            memory = None
            if self.leaves and self.rule.reads_in_place(data):
                return False
        rule = self.rule
        if memory is None or (rule.reads and rule.applies_at(int(self.cast("uintptr_t", memory)))):
            data = copied(data)
            memory = self.address(data)
        for slot in self.slots:
            pointers[slot] = memory
        kept += memory, pin(data)
        return True


@frozen(eq=False)
class SteppedInput:
    """A matrix with the same strides, whose rows lie apart in memory, and which the kernel reads where it is."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slots: list[int]
    strides: tuple[int, ...]
    cast: Callable[[str, Any], Any]

    def place(self, data: Any, pointers: Any, kept: list[Any]) -> bool:
        if type(data) is not np.ndarray or data.shape != self.shape or data.dtype != self.dtype or data.strides != self.strides:
            return False
        memory = self.cast("void *", data.__array_interface__["data"][0])
        for slot in self.slots:
            pointers[slot] = memory
        kept.append(pin(data))
        return True


@frozen(eq=False)
class NumberInput:
    """A Python number, which is written into memory of our own."""

    type: type
    cell: NDArray[Any]

    def place(self, data: Any, pointers: Any, kept: list[Any]) -> bool:
        if type(data) is not self.type:
            return False
        self.cell[0] = data
        return True


@frozen(eq=False)
class StoredInput:
    """A ``Tensor`` with the same index arrays, which cannot change. If it is the same ``Tensor``, its values have not moved either.

    Attributes:
        levels: weak references to the levels with index arrays.
        count: how many values there are.
        latest: a list with one item, the tensor whose values the kernel's slots point to.
    """

    shape: tuple[int, ...]
    format: Format
    levels: tuple[weakref.ref[LevelArrays], ...]
    fill_value: Any
    dtype: np.dtype[Any]
    count: int
    slots: list[int]
    address: Callable[[Any], Any]
    latest: list[weakref.ref[Tensor]]

    def place(self, data: Any, pointers: Any, kept: list[Any]) -> bool:
        if self.latest[0]() is data:
            return data.intact.values.dtype == self.dtype
        if type(data) is not Tensor or data.shape != self.shape:
            return False
        own = [level for level in data.levels if level.parts]
        if own != [found() for found in self.levels] or data.fill_value != self.fill_value or data.format != self.format:
            return False
        values = data.intact.values
        if values.dtype != self.dtype or values.size != self.count or not values.flags.c_contiguous:
            return False
        memory = self.address(values)
        for slot in self.slots:
            pointers[slot] = memory
        kept.append(pin(values))
        self.latest[0] = weakref.ref(data)
        return True


@frozen(eq=False)
class RowsInput:
    """Compressed rows or columns of SciPy: every call checks all their positions and coordinates.

    Attributes:
        segments, stored, extent: how many rows and entries there are, and the extent of the mode whose coordinates are stored.
        dtypes: of the arrays ``indptr``, ``indices`` and ``data``.
        slots: where the kernel wants these arrays.
        check: the native check of segments.
    """

    type: type
    shape: tuple[int, int]
    segments: int
    stored: int
    extent: int
    dtypes: tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]]
    slots: tuple[tuple[int, int], ...]
    check: Callable[[Any, bool, Any, bool, int, int, int], int]
    address: Callable[[Any], Any]

    def place(self, data: Any, pointers: Any, kept: list[Any]) -> bool:
        if type(data) is not self.type or data.shape != self.shape:
            return False
        arrays = pos, crd, values = data.indptr, data.indices, data.data
        if not (type(pos) is type(crd) is type(values) is np.ndarray) or (pos.dtype, crd.dtype, values.dtype) != self.dtypes:
            return False
        if len(pos) != self.segments + 1 or not pos.ndim == crd.ndim == values.ndim == 1 or pos.item(-1) != self.stored:
            return False
        if not len(crd) == len(values) == self.stored:
            return False
        try:
            memory = list(map(self.address, arrays))
        except ValueError:
            return False
        for slot, number in self.slots:
            pointers[slot] = memory[number]
        kept += memory
        kept += map(pin, arrays)
        return not self.check(memory[0], pos.itemsize == 8, memory[1], crd.itemsize == 8, self.segments, self.stored, self.extent)


def make_input(data: Any, operands: list[Operand], slots: Slots, rule: CopyRule, kernel: TypedKernel) -> Input | None:
    """Return how an operand is handed over in later calls; None if the kernel reads it converted.

    Args:
        data: as the caller gave it.
        operands: as the kernel reads it; several if the kernel reads it in several formats.
        rule: when the kernel reads a copy of an ndarray.
        kernel: which reads them.
    """
    address = interface().from_buffer
    if type(data) is float:
        cell = operands[0].values
        return NumberInput(float, cell) if cell.dtype == np.float64 and len(operands) == 1 else None
    own = _own_arrays(data)
    if not own or any(not _same(own.get((part, level)), operand.part(part, level)) for operand in operands for part, level in slots):
        return None
    if isinstance(data, Tensor):
        levels = tuple(weakref.ref(level) for level in data.levels if level.parts)
        places, count = slots.get(("values", None), []), data.values.size
        latest = [weakref.ref(data)]
        return StoredInput(data.shape, data.format, levels, data.fill_value, data.dtype, count, places, address, latest)
    if type(data) is np.ndarray:
        places, cast = slots.get(("values", None), []), interface().cast
        if any(operand.spec.key in kernel.stepped for operand in operands):
            return SteppedInput(data.shape, data.dtype, places, data.strides, cast) if len(operands) == 1 else None
        leaves = kernel.apart is not None and not rule.reads_in_place(data)
        return DenseInput(data.shape, data.dtype, places, rule, leaves, address, cast)
    native = active()
    if not isinstance(native, NativeKernels):
        return None
    parts = ("pos", 1), ("crd", 1), ("values", None)
    pos, crd, values = (own[part] for part in parts)
    if len(crd) != len(values) or pos.item(-1) != len(crd):  # entries behind the last row were left out
        return None
    places = tuple((slot, number) for number, part in enumerate(parts) for slot in slots.get(part, ()))
    extent = data.shape[1 if data.format == "csr" else 0]
    dtypes = pos.dtype, crd.dtype, values.dtype
    return RowsInput(type(data), data.shape, len(pos) - 1, len(crd), extent, dtypes, places, native.check_segments_at, address)


def _own_arrays(data: Any) -> dict[tuple[str, int | None], NDArray[Any]]:
    """Return the arrays of an operand as its owner holds them; empty for kinds that are prepared anew in every call."""
    if isinstance(data, Tensor):
        levels = {(part, level): array for level, arrays in enumerate(data.levels) for part, array in arrays.parts.items()}
        return {**levels, ("values", None): data.values}
    if type(data) is np.ndarray:
        return {("values", None): data}
    if type(data).__module__.partition(".")[0] == "scipy" and getattr(data, "format", "") in ("csr", "csc") and data.ndim == 2:
        return {("pos", 1): data.indptr, ("crd", 1): data.indices, ("values", None): data.data}
    return {}


def _same(left: NDArray[Any] | None, right: NDArray[Any] | None) -> bool:
    """Return whether two arrays are the same memory."""
    return left is right or (left is not None and right is not None and left.size == right.size and left.ctypes.data == right.ctypes.data)
