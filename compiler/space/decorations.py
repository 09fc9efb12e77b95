"""What is added to a structure: parallel loops, vector reductions, unrolling, prefetches, workspace kinds, compiler flags.

A decoration is the text of directives, in which ``{name}`` stands for an open parameter; a choice may be a whole directive, or
nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass

from ..concrete.apart import covers
from ..concrete.nodes import Assign, Forall, Program, Where
from ..concrete.provenance import Provenance
from ..concrete.sharing import shared_operand
from ..format import LevelKind
from ..notation.nodes import Access, accesses
from ..schedule.addresses import Address, chain, everywhere, frames, leaves, path_to
from ..schedule.context import names_of
from ..schedule.dependence import graph_of
from ..schedule.iteration import inlined, producers_inside
from .situation import Choice, Situation, Structure, format_read, result_leaf

Parameters = tuple[tuple[str, tuple[Choice, ...]], ...]
CHUNKINGS: tuple[Choice, ...] = ("dynamic, 64", "static", "dynamic, 16", "dynamic, 256", "guided, 16", "dynamic, 1")
RACES: tuple[Choice, ...] = ("atomics", "temporary")
ROW_DISTANCES = (8, 16, 4, 32)  # stored entries ahead, in the innermost loop over them
FIBRE_DISTANCES = (2, 4)  # in loops further out
ENTRY_DISTANCES = (512, 1024, 128)  # stored entries ahead of those that a loop goes through in order
UNROLLS = (4, 2, 8)
_FLAGS = "-ffp-contract=fast -fno-math-errno -fno-trapping-math"


@dataclass(frozen=True)
class Decoration:
    """Directives with open parameters; ``origin`` names the kind."""

    text: str
    parameters: Parameters = ()
    origin: str = ""


SERIAL = Decoration("")


def parallel_styles(structure: Structure, situation: Situation, threads: int) -> Iterator[Decoration]:
    """Yield the ways in which a structure runs on several threads: the outermost loop, or equal shares of stored entries."""
    loops = chain(structure.program.statement, ())
    graph = graph_of(structure.program.relations)
    if threads < 2:
        return
    if not loops:
        yield from _sides(structure.program, situation, graph)
        return
    yield _outermost(structure.program, loops[0], situation, graph)
    stored = situation.stored(structure.program)
    if len(stored) == 1:
        yield from _entries(structure.program, loops, stored[0], situation, threads)


def _sides(program: Program, situation: Situation, graph: Provenance) -> Iterator[Decoration]:
    """Yield both sides of a where at the root in parallel, as far as the iterations of their outermost loops write apart."""
    if not isinstance(program.statement, Where):
        return
    steps = []
    for place, path in ((1, "[0]"), (0, "[1]")):
        loops, (_, leaf) = chain(program.statement, (place,)), next(leaves(program.statement.children[place]))
        form = situation.formats.get(leaf.target.tensor)
        if loops and covers(leaf.target.indices, loops[0], graph) and (form is None or form.is_dense):
            steps.append(f"parallelize({path}, {loops[0]}, cpu_thread, no_races, {{chunking}})")
    if steps:
        yield Decoration("; ".join(steps), (("chunking", CHUNKINGS),), "rows")


def _outermost(program: Program, loop: str, situation: Situation, graph: Provenance) -> Decoration:
    parameters: Parameters = (("chunking", CHUNKINGS),)
    target = result_leaf(program)[1].target
    race = "no_races"
    if not covers(target.indices, loop, graph):
        race, parameters = "{race}", (*parameters, ("race", RACES))
    text = f"parallelize({loop}, cpu_thread, {race}, {{chunking}})"
    if not (situation.formats[target.tensor].is_dense or shares_pattern(program, situation)):
        text += f"; assemble({target.tensor}, insert)"
    return Decoration(text, parameters, "rows")


def _entries(program: Program, loops: tuple[str, ...], access: Access, situation: Situation, threads: int) -> Iterator[Decoration]:
    """Yield splits of the positions of the operand's first levels, as deep as the outermost loops follow its storage."""
    form = format_read(access, program, situation)
    order = [access.subscripts[mode].index for mode in form.order]
    depth = sum(order[: place + 1] == list(loops[: place + 1]) for place in range(len(order)))
    names = list(_fresh(program, ("p", "p0", "p1", *(f"f{place}" for place in range(1, depth)))))
    position, outer, inner, *fused = names
    target, graph = result_leaf(program)[1].target, graph_of(program.relations)
    for used in range(1, depth + 1):
        if form.levels[used - 1] is LevelKind.DENSE or not form.unique(used - 1):
            continue
        collapsed = [loops[0], *fused[: used - 1]]
        steps = [f"collapse({collapsed[place - 1]}, {loops[place]}, {collapsed[place]})" for place in range(1, used)]
        steps += [f"pos({collapsed[-1]}, {position}, {access.tensor})", f"split_up({position}, {outer}, {inner}, {{tiles}})"]
        parameters: Parameters = (("tiles", (threads, 4 * threads, 16 * threads)),)
        race = "no_races"
        if not all(covers(target.indices, loop, graph) for loop in loops[:used]):
            race, parameters = "{race}", (*parameters, ("race", RACES))
        steps.append(f"parallelize({outer}, cpu_thread, {race}, static)")
        yield Decoration("; ".join(steps), parameters, "entries")


