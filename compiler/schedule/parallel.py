"""Preconditions of ``parallelize``: nesting of units, coiteration, results that must be written in order, races.

Races are checked over the whole parallel nest. A loop of which two iterations may write the same component may have the tag
``no_races`` if another loop of the nest makes the writes atomic (as in the GPU SpMV of Senanayake et al., Figure 2).
"""

from __future__ import annotations

from collections.abc import Collection

from ..concrete.apart import apart
from ..concrete.assembled import appended_indices, handing, ordered_loops
from ..concrete.lattice import is_everywhere, stored_operands
from ..concrete.loop_tag import PRIVATE
from ..concrete.nodes import Assign, Forall, Program, Where, reads, targets, walk
from ..concrete.provenance import Provenance
from ..concrete.sharing import shared_pattern
from ..errors import ScheduleError
from ..format import Format
from ..frozen import frozen
from ..native.devices import require_gpu
from ..notation.nodes import Access, Literal, index_subscript
from ..notation.printer import show
from ..units import UNITS
from ..workspaces import keeps_entries
from . import directives as d
from .addresses import Address, at, enclosing_loops, everywhere, find_loop, frames, leaves
from .context import Context
from .dependence import graph_of
from .iteration import Iteration, producers_inside
from .rules import Rule, refuse


def check_units(program: Program, target: str, units: Collection[str]) -> None:
    """Refuse a program with a loop on a unit that its target does not have, or with a C compiler where units are those of a GPU.

    Args:
        program: a scheduled program.
        target: its name.
        units: those that it has.

    Raises:
        BuildError: the unit is one of GPUs, and this machine has none.
        ScheduleError: the target has no such unit, or no C compiler.
    """
    if program.build != (None, None) and units and all(UNITS[unit].member for unit in units):
        raise ScheduleError(f"build(...) names a C compiler, and kernels for target {target} are not compiled by one; leave it out")
    for loop in walk(program.statement):
        if isinstance(loop, Forall) and loop.tag.unit is not None and loop.tag.unit not in units:
            wish, those = f"parallelize({loop.index}, {loop.tag.unit})", ", ".join(sorted(units)) or "none"
            if loop.tag.is_on_gpu:
                require_gpu(wish, f"target {target} has {those}")
            raise ScheduleError(f"{wish}: target {target} has no such unit; it has {those}")


def check_parallel_loop(program: Program, directive: d.Parallelize, context: Context) -> None:
    """Refuse a loop that ``parallelize`` has tagged, if it cannot run in parallel in the finished program."""
    address = find_loop(program.statement, directive.index, directive.path)
    loop = at(program.statement, address)
    assert isinstance(loop, Forall)
    graph = graph_of(program.relations)
    _check_nesting(program, address, loop, graph)
    _check_coiteration(program, address, loop, graph, context)
    for write in _writes(program, address, loop):
        _check_insert(program, address, loop, write, graph, context)
        _check_filled(program, loop, write, graph, context)
        _check_races(program, address, loop, write, graph, context)


def _check_nesting(program: Program, address: Address, loop: Forall, graph: Provenance) -> None:
    unit = UNITS[str(loop.tag.unit)]
    tagged = [node.tag for _, node in everywhere(program.statement) if isinstance(node, Forall) and node.tag.unit]
    if any(other.is_on_gpu != loop.tag.is_on_gpu for other in tagged):
        refuse(Rule.UNIT_NESTING, "one program runs on the CPU or on the GPU, not on both")
    for frame in frames(program.statement, address):
        if isinstance(frame, Forall) and frame.tag.unit and UNITS[frame.tag.unit].rank >= unit.rank:
            refuse(Rule.UNIT_NESTING, f"loop {loop.index} on {unit.name} cannot stand inside loop {frame.index} on {frame.tag.unit}")
    inner = [node.index for _, node in everywhere(loop.body) if isinstance(node, Forall) and graph.constant_extent(node.index) is None]
    if unit.is_vector and inner:
        refuse(
            Rule.VECTOR_INNERMOST,
            f"loop {inner[0]} stands inside {loop.index} and has no constant length; vector loops hold no others than those that can be"
            " written out",
        )


