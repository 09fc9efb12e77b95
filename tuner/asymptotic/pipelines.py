"""The stages that find a frontier by asymptotic costs: without a preset, and the presets "pigeon" and "pigeon-taco" of ``explore``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...compiler.format import Format
from ...compiler.notation.nodes import Assignment
from ...compiler.space.schedules import Schedules
from ...compiler.space.space import PIGEON, Member, Rules, ScheduleSpace
from ..stage_clock import Clock
from .familiar import familiar
from .model import CostClass, CostModel
from .taco import taco_schedules

_Found = tuple[ScheduleSpace, ScheduleSpace, tuple[CostClass, ...]]
"""The whole space of a preset, the part that its frontier belongs to, and the costs on the frontier."""

_FAMILIAR, _GENERATED = 0.15, 0.3  # shares of the time after which making known programs ends, and counting the space ends


def _own(assignment: Assignment, formats: Mapping[str, Format], model: CostModel, clock: Clock) -> _Found:
    space = ScheduleSpace(assignment, formats, watch=clock.watch)
    algebra, starts = model.reading.algebra, len(space.groupings)
    known: list[Member] = []
    with clock.part(_FAMILIAR):
        known += familiar(Schedules(space, algebra.add, algebra.multiply))
    counts: list[int] = []
    with clock.part(_GENERATED):
        counts += (space.grammar.count(space.top(number)) for number in range(starts))
    clock.note("generated", sum(counts), **_stopped(len(counts), starts))
    frontier = model.frontier(space, clock.report, known, clock.part)
    if not frontier.classes:
        raise clock.too_large()
    searched = frontier.searched if frontier.searched < starts else frontier.counted
    clock.note("undominated", frontier.count, **_stopped(searched, starts))
    return space, space, frontier.classes


def _stopped(done: int, starts: int) -> dict[str, str]:
    """Return the note of a stage whose time was over before it saw all ways to place workspaces."""
    return {} if done == starts else {"stopped": f"time over after {done} of {starts} ways to place workspaces"}


def _pigeon(assignment: Assignment, formats: Mapping[str, Format], model: CostModel, clock: Clock) -> _Found:
    whole, space = _shallow(assignment, formats, clock)
    frontier = model.frontier(space, clock.report)
    clock.note("undominated", frontier.count)
    return whole, space, frontier.classes


def _taco(assignment: Assignment, formats: Mapping[str, Format], model: CostModel, clock: Clock) -> _Found:
    whole, space = _shallow(assignment, formats, clock)
    schedules = list(taco_schedules(space, clock.watch))
    clock.note("taco", len(schedules))
    classes = model.listed_frontier(schedules)
    clock.note("undominated", sum(one.count for one in classes))
    return whole, space, classes


def _shallow(assignment: Assignment, formats: Mapping[str, Format], clock: Clock) -> tuple[ScheduleSpace, ScheduleSpace]:
    """Return the paper's space, and its part of least nesting depth."""
    whole = ScheduleSpace(assignment, formats, Rules(paper_operators=True), clock.watch)
    clock.note("generated", whole.count)
    space = ScheduleSpace(assignment, formats, PIGEON, clock.watch)
    clock.note("min_depth", space.count)
    return whole, space


Pipeline = Callable[[Assignment, Mapping[str, Format], CostModel, Clock], _Found]
PIPELINES: dict[str | None, Pipeline] = {None: _own, "pigeon": _pigeon, "pigeon-taco": _taco}
"""By preset: what explores an assignment whose operands have these formats, and notes its stages with the clock."""
