"""What an exploration found: undominated schedules with their costs as text, and answers to why others are beaten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, overload

from ..compiler.concrete.nodes import Program, Stmt, assignments, loops, reads, used_indices
from ..compiler.errors import ExpressionError
from ..compiler.format import Format
from ..compiler.frozen import frozen
from ..compiler.notation.nodes import Assignment, accesses
from ..compiler.schedule.schedule import Schedule
from ..compiler.space.defaults import with_default_protocols
from ..compiler.space.protocolized import loop_nest, parse_protocolized
from ..compiler.space.reading import with_modes
from ..compiler.space.schedules import Schedules
from ..compiler.space.space import Member, ScheduleSpace
from .asymptotic.compare import CostComparison, compare
from .asymptotic.compare import explain as explain_comparison
from .asymptotic.listing import annotated, size_text
from .asymptotic.model import CostClass, CostModel
from .asymptotic.original_loops import original_loops


class FrontierSchedule:
    """An undominated schedule, with its costs as text.

    Attributes:
        member: the schedule in its space.
        kind: the cost that it shares with others.
        model: the cost model that it was judged by.
    """

    def __init__(self, member: Member, kind: CostClass, model: CostModel, space: Schedules) -> None:
        self.member = member
        self.kind = kind
        self.model = model
        self._space = space

    @property
    def statement(self) -> Stmt:
        """Concrete index notation with protocols."""
        return self.member.program.statement

    @cached_property
    def schedule(self) -> Schedule:
        """The directives that make it from the default program, for ``compile``, ``evaluate``, ``tune`` and ``explain``."""
        return self._space.spelled(self.member)

    @property
    def program(self) -> Program:
        """What the schedule makes of the default program, in the semiring of the exploration."""
        return self._space.program(self.schedule)

    @property
    def loop_depth(self) -> int:
        """The greatest depth of nested loops."""
        return self.member.layout.nest.depth

    @property
    def memory_depth(self) -> int:
        """The most modes of a workspace, without workspaces that only put a sparse result in order."""
        return max(map(len, self.member.layout.workspaces.values()), default=0)

    @property
    def loop_nest(self) -> str:
        """An indented listing with protocols."""
        return loop_nest(self.statement)

    @property
    def annotated(self) -> str:
        """The loop nest with the tasks that every line costs."""
        return annotated(self.model, self.statement)

    @property
    def task_set(self) -> str:
        """The tasks, sunk ones included, in set notation; tasks contained in others are left out."""
        return self.model.show(self.model.task_set(self.statement))

    @property
    def time(self) -> str:
        """The size of the task set, symbolically; schedules of equal cost share the text of the first of them."""
        return size_text(self.model.task_set(self.kind.first.program.statement), self.model)

    @property
    def memory(self) -> str:
        """The most elements that workspaces store at one time, symbolically, including one that a sparse result needs; 0 without any."""
        held = self.model.task_set(self.statement, "memory")
        return size_text(held, self.model) if held or self.member.program.workspaces else "0"

    def __repr__(self) -> str:
        return f"<schedule of time {self.time}, memory {self.memory}>"


class FrontierSchedules(Sequence[FrontierSchedule]):
    """The undominated schedules, those of equal cost together; listed no further than they are asked for."""

    def __init__(self, classes: Sequence[CostClass], model: CostModel, space: Schedules) -> None:
        self._classes = classes
        self._make = lambda member, kind: FrontierSchedule(member, kind, model, space)
        self._listed: list[FrontierSchedule] = []

    @cached_property
    def _rest(self) -> Iterator[FrontierSchedule]:
        return (self._make(member, one) for one in self._classes for member in one.schedules)

    def __len__(self) -> int:
        return sum(one.count for one in self._classes)

    @overload
    def __getitem__(self, place: int) -> FrontierSchedule: ...
    @overload
    def __getitem__(self, place: slice) -> list[FrontierSchedule]: ...
    def __getitem__(self, place: int | slice) -> FrontierSchedule | list[FrontierSchedule]:
        wanted = range(len(self))[place]
        if isinstance(wanted, range):
            return [self[one] for one in wanted]
        self._listed.extend(islice(self._rest, max(0, wanted + 1 - len(self._listed))))
        return self._listed[wanted]


AnyProgram = Program | Stmt | FrontierSchedule | Schedule | str
"""A program, its statement, a schedule of the frontier, a schedule of directives, or the text of a statement or of directives."""


@frozen(repr=False)
class Exploration:
    """What ``explore`` found.

    Attributes:
        expression: as given.
        preset: the pipeline.
        stages: for every stage its name, the number of schedules kept, the seconds that it took.
        frontier: the schedules that are left after the last stage, those of equal cost together.
        classes: the different costs among them, each with the number of its schedules.
        space: the structural schedules of the preset, before pruning: ``count()``, ``iter``, ``sample(n, seed)``, ``in``.
        members: the part of the space that the frontier belongs to.
        model: the cost model.
    """

    expression: str
    preset: str | None
    stages: list[dict[str, Any]]
    frontier: FrontierSchedules
    classes: tuple[CostClass, ...]
    space: Schedules
    members: ScheduleSpace
    model: CostModel

    def __repr__(self) -> str:
        stages = ", ".join(" ".join(map(str, (stage["stage"], stage["kept"], *_stopped(stage)))) for stage in self.stages)
        return f"Exploration({self.expression!r}: {stages}; costs {', '.join(one.time for one in self._cheapest)})"

    @property
    def _cheapest(self) -> list[FrontierSchedule]:
        """The first schedule of each cost, for a few costs."""
        return [FrontierSchedule(one.first, one, self.model, self.space) for one in self.classes[:3]]

    @property
    def assignment(self) -> Assignment:
        """The expression that was explored."""
        return self.members.assignment

    @property
    def formats(self) -> dict[str, Format]:
        """The format of every tensor, the result's included."""
        return self.members.formats

    def statement(self, program: AnyProgram) -> Stmt:
        """Return a program as concrete index notation with protocols; reads without protocols get those of their formats.

        Raises:
            ExpressionError: a text cannot be read, or the program does not fit the expression.
            ScheduleError: directives cannot be carried out.
        """
        if isinstance(program, FrontierSchedule):
            return program.statement
        if isinstance(program, Schedule) or (isinstance(program, str) and _is_directives(program)):
            program = self._scheduled(program)
        given = parse_protocolized(program) if isinstance(program, str) else program
        statement = original_loops(given) if isinstance(given, Program) else given
        _check_program(statement, self.assignment)
        operands = {name: form for name, form in self.formats.items() if name != self.assignment.target.tensor}
        return with_default_protocols(statement, operands)

    def _scheduled(self, schedule: Schedule | str) -> Stmt:
        """Return what directives make of the default program, over the indices of the expression."""
        program = self.space.program(schedule)
        return with_modes(replace(program, statement=original_loops(program)), self.formats)

    def compare(self, first: AnyProgram, second: AnyProgram) -> CostComparison:
        """Return the verdict on two programs, with its proofs; the first is cheaper, costlier, equivalent or incomparable."""
        return self.model.compare(self.statement(first), self.statement(second))

    def compare_text(self, first: AnyProgram, second: AnyProgram) -> str:
        """Return the verdict in words, with the homomorphism behind every containment."""
        return explain_comparison(self.compare(first, second), "the first", "the second", self.model.vocabulary.display_names())

    def annotated(self, program: AnyProgram) -> str:
        """Return a program's loop nest with the tasks that every line costs."""
        return annotated(self.model, self.statement(program))

    def beaten_by(self, program: AnyProgram) -> list[tuple[CostClass, CostComparison]]:
        """Return the costs on the frontier that are lower than a program's, each with the comparison that shows it."""
        own = self.model.tasks.queries(self.model.cost(self.statement(program)))
        found = ((one, compare(one.tasks, own, self.model.premises)) for one in self.classes)
        return [(one, comparison) for one, comparison in found if comparison.verdict == "cheaper"]

    def why(self, program: AnyProgram) -> str:
        """Say which schedules of the frontier beat a program and why, or that none does."""
        better = self.beaten_by(program)
        if not better:
            return "no schedule of the frontier is cheaper"
        names = self.model.vocabulary.display_names()
        parts = []
        for one, comparison in better:
            others = f" (and {one.count - 1} of the same cost)" if one.count > 1 else ""
            reasons = explain_comparison(comparison, "this schedule", "the given one", names)
            parts.append(f"{loop_nest(one.first.program.statement)}\n{others.strip() or '(the only one of its cost)'}\n{reasons}")
        return "\n\n".join(parts)


