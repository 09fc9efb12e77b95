"""The default mapping of a program to a GPU: the iterations of the outermost loop go to threads."""

from __future__ import annotations

from collections.abc import Mapping

from ..concrete.nodes import Forall, Program
from ..errors import ScheduleError
from ..format import Format
from ..schedule.apply import apply_schedule
from ..schedule.schedule import Schedule

REGISTERS = 48
"""Registers of a thread that goes through a row: SpMV on a GPU is up to four times as fast with so many."""


def default_mapping(program: Program, result: str, formats: Mapping[str, Format], extents: Mapping[str, int]) -> Schedule:
    """Return the first schedule that is legal: rows to threads; the same with atomics; one thread, where iterations depend on others.

    A sparse result without the pattern of an operand is counted, then filled: a GPU gives no memory to kernels that run. Other
    threads get registers for loads at the same time; the compiler would save these registers by itself.

    Args:
        program: a default program.
        result: what it computes.
        formats: of its operands and its result.
        extents: compile-time constants, by index.
    """
    insert = [] if formats[result].is_dense else [f"assemble({result}, insert)"]
    races = ("no_races", "atomics", None) if isinstance(program.statement, Forall) else (None,)
    for race in races:
        for filled in ([], insert)[: 1 + bool(insert)]:
            schedule = Schedule("; ".join([*_threads(program, race, not filled), *filled]))
            try:
                apply_schedule(program, schedule, formats, extents)
            except ScheduleError:
                continue
            if race is not None or not insert:
                return schedule
    return Schedule("; ".join(insert))


def _threads(program: Program, race: str | None, several: bool) -> list[str]:
    """Return the outermost loop given to threads; none without a way to deal with races. ``several``: they load several entries at once."""
    if race is None or not isinstance(program.statement, Forall):
        return []
    return [f"parallelize({program.statement.index}, gpu_thread, {race}{f', registers, {REGISTERS}' if several else ''})"]
