"""Mappings to a GPU whose lanes hold tiles of a dense loop: neighbouring elements, which one load brings, in registers.

A lane that has two or four neighbouring columns of a row issues half or a quarter of the loads of coordinates, and its loads of the dense
operand are as wide as the device has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..concrete.apart import covers
from ..concrete.nodes import Assign, Program
from ..schedule import directives as d
from ..schedule.addresses import at, body_address, chain
from ..schedule.dependence import graph_of
from .decorations import Decoration, fresh, positions_taken
from .situation import Situation
from .template import Hole, Part, opened

TILE = Hole("tile", (2, 4))
WIDE_TILE = Hole("wide_tile", (4, 2))  # of a sum over lanes
LANES = Hole("lanes", (32, 16, 8, 4, 2))
AHEAD = Hole("ahead", (1, 2, 4))
TOGETHER = Hole("loads_ahead", (2, 4, 1))
SHARE = Hole("share_entries", (64, 32, 16, 128))
REGISTERS = Hole("registers", ((None, None), *((d.REGISTERS, count) for count in (40, 48, 32))))


def device_tiles(program: Program, situation: Situation) -> Iterator[Decoration]:
    """Yield the mappings of a plain loop nest whose last loop is dense, of known extent: lanes have tiles of it."""
    loops, graph = chain(program.statement, ()), graph_of(program.relations)
    leaf = at(program.statement, body_address(program.statement, ()))
    if len(loops) < 2 or not isinstance(leaf, Assign) or leaf.operator != "+=" or loops[-1] in situation.tree(program):
        return
    extent = graph.constant_extent(loops[-1], situation.extents)
    if extent is None or extent % max(choice for choice in TILE.choices if isinstance(choice, int)):
        return
    rows = [loop for loop in loops[:-1] if covers(leaf.target.indices, loop, graph)]
    if covers(leaf.target.indices, loops[-1], graph):
        sums = loops[len(rows) : -1]
        if sums and rows == list(loops[: len(rows)]):
            yield from _columns(program, leaf, situation, rows, sums)
            yield from _shared_columns(program, situation, loops)
    elif len(rows) == len(loops) - 1:
        yield from _sums(program, situation, loops)


def _columns(program: Program, leaf: Assign, situation: Situation, rows: Sequence[str], sums: Sequence[str]) -> Iterator[Decoration]:
    """Yield rows of which each lane has a tile of columns, whose sums it holds in registers."""
    column = chain(program.statement, ())[-1]
    tile, element, held, thread = fresh(program, ("t", "v", "w", "c"))
    cut = opened(d.Split(column, tile, element, 2), factor=TILE)
    summed = d.Precompute(leaf.value, (element,), (element,), held), opened(d.Unroll(sums[-1], 1, path=(0,)), factor=AHEAD)

    def ordered(*outer: str) -> tuple[Part, ...]:
        return cut, d.Reorder((*outer, tile, *sums, element)), *summed

    if len(rows) == 1:
        yield Decoration((*ordered(rows[0]), d.Collapse(rows[0], tile, thread), _lane(thread)), "tiles of rows to threads")
        yield Decoration((*ordered(rows[0]), _group(rows[0]), _lane(tile)), "rows to warps, tiles to threads")
    stored = situation.stored(program)
    for used, position, taken in positions_taken(program, rows, stored[0], situation) if len(stored) == 1 else ():
        if used == len(rows) > 1:
            yield Decoration((*taken, *ordered(position), _group(position), _lane(tile)), "fibres to warps, tiles to threads")


def _shared_columns(program: Program, situation: Situation, loops: Sequence[str]) -> Iterator[Decoration]:
    """Yield shares of stored entries to warps, whose lanes have tiles of columns."""
    stored = situation.stored(program)
    warp, entry, tile, element = fresh(program, ("w", "n", "t", "v"))
    for used, position, taken in positions_taken(program, loops, stored[0], situation) if len(stored) == 1 else ():
        if used == len(loops) - 1:
            cut = opened(d.Split(position, warp, entry, 64), factor=SHARE), opened(d.Split(loops[-1], tile, element, 2), factor=TILE)
            steps = d.Reorder((warp, tile, entry, element)), opened(d.Unroll(entry, 2), factor=TOGETHER), _group(warp)
            yield Decoration((*taken, *cut, *steps, _lane(tile, "atomics")), "entries to warps, tiles to threads")


def _sums(program: Program, situation: Situation, loops: Sequence[str]) -> Iterator[Decoration]:
    """Yield sums over the last loop by lanes that have tiles of it: of the entries of a row, and of shares of entries."""
    tile, element, warp, entry = fresh(program, ("t", "v", "w", "n"))
    cut = opened(d.Split(loops[-1], tile, element, 4), factor=WIDE_TILE)
    lanes = _lane(tile, "parallel_reduction")
    ahead = opened(d.Unroll(loops[-2], 2), factor=TOGETHER)
    yield Decoration((cut, ahead, _group(loops[0]), lanes), "rows to warps, sums to threads by tiles")
    stored = situation.stored(program)
    for used, position, taken in positions_taken(program, loops, stored[0], situation) if len(stored) == 1 else ():
        if used == len(loops) - 1:
            share = opened(d.Split(position, warp, entry, 64), factor=SHARE), opened(d.Unroll(entry, 2), factor=TOGETHER)
            yield Decoration((*taken, cut, *share, _group(warp), lanes), "entries to warps, sums to threads by tiles")


def _group(loop: str) -> Part:
    """Return a loop given to warps, which may have fewer lanes than 32."""
    return opened(d.Parallelize(loop, "gpu_warp", "no_races", d.LANES, 32), chunk=LANES)


def _lane(loop: str, race: str = "no_races") -> Part:
    """Return a loop given to threads, which may have fewer registers than the compiler would give them."""
    return opened(d.Parallelize(loop, "gpu_thread", race), chunking__chunk=REGISTERS)
