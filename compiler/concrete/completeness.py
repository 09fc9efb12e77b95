"""Which assignments count at all coordinates, quotients of zeros included.

``/`` has its IEEE meaning over the full index space (DESIGN 4.5). Where a dense result has a term that is not summed, every component
of it is one value of the term, and a zero in the denominator counts wherever it stands. That is a property of the expression: a
workspace that holds a part of such a term counts at all coordinates too, whatever the schedule.
"""

from __future__ import annotations

from collections.abc import Callable

from ..notation.nodes import accesses, indices
from .nodes import Assign, Stmt, assignments_in_loops
from .provenance import Provenance


class Completeness:
    """Tells which assignments of one program count at all coordinates."""

    def __init__(self, statement: Stmt, graph: Provenance, is_dense_result: Callable[[str], bool]) -> None:
        self._assignments = tuple(assignments_in_loops(statement))
        self._graph = graph
        self._is_dense_result = is_dense_result
        self._free: dict[str, frozenset[str] | None] = {}

    def holds(self, assign: Assign, loops: tuple[str, ...]) -> bool:
        """Return whether an assignment inside some loops counts at all coordinates."""
        free = self._free_of(assign.target.tensor)
        return free is not None and self._originals((*loops, *indices(assign.value))) <= free

    def _free_of(self, tensor: str) -> frozenset[str] | None:
        """Return the indices of the dense results that a tensor is passed on to without being summed; None if there is another use."""
        if tensor not in self._free:
            self._free[tensor] = None  # a tensor that is read only to compute itself is not used
            self._free[tensor] = self._found(tensor)
        return self._free[tensor]

    def _found(self, tensor: str) -> frozenset[str] | None:
        if self._is_dense_result(tensor):
            target = next((assign.target for _, assign in self._assignments if assign.target.tensor == tensor), None)
            return None if target is None else self._originals(target.indices)
        found: frozenset[str] | None = None
        for loops, assign in self._assignments:
            if any(access.tensor == tensor for access in accesses(assign.value)):
                if not self.holds(assign, loops):
                    return None
                free = self._free_of(assign.target.tensor)
                found = free if found is None or free is None else found & free
        return found

    def _originals(self, names: tuple[str, ...]) -> frozenset[str]:
        return frozenset(original for name in names for original in self._graph.originals(name))
