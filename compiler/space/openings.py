"""Stages that are closed unless asked for: how operands meet, how they are traversed and stored, how sparse
results are put together, and who compiles.

Each open place is a hole for one directive, or for none: what the compiler chooses by itself comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..concrete.lattice import stored_operands
from ..concrete.nodes import Forall, Program
from ..concrete.said import operand_of
from ..format import Format
from ..levels import COMPRESSED, level_kinds
from ..schedule import directives as d
from ..schedule.addresses import everywhere, frames, path_to
from ..schedule.context import Context
from ..schedule.dependence import graph_of
from ..schedule.iteration import Iteration
from .defaults import level_protocols
from .selection import Selection
from .situation import Situation, format_read, result_leaf
from .template import Hole


def opened_stages(program: Program, situation: Situation, selection: Selection) -> Iterator[Hole]:
    """Yield a hole for every open place of the stages that are opened; some choices may be illegal."""
    stages = {"formats": _formats, "protocols": _protocols, "results": _results, "merges": _merges}
    for name, stage in stages.items():
        if name in selection.opened:
            yield from stage(program, situation)


def _merges(program: Program, situation: Situation) -> Iterator[Hole]:
    """Yield the strategies of loops in which stored operands meet."""
    graph, iteration = graph_of(program.relations), Iteration(program, Context(situation.formats, situation.extents))
    for address, node in everywhere(program.statement):
        if not isinstance(node, Forall):
            continue
        around = tuple(frame.index for frame in frames(program.statement, (*address, 0)) if isinstance(frame, Forall))
        known = graph.known_after(around)
        completed = tuple(index for index in graph.originals(node.index) if known.get(index) == len(around) - 1)
        if completed and len(set(stored_operands(iteration.stepped(node.body, around, completed)))) > 1:
            path = path_to(program.statement, address) or None
            label = "_".join(map(str, (node.index, *(path or ()))))
            yield Hole(f"merge_{label}", (None, *(d.Merge(node.index, strategy, path=path) for strategy in d.MERGES)))


def _protocols(program: Program, situation: Situation) -> Iterator[Hole]:
    """Yield other ways to traverse the levels of stored operands."""
    for access in situation.stored(program):
        usual = level_protocols(format_read(access, program, situation))
        others = (chosen for chosen in product(("step", "locate"), repeat=len(usual)) if chosen != usual)
        choices = (d.ProtocolDirective(operand_of(access), chosen) for chosen in others)
        yield Hole(f"protocol_{_label(access.tensor, access.indices)}", (None, *choices))


def _formats(program: Program, situation: Situation) -> Iterator[Hole]:
    """Yield other formats for stored operands, over the modes in the order in which they are read."""
    for access in situation.stored(program):
        form = format_read(access, program, situation)
        choices = (d.Convert(operand_of(access), str(other)) for other in _level_choices(form) if other != form)
        yield Hole(f"format_{_label(access.tensor, access.indices)}", (None, *choices))


def _results(program: Program, situation: Situation) -> Iterator[Hole]:
    """Yield the ways to put a sparse result together: components are appended, or counted and then filled in, or gathered in a
    workspace first."""
    result = result_leaf(program)[1].target.tensor
    if not situation.formats[result].is_dense:
        yield Hole(f"result_{result}", (None, *(d.Assemble(result, strategy) for strategy in d.ASSEMBLIES)))


def _level_choices(form: Format) -> Iterator[Format]:
    """Yield formats over the same modes: the outer levels as they are or compressed, and every kind for the innermost one."""
    outer = form.levels[:-1]
    for above in dict.fromkeys((outer, (COMPRESSED,) * len(outer))):
        for kind in level_kinds():
            if kind.misplaced(above[-1] if above else None) is None and not kind.mirrors:  # for symmetric matrices only
                other = Format((*above, kind), form.order)
                if not (kind.shares_positions and other.unique(len(above) - 1)):  # otherwise each parent has one slot
                    yield other


def _label(tensor: str, indices: tuple[str, ...]) -> str:
    return "_".join((tensor, *indices))
