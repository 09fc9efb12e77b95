"""Dense operands that a kernel reads from an aligned copy, which every call makes anew: the one place that decides which.

Kernels read arrays in C order. One that begins inside a cache line is copied where that gains more than it costs. There vectors that are
loaded from a row lie in two lines, and each load accesses the cache twice: a copy gains as often as the row is read. It costs one read and
one write of every line, whatever the kernel does.

A matrix with other strides is read where it is by a kernel that was compiled for rows apart, if the items of a row follow each other, as
in a slice, and a copy does not pay. All others are copied in any case.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..frozen import frozen
from ..lowering.kernel_spec import OperandSpec
from ..native.machine import this_machine
from ..numpy_later import np
from ..storage.aligned import ALIGNMENT
from ..storage.kernels import light
from ..storage.pooled import pooled_empty
from .operands import Operand

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINE_COST = 16
"""How many second accesses take as long as copying a cache line. SpMM with 8 to 128 columns takes as long with a copy as without one where
each row is read 10 (one thread) to 14 times (two threads)."""

LEAST_COST = 8192
"""How many second accesses take as long as asking for a copy."""

LEAST_APART = 1 << 15
"""Of fewer bytes a copy takes less than some microseconds, and compiling another kernel does not pay."""


@frozen
class CopyRule:
    """When a kernel reads a dense operand, stored by rows, from a copy.

    Attributes:
        row: bytes of a row.
        reads: how many rows the kernel reads in a call, again and again.
        cost: of a copy, in second accesses.
    """

    row: int
    reads: int
    cost: float

    def applies(self, array: NDArray[Any]) -> bool:
        """Whether an array is copied."""
        return not array.flags.c_contiguous or (self.reads > 0 and self.applies_at(array.__array_interface__["data"][0]))

    def applies_at(self, address: int) -> bool:
        """Whether an array in C order that begins at an address is copied."""
        return self.reads * second_accesses(address % ALIGNMENT, self.row, this_machine().vector_bytes) > self.cost

    def reads_in_place(self, array: NDArray[Any]) -> bool:
        """Whether a kernel for rows apart reads an array where it is."""
        if array.ndim != 2 or array.nbytes < LEAST_APART or array.flags.c_contiguous or not self.row:
            return False
        step, itemsize = array.strides
        begin = array.__array_interface__["data"][0]
        if itemsize != array.itemsize or step % itemsize or begin % itemsize:
            return False
        offset, width = begin % ALIGNMENT, this_machine().vector_bytes
        return self.reads * second_accesses(offset, self.row, width, abs(step) or ALIGNMENT) <= self.cost


ALWAYS_AS_GIVEN = CopyRule(0, 0, 0)
"""For operands that no kernel reads from a copy unless they are not in C order."""


def copy_rule(operand: Operand, operands: Mapping[str, Operand]) -> CopyRule:
    """Return when a kernel reads a dense operand from a copy.

    Args:
        operands: all operands of the kernel; the stored coordinates of sparse ones say how often rows of this one are read.
    """
    row = operand.shape[-1] * operand.values.itemsize if operand.shape else 0
    lines = math.prod(operand.shape[:-1]) * row / ALIGNMENT
    reads = _row_reads(operand.spec, operands)
    return CopyRule(row, reads if row else 0, LEAST_COST + LINE_COST * lines)


@lru_cache(1024)
def second_accesses(offset: int, row: int, width: int, step: int = 0) -> float:
    """Return how many of the loads of a row touch a second cache line, less those that do so in a copy, which begins with a line: the mean
    over all rows.

    Args:
        offset: bytes between the begin of a line and that of the array.
        row: bytes of a row, of which there is one at least.
        width: bytes of a vector.
        step: bytes from the begin of one row to that of the next; 0: the next row follows at once.
    """
    return _mean_split(offset, row, width, step or row) - _mean_split(0, row, width, row)


def _mean_split(offset: int, row: int, width: int, step: int) -> float:
    begins = range(offset, offset + math.lcm(step, ALIGNMENT), step)  # further rows begin where these do in their lines
    return sum(_split(begin, row, width) for begin in begins) / len(begins)


def _split(begin: int, row: int, width: int) -> int:
    whole, rest = divmod(row, ALIGNMENT)
    return whole * _crossings(begin, ALIGNMENT, width) + _crossings(begin, rest, width)


def _crossings(begin: int, count: int, width: int) -> int:
    end = begin + count
    return sum(at // ALIGNMENT < (min(at + width, end) - 1) // ALIGNMENT for at in range(begin, end, width))


def read_in_place(operands: Mapping[str, Operand]) -> frozenset[str]:
    """Return the keys of the matrices that a kernel for rows apart reads where they are."""
    return frozenset(
        key
        for key, operand in operands.items()
        if is_given(operand) and not operand.values.flags.c_contiguous and copy_rule(operand, operands).reads_in_place(operand.values)
    )


def row_step(matrix: NDArray[Any]) -> int:
    """Return how many items the rows of a matrix lie apart."""
    return matrix.strides[0] // matrix.itemsize


def read_copies(operands: Mapping[str, Operand], on_device: bool, stepped: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Return flat arrays for the copies that a kernel reads in place of ndarrays, by the keys of these operands.

    Args:
        on_device: the kernel reads a copy in the memory of a GPU in any case, and only the order of the array matters.
        stepped: the operands that it reads where they are, by key.
    """
    found: dict[str, NDArray[Any]] = {}
    for key, operand in operands.items():
        values = operand.values
        if not is_given(operand) or key in stepped:
            continue
        if not values.flags.c_contiguous or (not on_device and copy_rule(operand, operands).applies(values)):
            found[key] = pooled_empty(values.size, values.dtype)
    return found


def is_given(operand: Operand) -> bool:
    """Whether an operand is an ndarray that was neither converted nor made into a tensor."""
    return not operand.levels and type(operand.values) is np.ndarray


def copied(array: NDArray[Any]) -> NDArray[Any]:
    """Return a flat, aligned copy in C order, in memory that later calls reuse."""
    copy = pooled_empty(array.size, array.dtype)
    light(array.size).copy(array, copy)
    return copy


def _row_reads(wanted: OperandSpec, operands: Mapping[str, Operand]) -> int:
    """Return how many rows of an operand are read because a stored coordinate of another operand says so; 0 where rows are not read from
    begin to end, or no coordinate chooses them: these are read in order, most of them from the first cache."""
    *rows, last = wanted.indices or (None,)
    most = 0
    for operand in operands.values():
        spec = operand.spec
        indices = [spec.indices[mode] for mode in spec.format.order]
        stored = [level for level, kind in enumerate(spec.format.levels) if kind.stores_coordinates and indices[level] is not None]
        if last is None or any(indices[level] == last for level in stored):
            return 0
        choosing = [level for level in stored if indices[level] in rows]
        most = max(most, operand.lengths[choosing[-1]] if choosing else 0)
    return most