def _fresh(program: Program, wishes: tuple[str, ...]) -> Iterator[str]:
    taken = names_of(program)
    for wish in wishes:
        yield next(name for name in (f"{wish}{'_' * count}" for count in range(9)) if name not in taken)


def shares_pattern(program: Program, situation: Situation) -> bool:
    """Return whether the result has the pattern of an operand."""
    leaf = result_leaf(program)[1]
    value = inlined(leaf.value, producers_inside(program.statement))
    if any(access.tensor not in situation.formats for access in accesses(value)):
        return False
    return shared_operand(leaf.target, situation.formats[leaf.target.tensor], value, situation.formats) is not None


def inner_choices(program: Program, situation: Situation) -> Iterator[Decoration]:
    """Yield what the loops of a program may do beside, one open parameter each."""
    graph, tree = graph_of(program.relations), situation.tree(program)
    for address, leaf in leaves(program.statement):
        around = frames(program.statement, address)
        if around and isinstance(around[-1], Forall):
            yield from _innermost(program, address, leaf, around[-1].index, graph, tree)
    yield from _prefetches(program, situation, graph)
    yield from _streams(program, situation, graph)
    if not situation.formats[result_leaf(program)[1].target.tensor].is_dense and not shares_pattern(program, situation):
        for space in program.workspaces:
            if space.indices:
                kinds = tuple(f"workspace({space.name}, {kind})" for kind in ("list", "bitmap", "hashed"))
                yield _parameter(f"kind_{space.name}", ("", *kinds))


def _innermost(
    program: Program, address: Address, leaf: Assign, loop: str, graph: Provenance, tree: frozenset[str]
) -> Iterator[Decoration]:
    """Yield vector instructions for a sum, and unrolling of a loop over stored entries."""
    path = list(path_to(program.statement, address))
    where, label = (f"{path}, " if path else ""), loop + "".join(f"_{number}" for number in path)
    stored = bool(tree.intersection(graph.originals(loop)))
    if not covers(leaf.target.indices, loop, graph):
        vector = f"parallelize({where}{loop}, cpu_vector, parallel_reduction)"
        yield _parameter(f"vector_{label}", (vector, ""))
    if stored:
        yield _parameter(f"unroll_{label}", ("", *(f"unroll({where}{loop}, {factor})" for factor in UNROLLS)))


def _parameter(name: str, choices: tuple[Choice, ...]) -> Decoration:
    return Decoration(f"{{{name}}}", ((name, choices),))


