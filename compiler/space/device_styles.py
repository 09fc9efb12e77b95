"""The ways to map a structure to a GPU: which loops go to blocks, warps and threads (Senanayake et al., section 6 and Figure 2e).

Rows go to threads, warps or blocks, or blocks get equal shares of the stored entries, or of entries and ends of rows together; a loop
inside goes to threads. Callers drop what a device cannot do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..concrete.apart import covers
from ..concrete.nodes import Assign, Program, Where
from ..concrete.provenance import Provenance
from ..notation.nodes import accesses
from ..schedule import directives as d
from ..schedule.addresses import at, body_address, chain
from ..schedule.dependence import graph_of
from ..units import UNITS
from .decorations import Decoration, new_names, positions_taken, shares_pattern
from .device_tiles import device_tiles
from .device_units import REGISTERS, to_threads, to_warps
from .situation import Situation, Structure, result_leaf
from .template import Hole, Part, opened

ROWS = Hole("rows", (8, 4, 16, 2))  # rows of a block, one for each of its warps
BLOCK = Hole("block_entries", (1024, 512, 2048, 256))  # that a block works on
THREAD = Hole("thread_entries", (8, 4, 2, 16))  # entries of each thread
HELD = Hole("held_entries", (4, 8, 16))  # entries of each thread, whose products it holds in registers
FEW = Hole("few_entries", (32, 64, 16, 8))  # entries of a block whose threads share a loop inside
WARPS = Hole("warp_entries", (8, 4, 16))  # entries of a block, one for each warp
SHARE = Hole("share_entries", (128, 64, 32, 256))  # entries of each warp of a block, one after the other
TOGETHER = Hole("loads_ahead", (4, 2, 1))  # entries of these that are loaded at the same time
AHEAD = Hole("ahead", (1, 4, 2))  # entries that a thread loads before it adds the first
RACE = Hole("race", ("atomics", "temporary"))


def device_styles(structure: Structure, situation: Situation) -> Iterator[Decoration]:
    """Yield the ways in which a structure runs on a GPU.

    Results that are not dense and have no operand's pattern are counted, then filled: a device gives no memory to kernels that run.
    """
    program = structure.program
    target = result_leaf(program)[1].target.tensor
    form = situation.formats[target]
    filled = () if form.is_dense or shares_pattern(program, situation) else (d.Assemble(target, "insert"),)
    for style in (*_rows(program), *_rows_of_workspaces(program), *_entries(program, situation), *device_tiles(program, situation)):
        yield Decoration((*filled, *style.parts), style.origin)


def _rows(program: Program) -> Iterator[Decoration]:
    """Yield outermost loops given to threads, to warps, and to blocks; warps and blocks have threads for one of the loops inside."""
    loops, graph = chain(program.statement, ()), graph_of(program.relations)
    if not loops:
        return
    outer, *inside = loops
    yield Decoration((_outermost(program, graph, outer, outer, "gpu_thread"),), "rows to threads")
    for place, loop in enumerate(inside):
        apart = covers(_written(program), loop, graph)
        if not apart and not _is_one_sum(program, graph, loop, inside[place + 1 :]):
            continue
        threads = to_threads(loop, "no_races" if apart else "parallel_reduction")
        ahead = () if apart else (opened(d.Unroll(loop, 1), factor=AHEAD),)
        yield Decoration((_outermost(program, graph, outer, outer, "gpu_warp"), threads, *ahead), f"rows to warps, {loop} to threads")
        block, warp = new_names(program, "b", "w")
        shared = _outermost(program, graph, block, outer, "gpu_block"), d.Parallelize(warp, "gpu_warp", "no_races")
        if covers(_written(program), outer, graph):
            cut = opened(d.Split(outer, block, warp, 8), factor=ROWS)
            yield Decoration((cut, *shared, threads), f"rows to warps of blocks, {loop} to threads")
        yield Decoration((_outermost(program, graph, outer, outer, "gpu_block"), threads), f"rows to blocks, {loop} to threads")


def _rows_of_workspaces(program: Program) -> Iterator[Decoration]:
    """Yield outermost loops given to warps and blocks where each row fills a workspace: threads take the loop along it, so that they
    never meet, and the warps of a block the loop around that, whose iterations add."""
    loops, graph = chain(program.statement, ()), graph_of(program.relations)
    address = body_address(program.statement, ())
    inside = at(program.statement, address)
    if len(loops) != 1 or not isinstance(inside, Where):
        return
    producer = (*address, 1)
    leaf = at(inside.producer, body_address(inside.producer, ()))
    filling = chain(program.statement, producer)
    if len(filling) < 2 or not isinstance(leaf, Assign) or not covers(leaf.target.indices, filling[-1], graph):
        return
    around, along = filling[-2:]
    threads = to_threads(along, "no_races", (0,))
    for unit in ("warp", "block"):
        rows = _outermost(program, graph, loops[0], loops[0], f"gpu_{unit}", keys=True)
        yield Decoration((rows, threads), f"rows to {unit}s, {along} of {leaf.target.tensor} to threads")
    if not covers(leaf.target.indices, around, graph):
        warps = d.Parallelize(around, "gpu_warp", "atomics", path=(0,))
        origin = f"rows to blocks, {around} to warps, {along} of {leaf.target.tensor} to threads"
        yield Decoration((_outermost(program, graph, loops[0], loops[0], "gpu_block"), warps, threads), origin)


def _entries(program: Program, situation: Situation) -> Iterator[Decoration]:
    """Yield equal shares of an operand's stored entries, down to every level that the outermost loops follow."""
    loops, graph, stored = chain(program.statement, ()), graph_of(program.relations), situation.stored(program)
    if len(stored) != 1:
        return
    names = tuple(new_names(program, "b", "q", "t", "n", "w"))
    for used, position, taken in positions_taken(program, loops, stored[0], situation):
        apart = all(covers(_written(program), loop, graph) for loop in loops[:used])
        for steps, what in _shares(program, graph, position, loops[used:], names, apart):
            yield Decoration((*taken, *steps), f"entries{what}")
        if not apart and _needs_last(program, loops[:used]):
            for steps, what in _products_first(program, position, names):
                yield Decoration((*taken, *steps), f"entries, products first{what}")
        if used > 1:  # the ends of fibres are items too
            (item,) = new_names(program, "m")
            for steps, what in _shares(program, graph, item, (), names, apart):
                yield Decoration((*taken, d.MergePath(position, item), *steps), f"entries and ends of rows{what}")


