"""The space of an expression as schedules of the scheduling language: counted, listed, sampled, recognised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from ..concrete.concretize import Concretized, concretize
from ..concrete.nodes import Assign, Program, Stmt, transform
from ..errors import ScheduleError
from ..notation.printer import show_assignment
from ..schedule.apply import apply_schedule
from ..schedule.schedule import Schedule
from .reading import structural
from .space import Member, ScheduleSpace
from .spelling import spelled


class Schedules:
    """The structural schedules of an expression, each a text that ``compile`` takes.

    Args:
        space: the structural space.
        add, multiply: the semiring.
    """

    def __init__(self, space: ScheduleSpace, add: str = "+", multiply: str = "*") -> None:
        self.members = space
        self.default: Concretized = concretize(replace(space.assignment, operator="="), space.formats, add, multiply)

    def __repr__(self) -> str:
        return f"Schedules({show_assignment(self.members.assignment)!r}: {self.count()})"

    def count(self) -> int:
        """Return how many schedules there are; none is listed."""
        return self.members.count

    @cached_property
    def stages(self) -> list[dict[str, str | int]]:
        """How many different schedules the stages up to each leave: {"stage", "kept"}; the last counts all."""
        return [{"stage": name, "kept": count()} for name, count in self.members.stages]

    def __iter__(self) -> Iterator[Schedule]:
        """Yield every schedule once, in canonical order."""
        return map(self.spelled, self.members)

    def sample(self, count: int, seed: int = 0) -> list[Schedule]:
        """Return schedules drawn uniformly, with replacement."""
        return [self.spelled(member) for member in self.members.sample(count, seed)]

    def __contains__(self, schedule: object) -> bool:
        return isinstance(schedule, Schedule | str) and self.find(schedule) is not None

    def spelled(self, member: Member) -> Schedule:
        """Return the directives that make a member of the space."""
        return spelled(member, self.default)

    def program(self, schedule: Schedule | str) -> Program:
        """Return what a schedule makes of the default program. Raises ScheduleError: it cannot be carried out."""
        return apply_schedule(self.default.program, schedule, self.default.formats)

    def find(self, schedule: Schedule | str) -> Member | None:
        """Return the member of the space that a schedule makes; None where it makes no program of the space."""
        try:
            program = self.program(schedule)
        except ScheduleError:
            return None
        found = structural(program, self.members.assignment.target, self.default.formats)
        return None if found is None else self.members.find(self._as_listed(found))

    def _as_listed(self, program: Program) -> Program:
        """Return a program with ``+=`` on the left side throughout, where the space writes it so."""
        target = self.members.assignment.target.tensor

        def rule(node: Stmt) -> Stmt | None:
            return replace(node, operator="+=") if isinstance(node, Assign) and node.target.tensor == target else None

        return replace(program, statement=transform(program.statement, rule)) if self.members.rules.paper_operators else program
