"""Applying a schedule: from the default program of an expression to the scheduled one, directive by directive.

Every directive is one function of the program, which checks the directive's own preconditions; ``schedule.legality`` checks those of the
program as a whole. The error names the first directive that cannot be carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from ..concrete.nodes import Program
from ..errors import ScheduleError
from ..format import Format
from . import addends, data_directives, fusion, loop_directives, position_directives, statement_directives
from . import directives as d
from .addresses import follow
from .context import Context, context_of
from .legality import Judgement
from .rules import Refusal, Rule, refuse
from .schedule import Schedule
from .text import show_directive

_Step = Callable[[Program, Any, Context], Program]
_STEPS: dict[type[d.Directive], _Step] = {
    d.Reorder: loop_directives.reorder,
    d.Split: loop_directives.split,
    d.SplitUp: loop_directives.split,
    d.Collapse: position_directives.collapse,
    d.Pos: position_directives.pos,
    d.Coord: position_directives.coord,
    d.MergePath: position_directives.merge_path,
    d.Bound: loop_directives.bound,
    d.Unroll: loop_directives.unroll,
    d.Prefetch: loop_directives.prefetch,
    d.Parallelize: loop_directives.parallelize,
    d.Merge: loop_directives.merge,
    d.Addends: addends.addends,
    d.Factors: statement_directives.factors,
    d.Precompute: statement_directives.precompute,
    d.Loopfuse: statement_directives.loopfuse,
    d.Accumulate: addends.accumulate,
    d.Join: fusion.join,
    d.Recompute: fusion.join,
    d.ProtocolDirective: data_directives.protocol,
    d.WorkspaceDirective: data_directives.workspace,
    d.Convert: data_directives.convert,
    d.Assemble: data_directives.assemble,
    d.Call: data_directives.call,
    d.Build: data_directives.build,
}
_TAGS = (d.Parallelize, d.Unroll, d.Prefetch, d.Build)  # directives that leave loops, operands and workspaces as they are
_AFTER_PARALLELIZE = (d.Parallelize, d.Unroll, d.Prefetch, *d.DATA, *d.CODE)


def register(directive: type[d.Directive], step: _Step) -> None:
    """Add a directive to the language of schedules.

    Args:
        directive: its class, with the keyword and parameters by which its text is read and printed.
        step: a function from a program and the directive to the changed program; raises ``Refusal`` if it cannot be carried out.

    Raises:
        ValueError: there is a directive of that keyword.
    """
    if directive.keyword in {*d.DIRECTIVES, *d.ALIASES}:
        raise ValueError(f"there is a directive {directive.keyword} already")
    d.DIRECTIVES[directive.keyword], _STEPS[directive] = directive, step


def unregister(directive: type[d.Directive]) -> None:
    """Remove a directive that ``register`` has added."""
    del d.DIRECTIVES[directive.keyword], _STEPS[directive]


def apply_schedule(
    program: Program, schedule: Schedule | str, types: Mapping[str, Format], extents: Mapping[str, int] | None = None
) -> Program:
    """Apply a schedule to a program and return the result.

    Args:
        program: usually the default program of an expression.
        schedule: directives, applied from left to right.
        types: the format of every operand and of the result.
        extents: the extents of original indices that are compile-time constants.

    Raises:
        ScheduleError: a directive cannot be carried out; the message names its number, its text, and the rule that it
            breaks (``schedule.rules``).
    """
    schedule = Schedule(schedule)
    context = context_of(program, schedule, types, extents or {})
    judgement = Judgement(program, context)
    parallel = 0
    refused: dict[Hashable, ScheduleError] = {}
    for number, directive in enumerate(schedule, 1):
        try:
            if parallel and not isinstance(directive, _AFTER_PARALLELIZE):
                refuse(Rule.NOTHING_AFTER_PARALLELIZE, f"it follows parallelize (directive {parallel}); move it before")
            program = _carried_out(program, directive, context)
            if not isinstance(directive, _TAGS):
                program = context.seen_in_order(program)
                context = judgement.context = context.having_views(program)
                judgement.ranges(program)
                found = judgement.storage(program)
                refused = {what: refused.get(what) or _error(number, directive, refusal) for what, refusal in found.items()}
        except Refusal as refusal:
            raise _error(number, directive, refusal) from None
        if isinstance(directive, d.Parallelize):
            parallel = parallel or number
    for error in refused.values():
        raise error
    _judge_whole(program, schedule, judgement)
    return program


def carry_out(program: Program, directive: d.Directive, types: Mapping[str, Format]) -> Program:
    """Apply one directive to a program and return the result; only the directive's own preconditions are checked.

    Raises:
        ScheduleError: the directive cannot be carried out.
    """
    try:
        return _carried_out(program, directive, context_of(program, Schedule(), types, {}))
    except Refusal as refusal:
        raise _error(1, directive, refusal) from None


def _carried_out(program: Program, directive: d.Directive, context: Context) -> Program:
    follow(program.statement, directive.path or ())
    return _STEPS[type(directive)](program, directive, context)


def _judge_whole(program: Program, schedule: Schedule, judgement: Judgement) -> None:
    """Check the preconditions that concern the finished program, and name the directive that breaks one."""
    for number, directive in enumerate(schedule, 1):
        try:
            if isinstance(directive, d.Parallelize):
                judgement.parallel_loop(program, directive)
            elif isinstance(directive, d.Pos):
                judgement.position_loop(program, directive)
            elif isinstance(directive, d.SplitUp):
                judgement.tiles(program, directive)
            elif isinstance(directive, d.Prefetch):
                judgement.prefetch(program, directive)
            elif isinstance(directive, d.Assemble) and directive.strategy == "append":
                judgement.appended(program, directive.result)
            elif isinstance(directive, d.ProtocolDirective) and "append" in directive.protocols:
                judgement.appended(program, directive.access.tensor)
            elif isinstance(directive, d.WorkspaceDirective):
                judgement.workspace(program, directive)
        except Refusal as refusal:
            raise _error(number, directive, refusal) from None


def _error(number: int, directive: d.Directive, refusal: Refusal) -> ScheduleError:
    return ScheduleError(f"directive {number}, {show_directive(directive)}: {refusal.reason} (rule {refusal.rule.value})")