def _check_coiteration(program: Program, address: Address, loop: Forall, graph: Provenance, context: Context) -> None:
    around = [frame.index for frame in frames(program.statement, address) if isinstance(frame, Forall)]
    known = graph.known_after((*around, loop.index))
    completed = tuple(index for index in graph.originals(loop.index) if known.get(index) == len(around))
    if not completed or loop.tag.merge == "locate":
        return
    found = Iteration(program, context).stepped(loop.body, (*around, loop.index), completed)
    operands = set(stored_operands(found))
    if graph.space(loop.index) == "position":
        operands |= {graph.position_access(loop.index)}
    repeated = sorted(show(access) for access in operands if _repeats(access, completed, context))
    if repeated and graph.space(loop.index) == "coordinate":
        refuse(
            Rule.NO_PARALLEL_COITERATION,
            f"{repeated[0]} stores coordinates of loop {loop.index} more than once, where one iteration finds the next;"
            f" split it and parallelize the outer loop, or collapse it and split positions",
        )
    mixed = loop.tag.is_vector and operands and is_everywhere(found)
    if len(operands) > 1 or mixed:
        names = " and ".join(sorted(show(access) for access in operands))
        refuse(
            Rule.NO_PARALLEL_COITERATION,
            f"{names} {'meet' if len(operands) > 1 else 'meets dense operands'} in loop {loop.index}, where one iteration finds the next;"
            f" split it and parallelize the outer loop",
        )


def _repeats(access: Access, indices: tuple[str, ...], context: Context) -> bool:
    """Return whether a loop over the indices has to skip equal coordinates that a level of an operand stores."""
    form = context.format_of(access)
    levels = context.levels(access)
    return form is not None and any(not form.unique(level) and set(names) & set(indices) for level, (_, names) in enumerate(levels))


@frozen
class _Write:
    """An assignment inside a parallel loop, to a target that is not private to one iteration.

    Attributes:
        loops: the loops around it, inside the ``where`` of its target.
    """

    assign: Assign
    loops: tuple[Forall, ...]
    local: bool


def _writes(program: Program, address: Address, loop: Forall) -> list[_Write]:
    private = producers_inside(loop.body)
    found = []
    for below, assign in leaves(loop):
        if assign.target.tensor in private:
            continue
        whole = (*address, *below)
        around = frames(program.statement, whole)
        owners = [
            depth
            for depth, frame in enumerate(around)
            if isinstance(frame, Where) and whole[depth] == 1 and assign.target.tensor in targets(frame.producer)
        ]
        loops = tuple(frame for frame in around[max(owners, default=0) :] if isinstance(frame, Forall))
        found.append(_Write(assign, loops, bool(owners)))
    return found


def _check_insert(program: Program, address: Address, loop: Forall, write: _Write, graph: Provenance, context: Context) -> None:
    target = write.assign.target
    form = context.types.get(target.tensor)
    if write.local or form is None or form.is_dense:
        return
    if sharing_operand(program, target, graph, context) is not None:
        return
    if loop.tag.is_on_gpu and (target.tensor, "insert") in program.assembly:
        _check_in_order(program, target, address, loop, form, graph, context)
        return
    outermost = target.subscripts[form.order[0]].index
    rows = loop.tag.is_threaded or (target.tensor, "insert") in program.assembly
    if rows and not any(isinstance(frame, Forall) for frame in frames(program.statement, address)):
        if graph.originals(loop.index) == (outermost,):
            _check_rows(program, target, loop, form, context)
            return
        refuse(Rule.PARALLEL_INSERT, f"{show(target)} is written in parallel over its outermost level, {outermost}, not {loop.index}")
    say = "" if loop.tag.is_threaded else f", and say assemble({target.tensor}, insert)"
    refuse(
        Rule.PARALLEL_INSERT,
        f"{target.tensor} ({form}) cannot be written in any order, nor has it the pattern of an operand; parallelize the outermost loop,"
        f" over {outermost}{say}",
    )


def _check_filled(program: Program, loop: Forall, write: _Write, graph: Provenance, context: Context) -> None:
    """Refuse threads that together fill a workspace which keeps its entries, or whose consumer needs them. Threads of a GPU may: they fill
    tables."""
    name = write.assign.target.tensor
    if not write.local or not loop.tag.is_dealt:
        return
    kind = next((space.kind for space in program.workspaces if space.name == name), None)
    if loop.tag.is_on_gpu and write.assign.target.subscripts and kind in (None, "hashed"):
        return
    if keeps_entries(kind) or name in handing(program.statement, keeping(program, graph, context)):
        refuse(
            Rule.PARALLEL_INSERT,
            f"iterations of {loop.index} fill workspace {name} together, and threads cannot put entries into one list;"
            " put the where inside the parallel loop, or keep the workspace dense for a dense result",
        )


