"""Scalar workspaces: a local variable, with a flag that says whether anything was added, if a sparse result needs it."""

from __future__ import annotations

from ..frozen import frozen
from ..ir.arithmetic import FALSE, TRUE
from ..ir.names import Names
from ..ir.nodes import BOOL, Declare, SetVar, Step, Value, Var
from .held import HeldWorkspace
from .levels import Storage
from .making import Making


@frozen
class ScalarWorkspace(HeldWorkspace):
    """A local variable. ``flag`` tells whether anything was added; it is None if nobody asks."""

    kind = "scalar"
    value: Var
    flag: Var | None = None

    @property
    def keeps_entries(self) -> bool:
        return self.flag is not None

    def prepare(self, needs_zero: bool) -> list[Step]:
        steps: list[Step] = [Declare(self.value, self.zero)]
        return steps if self.flag is None else [*steps, Declare(self.flag, FALSE)]

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        return [SetVar(self.value, value, op), *self.mark(position, names)]

    def mark(self, position: Value, names: Names) -> list[Step]:
        return [] if self.flag is None else [SetVar(self.flag, TRUE)]


def make_scalar(making: Making) -> ScalarWorkspace:
    """Return a single value: a workspace without indices."""
    value = Var(making.names.local(making.name), making.type)
    flag = Var(making.names.local(f"{making.name}_set"), BOOL) if making.asked else None
    return ScalarWorkspace(Storage(making.name, (), "", making.type), making.zero, making.depth, (), value, flag)
