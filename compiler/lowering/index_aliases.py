"""Indices with two names.

``precompute(E, [j], [jw], w)`` renames an index in the producer; the workspace is written as w(jw) and read as w(j), so both
range over the extent of j.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..concrete.nodes import Program, assignments, reads
from ..notation.nodes import Access, Assignment, accesses


def index_aliases(program: Program, original: Assignment, sources: Mapping[str, str]) -> dict[str, str]:
    """Return, for every index that is not in the expression, the index of the expression with the same range."""
    leader: dict[str, str] = {}
    own = {name for access in (original.target, *accesses(original.value)) for name in access.indices}

    def find(name: str) -> str:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    def join(left: str, right: str) -> None:
        first, second = find(left), find(right)
        if first != second:
            leader[second if first in own else first] = first if first in own else second

    for first, other in _same_tensor(program, original, sources):
        for left, right in zip(first.subscripts, other.subscripts, strict=True):
            if not (find(left.index) in own and find(right.index) in own):
                join(left.index, right.index)
    return {name: find(name) for name in leader if name not in own and find(name) in own}


def _same_tensor(program: Program, original: Assignment, sources: Mapping[str, str]) -> list[tuple[Access, Access]]:
    """Return pairs of accesses whose modes range over the same coordinates."""
    workspaces = {workspace.name for workspace in program.workspaces}
    found: list[tuple[Access, Access]] = []
    first: dict[str, Access] = {}
    everything = [*(assign.target for assign in assignments(program.statement)), *reads(program.statement)]
    found += [(first.setdefault(access.tensor, access), access) for access in everything if access.tensor in workspaces]
    written = {access.tensor: access for access in accesses(original.value)}
    for access in everything:
        source = sources.get(access.tensor)
        if source in written:
            found.append((written[source], access))
    return found