def _streams(program: Program, situation: Situation, graph: Provenance) -> Iterator[Decoration]:
    """Yield prefetches of the entries that an innermost loop goes through, where those of one operand alone lead it."""
    for address, leaf in leaves(program.statement):
        around = frames(program.statement, address)
        if not around or not isinstance(around[-1], Forall):
            continue
        loop, path = around[-1].index, list(path_to(program.statement, address))
        led = [access for access in accesses(leaf.value) if _ends_with(access, graph.originals(loop), situation)]
        if len(led) == 1:
            arguments = f"{path}, {loop}, {led[0].tensor}" if path else f"{loop}, {led[0].tensor}"
            label = f"{loop}" + "".join(f"_{number}" for number in path)
            near = tuple(f"prefetch({arguments}, {distance})" for distance in ENTRY_DISTANCES)
            yield _parameter(f"stream_{led[0].tensor}_{label}", (*near, ""))


def _ends_with(access: Access, indices: tuple[str, ...], situation: Situation) -> bool:
    """Return whether an operand's last level stores coordinates: those of the last of some indices."""
    form = situation.formats.get(access.tensor)
    if form is None or form.is_dense or not form.levels[-1].stores_coordinates or not indices:
        return False
    return access.subscripts[form.order[-1]].index == indices[-1]


def _prefetches(program: Program, situation: Situation, graph: Provenance) -> Iterator[Decoration]:
    """Yield prefetches of rows of dense operands that a stored coordinate chooses."""
    gathered = _compressed(situation, situation.stored(program))
    seen: set[tuple[str, str]] = set()
    for address, node in everywhere(program.statement):
        if not isinstance(node, Forall) or not gathered.intersection(graph.originals(node.index)):
            continue
        known = graph.known_after([frame.index for frame in frames(program.statement, (*address, 0)) if isinstance(frame, Forall)])
        deepest = not any(gathered.intersection(graph.originals(inner.index)) for inner in _loops_inside(node))
        here = {index for index in graph.originals(node.index) if known.get(index) == max(known.values())} & gathered
        path = list(path_to(program.statement, address))
        for _, leaf in leaves(node):
            for access in accesses(leaf.value):
                if here.intersection(_row_indices(access, situation)) and (access.tensor, node.index) not in seen:
                    seen.add((access.tensor, node.index))
                    arguments = f"{path}, {node.index}, {access.tensor}" if path else f"{node.index}, {access.tensor}"
                    near = tuple(f"prefetch({arguments}, {distance})" for distance in (ROW_DISTANCES if deepest else FIBRE_DISTANCES))
                    yield _parameter(f"prefetch_{access.tensor}_{node.index}", (*near, "") if deepest else ("", *near))


def _loops_inside(loop: Forall) -> list[Forall]:
    return [node for _, node in everywhere(loop.body) if isinstance(node, Forall)]


def _compressed(situation: Situation, stored: tuple[Access, ...]) -> frozenset[str]:
    """Return the indices whose coordinates are read from storage."""
    return frozenset(
        name
        for access in stored
        for mode, kind in zip(situation.formats[access.tensor].order, situation.formats[access.tensor].levels, strict=True)
        for name in access.subscripts[mode].indices
        if kind is not LevelKind.DENSE
    )


def _row_indices(access: Access, situation: Situation) -> frozenset[str]:
    """Return the indices that choose a row of a dense operand: all but the one of its last mode."""
    form = situation.formats.get(access.tensor)
    if form is None or not form.is_dense:
        return frozenset()
    return frozenset(name for mode in form.order[:-1] for name in access.subscripts[mode].indices)


def build_choices() -> Decoration:
    """Return compilers and flags other than the default ones."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        flags = [f"-O3 -march=native -mprefer-vector-width=256 {_FLAGS}", f"-O2 -march=native {_FLAGS}", f"-O3 {_FLAGS}"]
    else:
        flags = [f"-O2 -mcpu=native {_FLAGS}", f"-O3 {_FLAGS}"]
    return _parameter("build", ("", *(f'build(auto, "{flag}")' for flag in flags)))
