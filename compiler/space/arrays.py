"""Tells the workspaces that are arrays of all their coordinates from those that know their entries."""

from __future__ import annotations

from ..concrete.nodes import Program, assignments
from ..notation.nodes import accesses
from ..workspaces import is_whole
from .decorations import shares_pattern
from .situation import Situation, result_leaf


def array_workspaces(program: Program, situation: Situation) -> frozenset[str]:
    """Return the workspaces that are cleared and read whole.

    A workspace without a kind that a sparse result is gathered from is not among them: it knows its entries.
    """
    local = {space.name: space.kind for space in program.workspaces}
    target = result_leaf(program)[1].target.tensor
    asked = set[str]()
    if not (situation.formats[target].is_dense or shares_pattern(program, situation)):
        asked.add(target)
    for assign in assignments(program.statement):  # consumers stand before what fills the workspaces that they read
        if assign.target.tensor in asked:
            asked.update(access.tensor for access in accesses(assign.value) if access.tensor in local)
    return frozenset(name for name, kind in local.items() if (name not in asked if kind is None else is_whole(kind)))
