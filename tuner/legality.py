"""Whether a schedule that the tuner, not the user, chose may run on a problem's operands. Decided by rules, without generating code.

What the rules let through can be lowered; tests/tuner/test_legality.py checks that for candidates of random expressions. If lowering fails
all the same, ``evaluate`` warns and uses the default schedule.
"""

from __future__ import annotations

from ..compiler.concrete.nodes import Program
from ..compiler.errors import SparsetuneError
from ..compiler.schedule.apply import apply_schedule
from ..compiler.schedule.parallel import check_units
from ..compiler.schedule.schedule import Schedule
from .encodings import encodings_hold
from .limits import workspace_elements
from .problem import Problem


def applied(problem: Problem, schedule: Schedule) -> Program:
    """Return the program of a problem under a schedule.

    Raises:
        ScheduleError, BuildError: a directive is not legal, or the target does not have the unit of a loop.
    """
    default = problem.concretized()
    program = apply_schedule(default.program, schedule, default.formats, {**problem.constants, **problem.viewed.constants})
    check_units(program, problem.target, problem.hardware.units)
    return program


def is_legal(problem: Problem, schedule: Schedule) -> bool:
    """Return whether a schedule can be applied to a problem, gives what the default one gives, and keeps the memory bound."""
    try:
        program = applied(problem, schedule)
    except Exception:  # a defect of the compiler must not reach a user who did not ask for this schedule
        return False
    return not problem.limits.binds(workspace_elements(program, problem)) and keeps_values(problem, program)


def keeps_values(problem: Problem, program: Program) -> bool:
    """Return whether a program of a problem gives what the default one gives for all values that its encodings of operands can hold.

    (Half of a matrix, for example, holds symmetric matrices alone.) Workspaces take factors out of sums, which is right in semirings
    whose products distribute over sums.
    """
    if not encodings_hold(problem, program):
        return False
    return problem.distributes or len(program.workspaces) <= len(problem.concretized().program.workspaces)


def usable(problem: Problem, text: str) -> Schedule | None:
    """Return a recorded schedule in the problem's names; None if it is not legal there."""
    try:
        schedule = problem.from_canonical(text)
    except SparsetuneError:  # written by a version that had other directives
        return None
    return schedule if is_legal(problem, schedule) else None
