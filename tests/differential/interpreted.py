"""Runs a bound kernel in the interpreter of the loop IR instead of as C, and counts what it does."""

from __future__ import annotations

from typing import Any

import numpy as np
from sparsetune.compiler.build.bound import BoundKernel
from sparsetune.compiler.build.results import assembled_result, requested_form
from sparsetune.compiler.ir.evaluate import Counts
from sparsetune.compiler.ir.interpret import interpret


def interpreted(bound: BoundKernel, races: bool = False) -> tuple[Any, Counts]:
    """Return the result as the bound kernel itself would, and the counted operations.

    Args:
        races: whether the schedule says to ignore them; else two iterations of a parallel loop that meet are an error.
    """
    kernel, spec = bound.kernel, bound.kernel.spec
    if spec.result.copies:  # the result is converted from the operand's arrays, and nothing is run
        return bound.once(), Counts()
    arrays, sizes = bound.arguments()
    fresh = [parameter.name for parameter in spec.function.arrays if parameter.writable and not parameter.assembled]
    with np.errstate(all="ignore"):
        outcome = interpret(spec.function, arrays, sizes, fresh, races=races)
    if kernel.assembled:
        names = {(parameter.source[1], *parameter.source[2:]): parameter.name for parameter in spec.function.arrays if parameter.assembled}
        found: dict[Any, Any] = {
            (array.part, array.level): outcome.published[names[(array.part,) if array.level is None else (array.part, array.level)]]
            for array in kernel.assembled
        }
        extents = dict(bound.extents)
        return requested_form(spec.result, assembled_result(spec.result, extents, found, kernel.fill)), outcome.counts
    if bound._is_scalar:
        assert bound._flat is not None
        return bound._flat[0], outcome.counts
    return requested_form(spec.result, bound._result) if bound._converts else bound._result, outcome.counts
