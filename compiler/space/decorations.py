"""Decorations of a structure: parallel loops, vector reductions, unrolling, prefetches, workspace kinds, compiler flags.

A decoration is directives with holes; an optional directive is a hole of its own.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence

from ..concrete.apart import covers
from ..concrete.nodes import Assign, Forall, Program
from ..concrete.provenance import Provenance
from ..concrete.sharing import shared_operand
from ..fresh import fresh
from ..frozen import frozen
from ..notation.nodes import Access, accesses
from ..schedule import directives as d
from ..schedule.addresses import Address, chain, everywhere, frames, leaves, path_to
from ..schedule.context import names_of
from ..schedule.dependence import graph_of
from ..schedule.iteration import inlined, producers_inside
from ..units import UNITS
from ..workspaces import keeping_kinds
from .calls import calls, label_of
from .situation import Situation, Structure, format_read, result_leaf
from .template import Hole, Part, opened

CHUNKING = Hole("chunking", (("dynamic", 64), ("static", None), ("dynamic", 16), ("dynamic", 256), ("guided", 16), ("dynamic", 1)))
RACE = Hole("race", ("atomics", "temporary"))
ROW_DISTANCES = (8, 16, 4, 32)  # prefetch so many stored entries ahead, in the innermost loop over them
FIBRE_DISTANCES = (8, 4, 2)  # the same in loops further out
ENTRY_DISTANCES = (512, 1024, 128)  # prefetch the entries themselves so many ahead, where a loop goes through them in order
UNROLLS = (4, 2, 8)
UNROLL = "unroll_"
"""Prefix of the name of a loop's hole for unrolling."""
SHORT = 24  # average entries of a row up to which sums are made in batches
BUILD = "build"
_FLAGS = "-ffp-contract=fast -fno-math-errno -fno-trapping-math"


@frozen
class Decoration:
    """Directives with holes; ``origin`` names the kind."""

    parts: tuple[Part, ...]
    origin: str = ""


SERIAL = Decoration(())


def parallel_styles(structure: Structure, situation: Situation, threads: int) -> Iterator[Decoration]:
    """Yield the ways in which a structure runs on several threads: the outermost loop with work for all of them, or equal shares of
    stored entries."""
    loops = chain(structure.program.statement, ())
    graph = graph_of(structure.program.relations)
    if threads < 2:
        return
    if not loops:
        yield from _sides(structure.program, situation, graph)
        return
    yield _outermost(structure.program, _long_enough(structure.program, loops, situation, graph, threads), graph)
    stored = situation.stored(structure.program)
    if len(stored) == 1:
        yield from _entries(structure.program, loops, stored[0], situation, threads)


def _sides(program: Program, situation: Situation, graph: Provenance) -> Iterator[Decoration]:
    """Yield the parts of a where or block at the root with parallel outermost loops, where their iterations write different components."""
    steps = []
    for place, part in enumerate(program.statement.children):
        loops, (_, leaf), path = chain(program.statement, (place,)), next(leaves(part)), path_to(program.statement, (place,))
        form = situation.formats.get(leaf.target.tensor)
        if loops and covers(leaf.target.indices, loops[0], graph) and (form is None or form.is_dense):
            steps.append(opened(d.Parallelize(loops[0], "cpu_thread", "no_races", path=path), chunking__chunk=CHUNKING))
    if steps:
        yield Decoration(tuple(steps), "rows")


def _long_enough(program: Program, loops: Sequence[str], situation: Situation, graph: Provenance, threads: int) -> str:
    """Return the outermost loop. If it is known to be too short for all threads, as over the images of a batch of one, return the
    next one that is not and whose iterations write different components, if there is one."""
    known, target = {**situation.lengths, **situation.extents}, result_leaf(program)[1].target

    def suits(loop: str) -> bool:
        length = graph.constant_extent(loop, known)
        return length is None or length >= threads

    apart = (loop for loop in loops[1:] if suits(loop) and covers(target.indices, loop, graph))
    return loops[0] if suits(loops[0]) else next(apart, loops[0])


def _outermost(program: Program, loop: str, graph: Provenance) -> Decoration:
    target = result_leaf(program)[1].target
    threads = d.Parallelize(loop, "cpu_thread", "no_races")
    if covers(target.indices, loop, graph):
        shared = opened(threads, chunking__chunk=CHUNKING)
    else:
        shared = opened(threads, chunking__chunk=CHUNKING, race=RACE)
    return Decoration((shared,), "rows")


def shares(program: Program, threads: int) -> Iterator[Decoration]:
    """Yield the outermost loop cut into as many pieces as threads shall run: all threads, half of them, down to one."""
    loops = chain(program.statement, ())
    if threads < 2 or not loops:
        return
    outer, inner = new_names(program, f"{loops[0]}0", f"{loops[0]}1")
    pieces = Hole("threads", tuple(threads >> halved for halved in range(threads.bit_length())))
    shared = d.Parallelize(outer, "cpu_thread", "no_races", "static")
    apart = covers(result_leaf(program)[1].target.indices, loops[0], graph_of(program.relations))
    cut = opened(d.SplitUp(loops[0], outer, inner, threads), factor=pieces)
    yield Decoration((cut, shared if apart else opened(shared, race=RACE)), "shares")


