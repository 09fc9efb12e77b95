"""Elements of a program's workspaces, and of buffers of loops through subsections, as sums of products of extents and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod

from ..concrete.nodes import Program, Workspace, assignments
from ..concrete.provenance import Provenance
from ..concrete.said import said_of
from ..format import Format
from ..notation.nodes import Access, accesses
from ..schedule.dependence import graph_of
from ..views import View
from .distances import REGISTERS
from .lifespans import together
from .situation import Situation


def memory_of(program: Program, situation: Situation) -> str:
    """Return the elements of the workspaces and buffers of one thread that are in memory at one time and too large for registers, "0"
    where there are none: a sum, or ``max(..., ...)`` of the sums of several times."""
    buffers = list(_shown(program, situation))
    times = [[*_products(spaces, graph_of(program.relations), situation), *buffers] for spaces in together(program)]
    sums = list(dict.fromkeys(" + ".join(products) or "0" for products in times))
    return sums[0] if len(sums) == 1 else f"max({', '.join(sums)})"


def _products(spaces: Iterable[Workspace], graph: Provenance, situation: Situation) -> Iterator[str]:
    """Yield the elements of workspaces that are too large for registers."""
    for space in spaces:
        lengths = [graph.constant_extent(index, situation.extents) for index in space.indices]
        if None not in lengths and prod(length or 0 for length in lengths) <= REGISTERS:
            continue
        yield " * ".join(_length_of(index, graph, situation) for index in space.indices) or "1"


def _length_of(index: str, graph: Provenance, situation: Situation) -> str:
    """Return how many values an index has: a number where it is known, otherwise a product of extents."""
    positions = counted_positions(graph, index, situation.formats)
    counts = None if positions is None else situation.fibres.get(positions[0].tensor)
    if positions is not None and counts is not None:
        return str(int(counts[positions[1]]))
    return str(graph.constant_extent(index) or " * ".join(graph.originals(index)))


def counted_positions(graph: Provenance, index: str, formats: Mapping[str, Format]) -> tuple[Access, int] | None:
    """Return whose positions, and those of which level, an index counts all of; None where it counts something else."""
    if graph.space(index) != "position" or (counted := graph.position_relation(index)).position != index:
        return None
    access, last = counted.access, graph.originals(index)[-1]
    order = [access.subscripts[mode].index for mode in formats[access.tensor].order]
    return access, order.index(last)


def buffers_of(program: Program, formats: Mapping[str, Format]) -> Iterator[tuple[tuple[int, str], ...]]:
    """Yield the buffers that keep a place in a subsection for each of many parents (Liu et al., section 6.3.2): for each buffer the
    (factor, index) pairs whose product is its number of elements.

    Args:
        program: scheduled.
        formats: of operands and result.
    """
    reads = dict.fromkeys(access for assign in assignments(program.statement) for access in accesses(assign.value))
    for access in reads:
        form = said_of(access, program.conversions) or formats.get(access.tensor)
        if isinstance(form, View):
            for level in range(len(form)):
                for terms in product(*form.parents_open(level)):
                    if terms:
                        yield tuple((factor, access.subscripts[mode].index) for mode, factor in terms)


def _shown(program: Program, situation: Situation) -> Iterator[str]:
    """Yield the elements of buffers that are too large for registers, as products."""
    for sizes in buffers_of(program, situation.formats):
        if prod(factor * situation.extents.get(index, REGISTERS + 1) for factor, index in sizes) > REGISTERS:
            yield " * ".join(name for factor, index in sizes for name in ([str(factor)] if factor > 1 else []) + [index])
