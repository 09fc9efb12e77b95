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
from .decorations import Decoration, new_names, positions_taken
from .device_units import to_threads, to_warps
from .situation import Situation, format_read
from .template import Hole, Part, opened

TILE = Hole("tile", (2, 4))
WIDE_TILE = Hole("wide_tile", (4, 2))  # of a sum over lanes
AHEAD = Hole("ahead", (1, 2, 4))  # rows that a thread loads before it adds the first
TOGETHER = Hole("loads_ahead", (2, 4, 1))  # entries of a share, or of a row of sums, that are loaded at the same time
SHARE = Hole("share_entries", (64, 32, 16, 128))  # entries of each warp, one after the other


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
    tile, element, held, thread = new_names(program, "t", "v", "w", "c")
    cut = opened(d.Split(column, tile, element, 2), factor=TILE)
    summed = d.Precompute(leaf.value, (element,), (element,), held), opened(d.Unroll(sums[-1], 1, path=(0,)), factor=AHEAD)

    def ordered(*outer: str) -> tuple[Part, ...]:
        return cut, d.Reorder((*outer, tile, *sums, element)), *summed

    if len(rows) == 1:
        if _is_full(program, situation, rows[0]):
            together = d.Collapse(rows[0], tile, thread), to_threads(thread, "no_races")
            yield Decoration((*ordered(rows[0]), *together), "tiles of rows to threads")
        yield Decoration((*ordered(rows[0]), to_warps(rows[0]), to_threads(tile, "no_races")), "rows to warps, tiles to threads")
    for position, taken in _positions(program, situation, rows if len(rows) > 1 else ()):
        fibres = to_warps(position), to_threads(tile, "no_races")
        yield Decoration((*taken, *ordered(position), *fibres), "fibres to warps, tiles to threads")


def _is_full(program: Program, situation: Situation, loop: str) -> bool:
    """Return whether no operand stores coordinates of a loop: of a nest whose rows are stored, threads get rows, not tiles of them."""
    return not any(access.has_coordinates(loop, format_read(access, program, situation)) for access in situation.stored(program))


def _shared_columns(program: Program, situation: Situation, loops: Sequence[str]) -> Iterator[Decoration]:
    """Yield shares of stored entries to warps, whose lanes have tiles of columns."""
    warp, entry, tile, element = new_names(program, "w", "n", "t", "v")
    for position, taken in _positions(program, situation, loops[:-1]):
        cut = opened(d.Split(position, warp, entry, 64), factor=SHARE), opened(d.Split(loops[-1], tile, element, 2), factor=TILE)
        steps = d.Reorder((warp, tile, entry, element)), opened(d.Unroll(entry, 2), factor=TOGETHER), to_warps(warp)
        yield Decoration((*taken, *cut, *steps, to_threads(tile, "atomics")), "entries to warps, tiles to threads")


def _sums(program: Program, situation: Situation, loops: Sequence[str]) -> Iterator[Decoration]:
    """Yield sums over the last loop by lanes that have tiles of it: of the entries of a row, and of shares of entries."""
    tile, element, warp, entry = new_names(program, "t", "v", "w", "n")
    cut = opened(d.Split(loops[-1], tile, element, 4), factor=WIDE_TILE)
    lanes = to_threads(tile, "parallel_reduction")
    ahead = opened(d.Unroll(loops[-2], 2), factor=TOGETHER)
    yield Decoration((cut, ahead, to_warps(loops[0]), lanes), "rows to warps, sums to threads by tiles")
    for position, taken in _positions(program, situation, loops[:-1]):
        share = opened(d.Split(position, warp, entry, 64), factor=SHARE), opened(d.Unroll(entry, 2), factor=TOGETHER)
        yield Decoration((*taken, cut, *share, to_warps(warp), lanes), "entries to warps, sums to threads by tiles")


def _positions(program: Program, situation: Situation, loops: Sequence[str]) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Yield one loop over the stored entries that loops follow together, if only one operand is stored, with the directives for it."""
    stored = situation.stored(program)
    for used, position, taken in positions_taken(program, loops, stored[0], situation) if loops and len(stored) == 1 else ():
        if used == len(loops):
            yield position, taken