def _stopped(stage: Mapping[str, Any]) -> list[str]:
    return [f"({stage['stopped']})"] if "stopped" in stage else []


def _is_directives(text: str) -> bool:
    """Whether a text is a schedule of directives: only statements begin with a forall, or have an equals sign outside quotes."""
    return not text.lstrip(" (").startswith("forall") and "=" not in re.sub(r'"[^"]*"', "", text)


def _check_program(statement: Stmt, assignment: Assignment) -> None:
    """Refuse programs that cannot compute the expression: unknown operands or indices, no write to the result."""
    written = {assign.target.tensor for assign in assignments(statement)}
    if assignment.target.tensor not in written:
        raise ExpressionError(f"the program does not write the result {assignment.target.tensor}")
    operands = {access.tensor for access in accesses(assignment.value)}
    indices = {name for access in (assignment.target, *accesses(assignment.value)) for name in access.indices}
    for access in reads(statement):
        if access.tensor not in operands | written:
            raise ExpressionError(f"the program reads {access.tensor}, which is neither an operand nor a workspace that it writes")
    strange = sorted((used_indices(statement) | set(loops(statement))) - indices)
    if strange:
        known = ", ".join(sorted(indices))
        raise ExpressionError(f"the program has the index {strange[0]}, which the expression does not have; its indices are {known}")
    unread = sorted(operands - {access.tensor for access in reads(statement)})
    if unread:
        raise ExpressionError(f"the program does not read {unread[0]}")
