"""Workspaces that are arrays over the whole range of their indices: in memory (dense, positions) or in registers."""

from __future__ import annotations

from ..errors import ScheduleError
from ..frozen import frozen
from ..ir.arithmetic import ZERO
from ..ir.nodes import Allocate, Const, Fill, Step, Value
from .held import HeldWorkspace
from .levels import Storage, dense_levels
from .making import Making


@frozen
class DenseWorkspace(HeldWorkspace):
    """``length`` values over the whole range. Registers are made anew in every iteration of the loop around, memory only once."""

    kind = "dense"
    length: Value
    registers: bool

    def prepare(self, needs_zero: bool) -> list[Step]:
        if self.registers:
            plain = self.zero.value == 0
            made = Allocate(self.stored.values, self.stored.type, self.length, "registers", needs_zero and plain)
            return [made, Fill(self.stored.values, ZERO, self.length, self.zero)] if needs_zero and not plain else [made]
        return [Fill(self.stored.values, ZERO, self.length, self.zero)] if needs_zero else []


def make_array(making: Making) -> DenseWorkspace:
    """Return an array over all coordinates, or over positions."""
    array = making.array("", making.type, making.length)
    return DenseWorkspace(_over(making, array.array), making.zero, making.depth, (array,), making.length, registers=False)


def make_registers(making: Making) -> DenseWorkspace:
    """Return an array over all coordinates in registers. Raises ``ScheduleError``: its length is no compile-time constant."""
    if not isinstance(making.length, Const):
        raise ScheduleError(
            f"workspace({making.name}, registers): its size is not a compile-time constant; give extents or split its loops"
        )
    stored = _over(making, making.names.permanent(making.name))
    return DenseWorkspace(stored, making.zero, making.depth, (), making.length, registers=True)


def _over(making: Making, array: str) -> Storage:
    return Storage(making.name, dense_levels(making.indices, making.extents), array, making.type)
