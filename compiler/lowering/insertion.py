"""Sparse results that are counted first and then filled: the loops run twice, each time in another phase of the assembly.

In the first pass only the cursors move, from zero in every iteration of the outermost loop. Their ends are summed, and in the second pass
each iteration starts where the one before ends. So iterations do not depend on one another; threads can run them, and the
result does not depend on which thread runs which (two-phase assembly; Kjolstad et al., "Taco: a tool to generate tensor algebra kernels").
The phase is an argument of lowering, and both passes are lowered from the same statement. ``shared_insertion`` has loops inside that a GPU
distributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..concrete.nodes import Block, Forall, Program, Stmt, Where, runs_on_gpu, targets
from ..ir.arithmetic import ONE, ZERO, add, integer, subtract
from ..ir.nodes import BOOL, I64, Allocate, ArrayRef, Const, Declare, For, Free, Load, Run, SetVar, Step, Steps, Store, Value
from .assembled_levels import cursor, known
from .assembly import COUNT, FILL, Assembly
from .context import Context
from .scope import Scope
from .threads import Loop, dealt


def is_inserted(program: Program, result: str) -> bool:
    """Return whether an assembled result is counted first, because a GPU assembles it or a schedule says so."""
    asked = runs_on_gpu(program) or dict(program.assembly).get(result) == "insert"
    return asked and any(result in targets(loop) for loop in outermost(program.statement))


def outermost(statement: Stmt) -> Iterator[Forall]:
    """Yield the loops that are not inside other loops."""
    match statement:
        case Forall():
            yield statement
        case Where() | Block():
            for part in statement.children:
                yield from outermost(part)


def inserts(context: Context, scope: Scope, forall: Forall) -> bool:
    """Whether this is the outermost loop of a result that is counted first and then filled."""
    assembly = scope.assembly
    if assembly is None or not assembly.inserted or not assembly.phase.grows or scope.loops:
        return False
    return context.result.tensor in targets(forall)


def inserted(context: Context, scope: Scope, forall: Forall, loop_of: Loop) -> list[Step]:
    """Return the loop twice: to count what every iteration appends, and to store it at its place."""
    assert scope.assembly is not None
    steps: list[Step] = []
    for phase in (COUNT, FILL):
        assembly = replace(scope.assembly, phase=phase)
        here = replace(scope, assembly=assembly)
        if not forall.tag.is_dealt:
            steps += _at_once(assembly, loop_of(context, here, forall))
            continue
        *before, loop = dealt(context, here, forall, loop_of)
        assert isinstance(loop, For)
        length = add(subtract(loop.high, loop.low), integer(1))
        if phase == COUNT:
            steps += [*before, *_counted(assembly, loop, length)]
        else:  # a block of its own, since the steps before the loop declare the same names again
            filled = _filled(assembly, loop)
            steps += [Steps((*before, *filled))] if before else filled
    return steps


def _counted(assembly: Assembly, loop: For, length: Value) -> list[Step]:
    """Return the counting pass: the loop, in which every iteration counts from zero, and the sums over iterations."""
    steps: list[Step] = [Allocate(entry.counts, I64, length, zero=True) for entry in assembly.stored]
    place = add(subtract(loop.variable, loop.low), ONE)
    own = [*_local_used(assembly), *(Declare(cursor(entry), ZERO) for entry in assembly.stored)]
    after = [Store(entry.counts, place, cursor(entry)) for entry in assembly.stored]
    steps.append(replace(loop, body=Steps((*own, loop.body, *after))))
    steps += [Run("scan", (ArrayRef(entry.counts, I64), length)) for entry in assembly.stored]
    last = subtract(length, ONE)
    return steps + [Declare(known(entry.total), Load(entry.counts, last, I64)) for entry in assembly.stored]


def _filled(assembly: Assembly, loop: For) -> list[Step]:
    """Return the allocations of known size and the filling pass."""
    steps = _allocated(assembly)
    place = subtract(loop.variable, loop.low)
    own = [*_local_used(assembly), *(Declare(cursor(entry), Load(entry.counts, place, I64)) for entry in assembly.stored)]
    steps.append(replace(loop, body=Steps((*own, loop.body))))
    return steps + [Free(entry.counts) for entry in assembly.stored]


def _at_once(assembly: Assembly, steps: list[Step]) -> list[Step]:
    """Return one of the two passes for a loop that is not dealt out; cursors run through all of it."""
    if assembly.counting:
        begin = [*_local_used(assembly), *(Declare(cursor(entry), ZERO) for entry in assembly.stored)]
        return [*begin, Steps(tuple(steps)), *(Declare(known(entry.total), cursor(entry)) for entry in assembly.stored)]
    return [*_allocated(assembly), *(SetVar(cursor(entry), ZERO) for entry in assembly.stored), Steps(tuple(steps))]


def _allocated(assembly: Assembly) -> list[Step]:
    length, blank = assembly.positions(), assembly.last + 1 < len(assembly.levels)
    steps: list[Step] = assembly.blank_values(length) if blank else [Allocate(assembly.values, assembly.value_type, length)]
    steps += assembly.shared_room()
    for entry in assembly.stored:
        total = assembly.total(assembly.levels.index(entry))
        steps += [Allocate(each.crd, each.width, total) for each in entry.entries]
        steps.append(Allocate(entry.pos, I64, add(assembly.parents(entry.head), ONE), zero=True))
    return steps


def _local_used(assembly: Assembly) -> list[Step]:
    return [Declare(assembly.used, Const(False, BOOL))] if assembly.last + 1 < len(assembly.levels) else []
