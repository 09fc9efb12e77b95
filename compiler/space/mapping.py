"""The default mapping of a program to a GPU: the iterations of the outermost loop go to threads."""

from __future__ import annotations

from collections.abc import Mapping

from ..concrete.nodes import Forall, Program
from ..errors import ScheduleError
from ..format import Format
from ..schedule.apply import apply_schedule
from ..schedule.schedule import Schedule


def default_mapping(program: Program, result: str, formats: Mapping[str, Format], extents: Mapping[str, int]) -> Schedule:
    """Return the first schedule that is legal: rows to threads; the same with atomics; one thread, where iterations depend on others.

    A sparse result without the pattern of an operand is counted, then filled: a GPU gives no memory to kernels that run.

    Args:
        program: a default program.
        result: what it computes.
        formats: of its operands and its result.
        extents: compile-time constants, by index.
    """
    insert = [] if formats[result].is_dense else [f"assemble({result}, insert)"]
    wishes = [[]]
    if isinstance(program.statement, Forall):
        loop = program.statement.index
        wishes = [[f"parallelize({loop}, gpu_thread, {race})"] for race in ("no_races", "atomics")] + wishes
    for wish in [[*wish, *more] for wish in wishes for more in ([], insert)[: 1 + bool(insert)]]:
        schedule = Schedule("; ".join(wish))
        try:
            apply_schedule(program, schedule, formats, extents)
        except ScheduleError:
            continue
        if wish or not insert:
            return schedule
    return Schedule("; ".join(insert))
