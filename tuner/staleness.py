"""Whether a decision for this very input still holds: it was made by this version, and what it compiled is compiled the same way now.

A lookup that finds no such decision does not load this.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..compiler.errors import SparsetuneError
from ..compiler.native.toolchain import find_compiler, possible_flags
from ..compiler.schedule.directives import Build
from ..compiler.schedule.schedule import Schedule
from .environment import code_version
from .problem import Problem
from .records import Decision


def staleness(problem: Problem, decision: Decision, schedule: Schedule) -> str:
    """Return why a decision for a problem is out of date; empty if it is not.

    Args:
        problem: on whose machine and input it was made.
        decision: what was recorded.
        schedule: its schedule, which is legal, in the problem's names.
    """
    if decision.code != code_version():
        return f"the record of this input is of version {decision.code or 'unknown'}, not of {code_version()}: tune again"
    if problem.is_on_gpu or _is_built_as_then(problem, decision, schedule):
        return ""
    from .kernels import compile_problem  # this generates code

    compiler, flags = compile_problem(problem, schedule).built_by
    if (decision.compiler, decision.flags) != (compiler, flags):
        made = f"{decision.compiler or 'an unknown compiler'} {decision.flags}".rstrip()
        return f"the record of this input was compiled by {made}, not by {compiler} {flags}: tune again"
    return ""


def unaltered(problem: Problem, decision: Decision) -> Schedule | None:
    """Return the schedule of a decision of this version, compiler and flags for this very input, which ran then and will run now.

    No code is generated for that, which would take most of the time of a first lookup. None if the decision must be checked in full, as
    limits may forbid a schedule that was chosen without limits.
    """
    if decision.code != code_version() or problem.limits.given or not problem.distributes or problem.is_on_gpu:
        return None
    try:
        schedule = problem.from_canonical(decision.schedule)
        return schedule if _is_built_as_then(problem, decision, schedule) else None
    except SparsetuneError:
        return None


def _is_built_as_then(problem: Problem, decision: Decision, schedule: Schedule) -> bool:
    """Return whether a schedule is surely compiled by the same program, with the same flags, as when it was decided for.

    Long code is compiled with other flags, and only generating it tells whether it is long: a record with these flags is checked in full.
    """
    programs = decision.environment.get("programs")
    known = programs.get(decision.compiler) if isinstance(programs, Mapping) else None
    asked = next((directive for directive in reversed(schedule.directives) if isinstance(directive, Build)), Build(None))
    flags, _ = possible_flags(asked.flags, str(problem.dtype))
    return known == find_compiler(asked.compiler).identity and decision.flags == " ".join(flags)
