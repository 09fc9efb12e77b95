"""The part of the schedule space that the TACO compiler can express, as Ahrens et al. restrict it (6.5, 6.6, 6.8).

- At most one workspace, of at most one mode. A one-mode workspace is stepped through if its statement reads no other
  sparse operand, and located otherwise: TACO leaves no choice.
- A read of a sparse operand steps in all modes, or locates in the mode whose loop comes first and steps in the others.
- At most one mode of a sparse result is inserted, and that takes a workspace of its own for reformatting, so none then if
  there is a workspace already.

The paper counts a scalar workspace twice, as one that is stepped through and one that is located, though it has no mode in
which they differ; so such schedules come twice here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product, repeat

from ...compiler.format import Format
from ...compiler.notation.nodes import Access
from ...compiler.space.forms import unwatched
from ...compiler.space.layout import Layout, protocolized
from ...compiler.space.naming import write_protocols
from ...compiler.space.nestings import Nestings
from ...compiler.space.space import Member, Rules, ScheduleSpace

Chosen = dict[tuple[int, int, int], str]
"""(statement, sparse read, mode) to step or locate."""


def taco_schedules(space: ScheduleSpace, watch: Callable[[], None] = unwatched) -> Iterator[Member]:
    """Yield the schedules of least depth that TACO can express, each as often as the paper counts it.

    Args:
        space: the space of the paper for some expression (``PIGEON``).
        watch: called for every program looked at; it may raise to end that.
    """
    narrow = Rules(depth=space.depth, workspace_modes=1, protocols=False, paper_operators=True)
    result = space.formats[space.assignment.target.tensor]
    for program in ScheduleSpace(space.assignment, space.formats, narrow, watch):
        watch()
        number, nestings, layout = program.number, space.nestings, program.layout
        if not _assemblable(layout, nestings, space.assignment.target, result):
            continue
        scalars = sum(not indices for indices in layout.workspaces.values())
        for chosen in _protocols(nestings, layout):
            tree = protocolized(nestings, space.top(number), program.derivation.parts[0], chosen)
            yield from repeat(space.wrapped(number, tree), 2**scalars)


def _assemblable(layout: Layout, nestings: Nestings, target: Access, result: Format) -> bool:
    inserted = 0
    if not result.is_dense:
        roots = (number for number in layout.enclosing if nestings.table[number].root)
        inserted = max(write_protocols(target.indices, layout.enclosing[root]).count("insert") for root in roots)
    return inserted <= 1 and len(layout.workspaces) + inserted <= 1


def _protocols(nestings: Nestings, layout: Layout) -> Iterator[Chosen]:
    options: list[list[Chosen]] = []
    for number, loops in layout.enclosing.items():
        modes = list(nestings.read_indices(number, layout.workspaces))
        stored = len(modes) - len(nestings.table[number].workspaces)
        for place, indices in enumerate(modes):
            if place >= stored:
                protocol = "locate" if stored else "step"
                options.append([{(number, place, mode): protocol for mode in range(len(indices))}])
            else:
                first = min(range(len(indices)), key=lambda mode: max(loops.index(name) for name in indices[mode]))
                steps = {(number, place, mode): "step" for mode in range(len(indices))}
                options.append([steps, steps | {(number, place, first): "locate"}])
    for choice in product(*options):
        yield {mode: protocol for part in choice for mode, protocol in part.items()}