def _entries(program: Program, loops: tuple[str, ...], access: Access, situation: Situation, threads: int) -> Iterator[Decoration]:
    """Yield splits of the positions of the operand's first levels, as deep as the outermost loops follow its storage."""
    target, graph = result_leaf(program)[1].target, graph_of(program.relations)
    outer, inner = new_names(program, "p0", "p1")
    for used, position, taken in positions_taken(program, loops, access, situation):
        tiles = Hole("tiles", (threads, 4 * threads, 16 * threads))
        shares = opened(d.SplitUp(position, outer, inner, threads), factor=tiles)
        shared = d.Parallelize(outer, "cpu_thread", "no_races", "static")
        apart = all(covers(target.indices, loop, graph) for loop in loops[:used])
        yield Decoration((*taken, shares, shared if apart else opened(shared, race=RACE)), "entries")


def positions_taken(
    program: Program, loops: Sequence[str], access: Access, situation: Situation
) -> Iterator[tuple[int, str, tuple[Part, ...]]]:
    """Yield how many of the outermost loops become one over the positions of an operand's first levels, its name, and the directives."""
    form = format_read(access, program, situation)
    order = [access.subscripts[mode].index for mode in form.order]
    depth = sum(order[: place + 1] == list(loops[: place + 1]) for place in range(len(order)))
    position, *fused = new_names(program, "p", *(f"f{place}" for place in range(1, depth)))
    for used in range(1, depth + 1):
        if form.levels[used - 1].full or not form.unique(used - 1):
            continue
        collapsed = [loops[0], *fused[: used - 1]]
        collapses = (d.Collapse(collapsed[place - 1], loops[place], collapsed[place]) for place in range(1, used))
        yield used, position, (*collapses, d.Pos(collapsed[-1], position, Access(access.tensor)))


def new_names(program: Program, *wishes: str) -> list[str]:
    """Return a name that a program does not have for each of the wishes."""
    taken = names_of(program)
    return [fresh(wish, taken, "_") for wish in wishes]


def shares_pattern(program: Program, situation: Situation) -> bool:
    """Return whether the result has the pattern of an operand."""
    leaf = result_leaf(program)[1]
    value = inlined(leaf.value, producers_inside(program.statement))
    if any(access.tensor not in situation.formats for access in accesses(value)):
        return False
    return shared_operand(leaf.target, situation.formats[leaf.target.tensor], value, situation.formats) is not None


def inner_choices(program: Program, situation: Situation) -> Iterator[Hole]:
    """Yield the open places of inner loops and workspaces: each takes one directive, or none."""
    graph, tree = graph_of(program.relations), situation.tree(program)
    for address, leaf in leaves(program.statement):
        around = frames(program.statement, address)
        able = situation.blas and situation.formats[result_leaf(program)[1].target.tensor].is_dense and not program.relations
        by_blas = tuple(calls(program, address, leaf, situation)) if able else ()
        usually = [hole for hole in by_blas if hole.usual is not None]
        yield from usually  # before vectors of a sum in the same loops: only one of the two is admitted
        if around and isinstance(around[-1], Forall):
            loop = around[-1].index
            yield from _innermost(program, address, leaf, loop, graph, tree, _has_short_rows(leaf, loop, graph, situation))
        yield from (hole for hole in by_blas if hole not in usually)
    yield from _prefetches(program, situation, graph)
    yield from _streams(program, situation, graph)
    if not situation.formats[result_leaf(program)[1].target.tensor].is_dense and not shares_pattern(program, situation):
        for space in program.workspaces:
            if space.indices:
                kinds = (d.WorkspaceDirective(space.name, kind) for kind in keeping_kinds())
                yield Hole(f"kind_{space.name}", (None, *kinds))


def _innermost(
    program: Program, address: Address, leaf: Assign, loop: str, graph: Provenance, tree: frozenset[str], short: bool
) -> Iterator[Hole]:
    """Yield holes for vector instructions of a sum, and for unrolling of a loop over stored entries.

    Sums of short rows usually have no vectors of their own: without a directive, those of many rows are made together
    (``passes.batches``).
    """
    path = path_to(program.statement, address) or None
    label = label_of(loop, path)
    stored = bool(tree.intersection(graph.originals(loop)))
    if not covers(leaf.target.indices, loop, graph):
        vectors = d.Parallelize(loop, "cpu_vector", "parallel_reduction", path=path)
        yield Hole(vector_of(label), (None, vectors) if short else (vectors, None))
    if stored:
        yield Hole(f"{UNROLL}{label}", (None, *(d.Unroll(loop, factor, path=path) for factor in UNROLLS)))


