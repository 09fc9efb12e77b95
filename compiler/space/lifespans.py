"""Which workspaces of a program are in memory at one time: each from the first nest that uses it to the last.

A nest is a loop that no other loop holds, with what is in it, or an assignment outside of loops. Workspaces inside a nest are in memory
while it runs. Lowering allocates and frees them so (``lowering.lifespans``); on a GPU all are there from the start to the end.
"""

from __future__ import annotations

from ..concrete.nodes import Program, Stmt, Workspace, assignments, in_sequence, runs_on_gpu
from ..notation.nodes import accesses


def together(program: Program) -> list[tuple[Workspace, ...]]:
    """Return the workspaces that are in memory at one time, for every nest of a program that has all of no other nest's."""
    if runs_on_gpu(program):
        return [program.workspaces]
    nests = [_tensors(nest) for nest in in_sequence(program.statement)]
    spans: list[tuple[Workspace, int, int]] = []
    for space in program.workspaces:
        places = [place for place, used in enumerate(nests) if space.name in used]
        spans += [(space, places[0], places[-1])] if places else []
    sets = [tuple(space for space, first, last in spans if first <= place <= last) for place in range(len(nests))]
    return [one for one in dict.fromkeys(sets) if not any(set(one) < set(other) for other in sets)]


def _tensors(nest: Stmt) -> frozenset[str]:
    return frozenset(access.tensor for assign in assignments(nest) for access in (assign.target, *accesses(assign.value)))
