"""For legality: through which stored operands a loop steps, and what a loop over the entries of one operand leaves out."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..concrete.annihilation import Patterns
from ..concrete.completeness import Completeness
from ..concrete.lattice import EVERYWHERE, NOWHERE, UNDECIDED, Domain, Stored, cover, is_everywhere, unite
from ..concrete.nodes import Assign, Program, Stmt, Where, assignments, assignments_in_loops, targets
from ..notation.nodes import Access, Expr
from .context import Context
from .dependence import graph_of


class Iteration:
    """What the loops of one program visit.

    Inside a loop that searches for an entry of an operand, code distinguishes whether there is one. The answers here hold for both cases.
    """

    def __init__(self, program: Program, context: Context) -> None:
        self._program, self._context = program, context
        self._completeness = Completeness(program.statement, graph_of(program.relations), self._is_dense_result)

    def stepped(self, statement: Stmt, loops: tuple[str, ...], indices: Collection[str]) -> Domain:
        """Return the domain that a loop which gives indices their values must visit.

        Args:
            statement: the body of the loop.
            loops: the loops around the statement, including that one.
            indices: the original indices that get values.
        """
        patterns = self._patterns(lambda access: Stored(access) if _steps(access, indices, self._context) else None)
        return cover(patterns.remaining(statement, loops).domain)

    def left_out(self, statement: Stmt, loops: tuple[str, ...], access: Access, slots: Collection[str]) -> tuple[str, ...]:
        """Return the tensors that a statement writes where an access has no stored entry.

        Args:
            statement: the body of the loop that visits the entries of the access.
            loops: the loops around the statement, including that one.
            access: the operand.
            slots: workspaces that have a slot per visited entry.
        """
        patterns = self._patterns(lambda other: NOWHERE if other == access or other.tensor in slots else None)
        left = patterns.remaining(statement, loops).statement
        return () if left is None else targets(left)

    def _patterns(self, chosen: Callable[[Access], Domain | None]) -> Patterns:
        """Return patterns in which some accesses have chosen domains."""

        def of(access: Access) -> Domain:
            domain = chosen(access)
            return self._known(access, found) if domain is None else domain

        found = Patterns(of, self._program.add, self._completeness.holds)
        return found

    def _known(self, access: Access, patterns: Patterns) -> Domain:
        """Return where an access has a value, as far as that does not depend on the stored entries."""
        form = self._context.format_of(access)
        if form is not None:
            return EVERYWHERE if form.is_dense else UNDECIDED
        writes = (pair for pair in assignments_in_loops(self._program.statement) if pair[1].target.tensor == access.tensor)
        written = unite(patterns.remaining(assign, loops).domain for loops, assign in writes)
        return EVERYWHERE if is_everywhere(written) else UNDECIDED

    def _is_dense_result(self, tensor: str) -> bool:
        form = self._context.types.get(tensor)
        return form is not None and form.is_dense


def _steps(access: Access, indices: Collection[str], context: Context) -> bool:
    """Return whether a loop over the indices steps through stored coordinates of an access."""
    protocols = context.protocols_of(access)
    for level, (kind, names) in enumerate(context.levels(access)):
        located = level < len(protocols) and protocols[level] == "locate"
        if kind.steps_in_order and not located and set(names) & set(indices):
            return True
    return False


def _writes(statement: Stmt, tensor: str) -> list[Assign]:
    return [assign for assign in assignments(statement) if assign.target.tensor == tensor]


def producers_inside(statement: Stmt) -> dict[str, Stmt]:
    """Return the producers of all workspaces of a statement."""
    found: dict[str, Stmt] = {}
    if isinstance(statement, Where):
        found.update(dict.fromkeys(targets(statement.producer), statement.producer))
    for child in statement.children:
        found.update(producers_inside(child))
    return found


def inlined(value: Expr, producers: dict[str, Stmt]) -> Expr:
    """Return an expression in which workspaces that one assignment fills are replaced by its value."""
    if isinstance(value, Access) and value.tensor in producers:
        writes = _writes(producers[value.tensor], value.tensor)
        return inlined(writes[0].value, producers) if len(writes) == 1 else value
    return value.rebuild(tuple(inlined(child, producers) for child in value.children)) if value.children else value
