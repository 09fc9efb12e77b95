"""How wide the vectors of a kernel are to be: the widest of the machine, unless those of half the width fit known extents better.

A loop of between one and two of the widest vectors is compiled to one of these and a rest in narrower ones, each with loads, additions and
stores of its own. Vectors of half the width then take less time; in longer loops the rest matters little.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod

from ..compiler.concrete.nodes import Assign
from ..compiler.format import Format
from ..compiler.native.machine import this_machine
from ..compiler.native.toolchain import vector_bytes
from ..compiler.notation.nodes import Access, accesses
from ..compiler.schedule import directives as d
from ..compiler.schedule.addresses import enclosing_loops, leaves
from ..compiler.schedule.dependence import graph_of
from ..compiler.space.candidates import Candidate
from ..compiler.space.template import Hole
from .problem import Problem


def halved_build(problem: Problem, candidate: Candidate, hole: Hole, stepped: Collection[str]) -> d.Build | None:
    """Return the build with vectors of half the usual width where these fit better; None: they do not, or there is no such build.

    Args:
        problem: gives extents and the size of values.
        candidate: the schedule.
        hole: the hole for its builds.
        stepped: indices of the operands that store coordinates.
    """
    widest = this_machine().vector_bytes
    rows = [values * problem.dtype.itemsize for values in _written_rows(problem, candidate, stepped)]
    return halved(hole) if rows and all(widest < row < 2 * widest for row in rows) else None


def halved(hole: Hole) -> d.Build | None:
    """Return the build by the default compiler whose vectors have half of this machine's width; None where the hole has none."""
    builds = (one for one in hole.choices if isinstance(one, d.Build) and one.compiler is None and one.flags is not None)
    return next((one for one in builds if 2 * vector_bytes(tuple((one.flags or "").split())) == this_machine().vector_bytes), None)


def _written_rows(problem: Problem, candidate: Candidate, stepped: Collection[str]) -> Iterator[int]:
    """Yield, for each assignment in a loop over stored operands, how many consecutive values its loops of known extents write."""
    program, graph = candidate.program, graph_of(candidate.program.relations)
    sources = problem.concretized().sources
    formats = {**problem.formats, **{name: problem.formats[source] for name, source in sources.items()}}
    for address, leaf in leaves(program.statement):
        loops = enclosing_loops(program.statement, address)
        own = [loop for loop in loops if not any(original in stepped for original in graph.originals(loop))]
        extents = [graph.constant_extent(loop, problem.constants) for loop in own]
        inside = own and len(own) < len(loops) and own[-1] == loops[-1] and extents[-1] is not None
        if inside and _runs_along(leaf, graph.originals(loops[-1]), formats):
            yield prod(extent for extent in extents if extent is not None)


def _runs_along(leaf: Assign, originals: tuple[str, ...], formats: Mapping[str, Format]) -> bool:
    """Return whether some indices run through consecutive values of what an assignment writes, and of all that it reads at them."""

    def along(access: Access) -> bool:
        form = formats.get(access.tensor)
        return access.subscripts[form.order[-1] if form is not None else -1].index in originals

    at_them = [one for one in (leaf.target, *accesses(leaf.value)) if any(part.index in originals for part in one.subscripts)]
    return leaf.target in at_them and all(map(along, at_them))
