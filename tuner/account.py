"""What reports show of a campaign beside its times: the user's own names, the stages of pruning, and the work of a run.

Records are in canonical names, so that equal kernels meet. A report speaks to the person who tuned, so a decision carries, in its
environment, the names it was asked in. ``Account.of`` reads them back; older records have none and are shown in canonical names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Self

from ..compiler.concrete.concretize import concretize
from ..compiler.concrete.nodes import Program
from ..compiler.frozen import frozen
from ..compiler.schedule.apply import apply_schedule
from ..compiler.schedule.schedule import Schedule
from .costs import scalar_operations
from .problem import Problem
from .records import Decision

FIELD = "account"
"""Key of a decision's environment under which the account is stored."""


@frozen
class Account:
    """A campaign in the user's words.

    Attributes:
        expression: as it was given; the canonical one where that is not known.
        names: the user's names by the canonical ones, of tensors and indices.
        stages: of static pruning, each with "stage", "kept" and "seconds".
        operations, default_operations: scalar operations of a run of the winner and of the default schedule, as the static model
            counts them; None where not known.
        bytes: of all operands and of a dense result, each once: what a run has to move at least; None where not known.
    """

    expression: str
    names: Mapping[str, str]
    stages: Sequence[Mapping[str, Any]]
    operations: float | None = None
    default_operations: float | None = None
    bytes: float | None = None

    @classmethod
    def of(cls, decision: Decision) -> Self:
        """Return the account that a decision carries, or what is known of a decision that carries none."""
        found = decision.environment.get(FIELD)
        if not isinstance(found, Mapping) or not isinstance(found.get("expression"), str):
            return cls(decision.workload.kernel, {}, ())
        stages = [stage for stage in found.get("stages") or () if isinstance(stage, Mapping) and {"stage", "kept"} <= set(stage)]
        numbers = {name: found[name] for name in ("operations", "default_operations", "bytes") if isinstance(found.get(name), (int, float))}
        return cls(found["expression"], dict(found.get("names") or {}), stages, **numbers)

    def as_dict(self) -> dict[str, Any]:
        """Return what a decision's environment holds."""
        return {
            "expression": self.expression, "names": dict(self.names), "stages": [dict(stage) for stage in self.stages],
            "operations": self.operations, "default_operations": self.default_operations, "bytes": self.bytes,
        }  # fmt: skip

    def schedule(self, canonical: str) -> str:
        """Return the text of a schedule in the user's names."""
        return str(Schedule(canonical).rename(self.names)) if self.names else canonical


def account_of(problem: Problem, stages: Sequence[Mapping[str, Any]], winner: Schedule) -> Account:
    """Return the account of a campaign that chose ``winner``."""
    names = {canonical: name for name, canonical in problem.names}
    return Account(
        problem.expression, names, stages, run_operations(problem, winner), run_operations(problem, Schedule()), least_bytes(problem)
    )


def run_operations(problem: Problem, schedule: Schedule) -> float | None:
    """Return the scalar operations of a run, a fused multiply-add being two, as the static model counts them; None where it cannot."""
    default = concretize(problem.assignment, problem.formats)
    found = scalar_operations(problem, scheduled(problem, schedule), default.sources)
    return found if 0 < found < math.inf else None


def scheduled(problem: Problem, schedule: Schedule) -> Program:
    """Return the program that a schedule makes of a problem's default one. Raises ``ScheduleError``: it is not legal."""
    default = concretize(problem.assignment, problem.formats)
    return apply_schedule(default.program, schedule, default.formats, problem.constants)


def least_bytes(problem: Problem) -> float:
    """Return the bytes of all operands, and of the result where it is dense."""
    target = problem.assignment.target
    moved = sum(operand.nbytes for operand in problem.operands.values())
    if problem.formats[target.tensor].is_dense and all(subscript.is_index for subscript in target.subscripts):
        moved += prod(problem.extents[index] for index in target.indices) * problem.dtype.itemsize
    return float(moved)
