"""A problem whose operands and extents are recorded, for the static model to choose for (``recording``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ..compiler.space.joins import Joins
from .extents import known_extents
from .facts import shape
from .joined import RecordedJoins
from .problem import Problem
from .recording import RecordedOperand, Recording, fixed


def recorded(problem: Problem, recording: Recording) -> Problem:
    """Return a problem that tells the same as another one and writes down what it tells.

    What follows from extents that are compiled in holds for these very extents only.

    Args:
        problem: without compound subscripts and given extents.
        recording: of which this is the beginning: that extents agree is part of it.
    """
    stand_ins: Any = {name: RecordedOperand(recording, name, tensor) for name, tensor in problem.operands.items()}
    extents = known_extents(problem.written, {name: shape(operand) for name, operand in stand_ins.items()}, {})
    found = replace(problem, operands=stand_ins, known=extents, extents=extents)
    constants = {index: fixed(extent) for index, extent in found.constants.items()}
    found.__dict__.update(constants=constants, joins=cast("Joins", RecordedJoins(problem.joins, extents, recording)))
    return found

