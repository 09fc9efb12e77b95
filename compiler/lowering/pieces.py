"""Sparse results to which threads append.

The iterations of the outermost loop are cut into pieces. A thread appends the entries of a piece to arrays of its own. As soon as the
numbers of entries of all earlier pieces are known, the piece is copied to its place in the result and its memory is reused, so that the
arrays of threads stay in their caches. Pieces that a thread still has when it ends, because other threads were late or the result had no
room left, are copied after the loop. The result does not depend on which thread made which piece. A single piece is the result itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..concrete.nodes import Forall, Program, targets
from ..ir.arithmetic import ONE, ZERO, add, ceiling_quotient, compare, integer, maximum, minimum, multiply, subtract
from ..ir.names import Names
from ..ir.nodes import (
    I64,
    Allocate,
    Declare,
    For,
    Grow,
    Parallel,
    Select,
    Step,
    Type,
    Value,
    Var,
)
from .assembled_levels import AssembledLevel
from .assembly import START, Assembly
from .context import Context
from .insertion import is_inserted, outermost
from .parameters import THREADS
from .piece_tables import Part, Pieces
from .rooms import expected_entries
from .scope import Scope
from .threads import Loop, dealt

FOR_EACH, MOST = 16, 512  # pieces for each thread, and iterations of a piece at most, where the schedule does not say how large they are


def is_appended_in_pieces(program: Program, result: str) -> bool:
    """Return whether threads of a processor append to an assembled result."""
    if is_inserted(program, result):
        return False
    return any(loop.tag.is_threaded and result in targets(loop) for loop in outermost(program.statement))


def appends(context: Context, scope: Scope, forall: Forall) -> bool:
    """Whether this is the outermost loop of a sparse result to which threads of a processor append."""
    assembly = scope.assembly
    return assembly is not None and assembly.apart and not scope.loops and context.result.tensor in targets(forall)


def appended(context: Context, scope: Scope, forall: Forall, loop_of: Loop) -> list[Step]:
    """Return the parallel loop of a forall, and the steps that put the entries of its threads together."""
    assembly = scope.assembly
    assert assembly is not None
    threads, expected = context.size_parameter(THREADS), expected_entries(context, assembly)
    parts = _parts(assembly, context.names)
    own = _owned(assembly, parts)
    steps = dealt(context, replace(scope, assembly=own), forall, loop_of)
    if not steps:
        return []
    *before, loop = steps
    assert isinstance(loop, For)
    once = any(isinstance(step, Grow) for step in before)  # room for all iterations; each piece makes room for its own instead
    before = [step for step in before if not isinstance(step, Grow)]
    pieces = Pieces.named(assembly, parts, context.names)
    begin = own.begin(Select(pieces.alone, expected, integer(START), I64))
    size = Var(context.names.permanent("piece_size"), I64)
    loop = replace(loop, private=(*pieces.private(), *begin, *loop.private), finish=(*loop.finish, *pieces.finish()))
    return [
        *before,
        Declare(size, _size(loop, threads)),
        Declare(pieces.count, ceiling_quotient(_iterations(loop), size)),
        *_shared(assembly),
        *pieces.begin(assembly.room(expected), threads),
        pieces.loop(loop, size, own.reserve(size) if once else []),
        *pieces.end(),
    ]


def _parts(assembly: Assembly, names: Names) -> tuple[Part, ...]:
    found: list[Part] = []

    def part(whole: str, kind: Type, level: int, block: Value = ONE, shift: Value = ZERO) -> None:
        room = Var(names.permanent(f"{whole}_room"), I64)
        found.append(Part(names.permanent(f"own_{whole}"), whole, room, kind, level, block, shift))

    part(assembly.values, assembly.value_type, assembly.last, assembly.block(assembly.last))
    for entry in assembly.stored:
        for each in entry.entries:
            part(each.crd, each.width, assembly.levels.index(entry))
        above = assembly.stored_above(entry.head)
        if above is not None:
            part(entry.pos, I64, above, assembly.block(above), ONE)
    return tuple(found)


def _owned(assembly: Assembly, parts: tuple[Part, ...]) -> Assembly:
    """Return the assembly with the arrays of a thread in place of the result's."""
    own = {part.whole: part.own for part in parts}
    return replace(assembly, levels=tuple(_owned_level(entry, own) for entry in assembly.levels), values=own[assembly.values])


def _owned_level(entry: AssembledLevel, own: Mapping[str, str]) -> AssembledLevel:
    if entry.kind.inserts:
        return entry
    arrays = tuple(replace(array, name=own.get(array.name, array.name)) for array in entry.listed.arrays)
    carried = tuple(_owned_level(each, own) for each in entry.carried)
    return replace(entry, listed=replace(entry.listed, arrays=arrays), carried=carried, pos=own.get(entry.pos, entry.pos))


def _shared(assembly: Assembly) -> list[Step]:
    """Return the allocations of arrays that threads fill together: the segments of positions that are known before."""
    roots = [entry for entry in assembly.stored if assembly.stored_above(entry.head) is None]
    made: list[Step] = [Allocate(entry.pos, I64, add(assembly.parents(entry.head), ONE), zero=True) for entry in roots]
    return [*assembly.shared_room(), *made]


def _iterations(loop: For) -> Value:
    return maximum(subtract(loop.high, loop.low), ZERO)


def _size(loop: For, threads: Value) -> Value:
    """Return how many iterations a piece has: all of them if there is one thread."""
    assert isinstance(loop.tag, Parallel)
    count, size = _iterations(loop), integer(loop.tag.chunk or 1)
    if loop.tag.chunk is None and loop.tag.chunking != "dynamic":
        size = maximum(minimum(ceiling_quotient(count, multiply(threads, integer(FOR_EACH))), integer(MOST)), ONE)
    return Select(compare("==", threads, ONE), maximum(count, ONE), size, I64)