def _shares(
    program: Program, graph: Provenance, position: str, inside: tuple[str, ...], names: tuple[str, ...], apart: bool
) -> Iterator[tuple[tuple[Part, ...], str]]:
    """Yield splits of positions: so many to each thread; with a loop inside for the threads, so many to each block or warp, or one."""
    block, rest, thread, entry, warp = names
    blocks = d.Parallelize(block, "gpu_block", "no_races")
    cut = opened(d.Split(position, block, rest, 1024), factor=BLOCK), opened(d.Split(rest, thread, entry, 8), factor=THREAD)
    if apart:
        yield (*cut, blocks, to_threads(thread, "no_races")), ""
    else:
        yield (*cut, blocks, to_threads(thread, "atomics")), ", atomics"
        yield (*cut, d.Parallelize(block, "gpu_block", "temporary"), to_threads(thread, "temporary")), ", carried in order"
    warps = opened(d.Split(position, block, rest, 1024), factor=BLOCK), opened(d.Split(rest, warp, entry, 128), factor=SHARE)
    ahead = opened(d.Unroll(entry, 4), factor=TOGETHER)
    for place, loop in enumerate(inside):
        if covers(_written(program), loop, graph):
            threads = d.Parallelize(warp, "gpu_warp", "no_races"), to_threads(loop, "no_races" if apart else "atomics")
            yield (*warps, d.Reorder((block, warp, loop, entry)), blocks, *threads, ahead), f" to warps, {loop} to threads, several ahead"
            few = opened(d.Split(position, block, entry, 32), factor=FEW), d.Reorder((block, loop, entry))
            if apart:
                yield (*few, blocks, to_threads(loop, "no_races")), f", {loop} to threads"
            else:
                yield (*few, blocks, to_threads(loop, "atomics")), f", {loop} to threads, atomics"
                carried = d.Parallelize(block, "gpu_block", "temporary"), to_threads(loop, "no_races")
                yield (*few, *carried), f", {loop} to threads, carried in order"
        elif apart and _is_one_sum(program, graph, loop, inside[place + 1 :]):
            sums = to_threads(loop, "parallel_reduction")
            each = opened(d.Split(position, block, warp, 8), factor=WARPS), blocks, d.Parallelize(warp, "gpu_warp", "no_races")
            yield (*each, sums), f" to warps, {loop} to threads"
            lanes = to_warps(warp)
            yield (*warps, blocks, lanes, sums, ahead), f" to warps, {loop} to threads, several ahead"


def _needs_last(program: Program, loops: tuple[str, ...]) -> bool:
    """Whether all loops belong to one sum and only one operand depends on other loops than the last."""
    leaf = at(program.statement, body_address(program.statement, ()))
    if not isinstance(leaf, Assign) or leaf.operator != "+=" or chain(program.statement, ()) != loops or len(loops) < 2:
        return False
    return all(set(access.indices) in ({loops[-1]}, set(loops)) for access in accesses(leaf.value))


def _products_first(program: Program, position: str, names: tuple[str, ...]) -> Iterator[tuple[tuple[Part, ...], str]]:
    """Yield shares of which each thread computes all products before it adds up rows, so that loads do not wait (Figure 2e)."""
    block, rest, thread, entry, _ = names
    product, workspace = new_names(program, "m", "v")
    steps = (
        opened(d.Split(position, block, rest, 1024), factor=BLOCK), opened(d.Split(rest, thread, entry, 4), factor=HELD),
        d.Precompute(result_leaf(program)[1].value, (entry,), (product,), workspace), opened(d.Unroll(product, 4), factor=HELD),
    )  # fmt: skip
    for race, what in (("atomics", ", atomics"), ("temporary", ", carried in order")):
        blocks = d.Parallelize(block, "gpu_block", "no_races" if race == "atomics" else race)
        yield (*steps, blocks, to_threads(thread, race)), what


def _written(program: Program) -> tuple[str, ...]:
    return result_leaf(program)[1].target.indices


def _is_one_sum(program: Program, graph: Provenance, loop: str, inside: Sequence[str]) -> bool:
    """Whether a loop outside others adds to one component, by one assignment, so that its threads can combine what they add."""
    written, body = _written(program), at(program.statement, body_address(program.statement, ()))
    return isinstance(body, Assign) and not any(covers(written, each, graph) for each in (loop, *inside))


def _outermost(program: Program, graph: Provenance, loop: str, original: str, unit: str, *, keys: bool = False) -> Part:
    """Return a loop given to a unit; where its iterations write the same components, by atomics or into temporaries.

    Warps may have fewer lanes than 32, so that short rows leave none of them without work; all lanes have tables of ``keys`` together.
    """
    holes = {} if covers(_written(program), original, graph) else {"race": RACE}
    if UNITS[unit].member == "warp" and not keys:
        return to_warps(loop, **holes)
    given = d.Parallelize(loop, unit, "no_races")
    if UNITS[unit].member == "thread":
        return opened(given, chunking__chunk=REGISTERS, **holes)
    return opened(given, **holes) if holes else given
