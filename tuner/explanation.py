"""An exploration as plain values, with a verdict on a given program if there is one: what ``tune-kernel explain --json`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from ..compiler.concrete.nodes import Program
from ..compiler.errors import ExpressionError
from ..compiler.schedule.schedule import Schedule
from .exploration import Exploration, FrontierSchedule
from .forests.exploration import ForestExploration, FrontierForest


def described(
    found: Exploration | ForestExploration, schedule: str | Schedule | Program | None = None, limit: int | None = None
) -> dict[str, Any]:
    """Return what ``tune-kernel explain --json`` prints.

    Args:
        found: what ``explore`` gave.
        schedule: a program to be judged too: concrete index notation with or without protocols, or directives; empty text
            is the default schedule.
        limit: list at most so many schedules of the frontier, one of every cost first; None: all.

    Returns:
        ``expression``, ``stages``, ``frontier`` (each ``schedule``, ``loop_nest``, ``time``, ``memory``, ``task_set``,
        ``loop_depth``, ``memory_depth``), and, if a schedule is given, ``schedule`` (``loop_nest``: with the cost of every line;
        ``verdict``: who beats it and why).

    Raises:
        ExpressionError: an exploration of forests is to judge a program that is no text of directives.
    """
    shown: Sequence[FrontierSchedule | FrontierForest] = found.frontier if limit is None else _spread(found, limit)
    answer: dict[str, Any] = {
        "expression": found.expression,
        "stages": found.stages,
        "frontier": [
            {
                "schedule": str(one.schedule),
                "loop_nest": one.loop_nest,
                "time": one.time,
                "memory": one.memory,
                "task_set": one.task_set,
                "loop_depth": one.loop_depth,
                "memory_depth": one.memory_depth,
            }
            for one in shown
        ],
    }
    if schedule is not None:
        answer["schedule"] = _judged(found, schedule)
    return answer


def _judged(found: Exploration | ForestExploration, schedule: str | Schedule | Program) -> dict[str, str]:
    if isinstance(found, Exploration):
        return {"loop_nest": found.annotated(schedule), "verdict": found.why(schedule)}
    if isinstance(schedule, Program):
        raise ExpressionError("presets of forests judge directives; give the schedule as such a text")
    return {"loop_nest": found.annotated(schedule), "verdict": found.why(schedule)}


def _spread(found: Exploration | ForestExploration, limit: int) -> Sequence[FrontierSchedule | FrontierForest]:
    """Return some schedules of the frontier: the first of every cost, then the others in order."""
    if isinstance(found, ForestExploration):
        return found.frontier.spread(limit)
    others = ((member, one) for one in found.classes for member in islice(one.schedules, 1, None))
    chosen = chain(((one.first, one) for one in found.classes), others)
    return [FrontierSchedule(member, one, found.model, found.space) for member, one in islice(chosen, limit)]
