"""Loops whose iterations are dealt out to threads of the processor, or to units of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from ..concrete.loop_tag import PRIVATE
from ..concrete.nodes import Forall, Unless, walk
from ..errors import ScheduleError
from ..ir.nodes import Dealt, For, Group, Member, Parallel, Step, Steps
from ..notation.nodes import Access
from .context import Context
from .device_copies import DeviceCopies, with_device_copies
from .privatize import NeedsCopies, copy_names, with_copies
from .requests import Once, at_end, at_start, taken
from .scope import ParallelLoop, Scope

Loop: TypeAlias = Callable[[Context, Scope, Forall], list[Step]]


def dealt(context: Context, scope: Scope, forall: Forall, loop_of: Loop) -> list[Step]:
    """Return the loop of a forall whose iterations are dealt out to threads, or to the blocks, warps or threads of a GPU."""
    unit, member = str(forall.tag.unit), forall.tag.member
    if member is None:
        return threaded(context, scope, forall, loop_of)
    outer = scope.parallel[-1].member if scope.parallel else None
    copies = copy_names(context.names, _privately_written(forall), across=False)
    inside = scope.threaded(ParallelLoop(forall.index, scope, forall.tag.race, unit, copies=copies))
    asked, steps = taken(loop_of(context, inside, forall), Once, DeviceCopies)
    if not steps:
        return []
    own = [request for request in asked if isinstance(request, Once)]
    mine = [request for request in asked if isinstance(request, DeviceCopies) and request.index == forall.index]
    others = [request for request in asked if isinstance(request, DeviceCopies) and request.index != forall.index]
    *before, last = _for_last(steps)
    if not isinstance(last, For):
        raise ScheduleError(f"parallelize({forall.index}, {unit}): its iterations depend on one another; split the loop first")
    group = "grid" if outer is None else _group(outer)
    tag = Dealt(member, group, forall.tag.lanes, forall.tag.unroll or 1, forall.tag.registers or 0)
    loop = replace(last, tag=tag, private=at_start(own), finish=at_end(own))
    return [*others, *before, *with_device_copies(context, scope, mine, loop)]


def _group(around: Member) -> Group:
    return "block" if around == "block" else "warp"


def threaded(context: Context, scope: Scope, forall: Forall, loop_of: Loop) -> list[Step]:
    """Return the steps of a loop that threads of the processor run. Raises ``ScheduleError`` inside another such loop."""
    if scope.parallel:
        around = scope.parallel[-1].index
        raise ScheduleError(f"parallelize({forall.index}, cpu_thread): the loop over {around} around it is parallel already")
    runs = forall.tag.chunking in (None, "static") and forall.tag.chunk is None
    race = forall.tag.race
    across = runs and any(isinstance(node, Unless) for node in walk(forall.body))
    copies = copy_names(context.names, _privately_written(forall), across)
    inside = scope.threaded(ParallelLoop(forall.index, scope, race, str(forall.tag.unit), runs, copies=copies))
    asked, steps = taken(loop_of(context, inside, forall), Once, NeedsCopies)
    if not steps:
        return []
    *before, last = _for_last(steps)
    if not isinstance(last, For):
        raise ScheduleError(f"parallelize({forall.index}, cpu_thread): its iterations depend on one another; split the loop first")
    tag = Parallel(forall.tag.chunking, forall.tag.chunk)
    own = [request for request in asked if isinstance(request, Once)]
    loop: list[Step] = [*before, replace(last, tag=tag, private=at_start(own), finish=at_end(own))]
    return with_copies(context, (request for request in asked if isinstance(request, NeedsCopies)), loop)


def _privately_written(forall: Forall) -> list[Access]:
    """Return what is written in a loop whose race strategy gives threads copies of it."""
    return [assign.target for assign in forall.assignments] if forall.tag.race in PRIVATE else []


def _for_last(steps: list[Step]) -> list[Step]:
    """Flatten a block at the end, so that its loop is the last step."""
    *before, last = steps
    return [*before, *last.statements] if isinstance(last, Steps) and last.statements else steps