def keeping(program: Program, graph: Provenance, context: Context) -> frozenset[str]:
    """Return the tensors that store only entries: workspaces that keep them, and sparse results that do not share an operand's pattern."""
    found = {space.name for space in program.workspaces if keeps_entries(space.kind)}
    for _, leaf in leaves(program.statement):
        form = context.types.get(leaf.target.tensor)
        if form is not None and not form.is_dense and sharing_operand(program, leaf.target, graph, context) is None:
            found.add(leaf.target.tensor)
    return frozenset(found)


def _check_rows(program: Program, target: Access, loop: Forall, form: Format, context: Context) -> None:
    """Refuse threads that would have to collect components of the result together, because these are not computed row by row."""
    ordered = ordered_loops(program, graph_of(program.relations), target, form, context.format_of)
    if (target.tensor, "workspace") in program.assembly or ordered == 0 or _are_beside(program, ordered):
        _refuse_collecting(target, loop)


def _check_in_order(
    program: Program, target: Access, address: Address, loop: Forall, form: Format, graph: Provenance, context: Context
) -> None:
    """Refuse iterations on a GPU that do not append one behind another, but would have to collect components of the result together."""
    ordered = ordered_loops(program, graph, target, form, context.format_of)
    around = enclosing_loops(program.statement, address)
    inside = ordered is not None and len(around) >= ordered
    levels = appended_indices(program, graph, target, form)
    known = [index for index in levels if index in graph.known_after(around)]
    if _are_beside(program, ordered):
        _refuse_collecting(target, loop)
    if inside or len(known) == len(levels):
        return
    first = Access(target.tensor, tuple(map(index_subscript, levels[: len(known) + 1])))
    if not apart(Assign(first, "=", Literal(1)), loop.index, around, graph, context.format_of):
        refuse(
            Rule.PARALLEL_INSERT,
            f"iterations of {loop.index} append to one fibre of {show(target)}, since they may have equal {levels[len(known)]}; give parts"
            f" of {levels[len(known)]} to the units, in a loop of its own",
        )


def _are_beside(program: Program, ordered: int | None) -> bool:
    """Whether components are collected in a program whose producers of workspaces stand outside of its loops."""
    return ordered is not None and not isinstance(program.statement, Forall)


def _refuse_collecting(target: Access, loop: Forall) -> None:
    refuse(
        Rule.PARALLEL_INSERT,
        f"components of {show(target)} do not come in the order of its levels inside loop {loop.index}, and threads cannot collect"
        " them together; reorder the loops",
    )


def sharing_operand(program: Program, target: Access, graph: Provenance, context: Context) -> Access | None:
    """Return the operand whose pattern a sparse result shares, or None."""
    form = context.types.get(target.tensor)
    if form is None or form.is_dense or (program.add, program.multiply) != ("+", "*"):
        return None
    read = {access: context.format_of(access) for access in reads(program.statement)}
    known = {access.tensor: found for access, found in read.items() if found is not None}
    if any(found != known[access.tensor] for access, found in read.items() if found is not None):
        return None
    return shared_pattern(program.statement, graph, target, form, known)


def _check_races(program: Program, address: Address, loop: Forall, write: _Write, graph: Provenance, context: Context) -> None:
    parallel = [frame for frame in write.loops if frame.tag.unit is not None]
    around = enclosing_loops(program.statement, address)
    if apart(write.assign, loop.index, around, graph, context.format_of):
        return
    if any(frame.tag.race in ("atomics", "ignore_races") for frame in parallel):
        return
    if loop.tag.race in PRIVATE:
        return
    elsewhere = [frame.index for frame in parallel if frame.tag.race in PRIVATE]
    target = show(write.assign.target)
    if elsewhere:
        refuse(
            Rule.RACE_OVER_VARIABLE,
            f"iterations of {loop.index} write the same components of {target}; the strategy of loop {elsewhere[0]} keeps apart only"
            f" its own iterations: give {loop.index} one too, or use atomics",
        )
    refuse(
        Rule.NO_RACES,
        f"iterations of {loop.index} write the same components of {target}; use atomics, temporary or parallel_reduction, or keep"
        " the sum inside one iteration",
    )
