"""Whether a target has the units of a program's loops."""

from __future__ import annotations

from collections.abc import Collection

from ..concrete.nodes import Forall, Program, walk
from ..errors import ScheduleError
from ..native.devices import require_gpu


def check_units(program: Program, target: str, units: Collection[str]) -> None:
    """Refuse a program with a loop on a unit that its target does not have.

    Args:
        program: a scheduled program.
        target: its name.
        units: those that it has.

    Raises:
        BuildError: the unit is one of GPUs, and this machine has none.
        ScheduleError: the target has no such unit.
    """
    for loop in walk(program.statement):
        if isinstance(loop, Forall) and loop.tag.unit is not None and loop.tag.unit not in units:
            wish = f"parallelize({loop.index}, {loop.tag.unit})"
            if loop.tag.is_on_gpu:
                require_gpu(wish)
            raise ScheduleError(f"{wish}: target {target} has no such unit; it has {', '.join(sorted(units)) or 'none'}")