def _has_short_rows(leaf: Assign, loop: str, graph: Provenance, situation: Situation) -> bool:
    """Return whether a loop goes through the last level of an operand at hand that stores few entries below each position above; one over
    positions of several levels goes through it row by row."""
    last = graph.originals(loop)[-1:] if graph.space(loop) == "position" else (loop,)
    for access in accesses(leaf.value):
        positions = situation.fibres.get(access.tensor, ())
        if len(positions) > 1 and _ends_with(access, last, situation):
            return positions[-1] <= SHORT * positions[-2]
    return False


def vector_of(label: str) -> str:
    """Return the name of the hole of the vectors of a sum over a loop."""
    return f"vector_{label}"


def shared_loop(directives: Sequence[d.Directive]) -> d.Parallelize | None:
    """Return the directive that gives a loop to threads."""
    return next((one for one in directives if isinstance(one, d.Parallelize) and UNITS[one.unit].is_thread), None)


def stream_of(tensor: str, label: str) -> str:
    """Return the name of the hole of prefetches of the entries that a loop steps through."""
    return f"stream_{tensor}_{label}"


def _streams(program: Program, situation: Situation, graph: Provenance) -> Iterator[Hole]:
    """Yield prefetches of stored entries where an innermost loop steps through those of one operand alone."""
    for address, leaf in leaves(program.statement):
        around = frames(program.statement, address)
        if not around or not isinstance(around[-1], Forall):
            continue
        loop, path = around[-1].index, path_to(program.statement, address) or None
        stepped = [access for access in accesses(leaf.value) if _ends_with(access, graph.originals(loop), situation)]
        if len(stepped) == 1:
            near = (d.Prefetch(loop, Access(stepped[0].tensor), distance, path=path) for distance in ENTRY_DISTANCES)
            yield Hole(stream_of(stepped[0].tensor, label_of(loop, path)), (*near, None))


def _ends_with(access: Access, indices: tuple[str, ...], situation: Situation) -> bool:
    """Return whether an operand stores the coordinates of its last level, and the last of some indices runs through them."""
    form = situation.formats.get(access.tensor)
    if form is None or form.is_dense or not form.levels[-1].stores_coordinates or not indices:
        return False
    return access.subscripts[form.order[-1]].index == indices[-1]


def _prefetches(program: Program, situation: Situation, graph: Provenance) -> Iterator[Hole]:
    """Yield prefetches of rows of dense operands that a stored coordinate chooses."""
    gathered = _compressed(situation, situation.stored(program))
    seen: set[tuple[str, str]] = set()
    for address, node in everywhere(program.statement):
        if not isinstance(node, Forall) or not gathered.intersection(graph.originals(node.index)):
            continue
        known = graph.known_after([frame.index for frame in frames(program.statement, (*address, 0)) if isinstance(frame, Forall)])
        deepest = not any(gathered.intersection(graph.originals(inner.index)) for inner in _loops_inside(node))
        here = {index for index in graph.originals(node.index) if known.get(index) == max(known.values())} & gathered
        path = path_to(program.statement, address) or None
        for _, leaf in leaves(node):
            for access in accesses(leaf.value):
                if here.intersection(_row_indices(access, situation)) and (access.tensor, node.index) not in seen:
                    seen.add((access.tensor, node.index))
                    distances = ROW_DISTANCES if deepest else FIBRE_DISTANCES
                    near = tuple(d.Prefetch(node.index, Access(access.tensor), distance, path=path) for distance in distances)
                    yield Hole(f"prefetch_{access.tensor}_{node.index}", (*near, None) if deepest else (None, *near))


def _loops_inside(loop: Forall) -> list[Forall]:
    return [node for _, node in everywhere(loop.body) if isinstance(node, Forall)]


def _compressed(situation: Situation, stored: tuple[Access, ...]) -> frozenset[str]:
    """Return the indices whose coordinates are read from storage."""
    return frozenset(
        name
        for access in stored
        for mode, kind in zip(situation.formats[access.tensor].order, situation.formats[access.tensor].levels, strict=True)
        for name in access.subscripts[mode].indices
        if not kind.full
    )


def _row_indices(access: Access, situation: Situation) -> frozenset[str]:
    """Return the indices that choose a row of a dense operand: all but the one of its last mode. Modes of extent 1 do not count, so that
    an operand of one column has no rows: its elements are gathered in vectors, as those of a vector are."""
    form = situation.formats.get(access.tensor)
    if form is None or not form.is_dense:
        return frozenset()
    modes = [access.subscripts[mode].indices for mode in form.order]
    long = [names for names in modes if any(situation.extents.get(name) != 1 for name in names)]
    return frozenset(name for names in long[:-1] for name in names)


def build_choices(compilers: Sequence[str] = ()) -> Hole:
    """Return flags other than the default ones, and other compilers with the default flags of this machine and with each of these."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        flags = [f"-O3 -march=native -mprefer-vector-width=256 {_FLAGS}", f"-O2 -march=native {_FLAGS}", f"-O3 {_FLAGS}"]
    else:
        flags = [f"-O2 -mcpu=native {_FLAGS}", f"-O3 {_FLAGS}"]
    others = (d.Build(compiler, flag) for compiler in compilers for flag in (None, *flags))
    return Hole(BUILD, (None, *(d.Build(None, flag) for flag in flags), *others))
