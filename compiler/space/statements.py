"""Statements of programs, numbered in one table, and groupings: which of them are computed, and which reads which."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property

from ..frozen import frozen
from ..notation.nodes import Access, Expr, accesses
from ..notation.printer import show
from .forms import canonical_text


@frozen
class Hole(Expr):
    """A placeholder for the workspace that a producer fills, used only while groupings are enumerated."""

    operator: str
    value: Expr
    summed: tuple[str, ...] = ()


@frozen
class Statement:
    """One assignment of a grouped expression, without loops.

    Attributes:
        value: the right-hand side; the workspace of statement ``n`` is read as the access ``#n``.
        operator: "+=" if indices that nothing else uses are summed here, "=" if all are kept.
        root: whether it assigns to the result.
        summed: indices bound by an inner sum: they are reduced here and nowhere else.
        needs: the indices of the loops that the statement must be in.
        carries: the indices of the workspace if no loop outside is shared; those of the result for a root.
    """

    value: Expr
    operator: str
    root: bool
    summed: frozenset[str]
    needs: frozenset[str]
    carries: frozenset[str]

    @cached_property
    def operands(self) -> tuple[Access, ...]:
        """The accesses of stored operands, in written order."""
        return tuple(access for access in accesses(self.value) if workspace_number(access) is None)

    @cached_property
    def workspaces(self) -> tuple[int, ...]:
        """The statements whose workspaces are read, in written order."""
        found = (workspace_number(access) for access in accesses(self.value))
        return tuple(other for other in found if other is not None)


class Statements:
    """The statements of all groupings of one assignment, numbered; a statement that several groupings have is there once.

    A producer has a smaller number than its consumer. ``loops`` are all indices in order of first appearance in the
    assignment: the canonical order of choices.
    """

    def __init__(self, target: Access, loops: tuple[str, ...]) -> None:
        self.target = target
        self.loops = loops
        self._statements: list[Statement] = []
        self._numbers: dict[tuple[Statement, int], int] = {}

    def __getitem__(self, number: int) -> Statement:
        return self._statements[number]

    def add(self, statement: Statement, taken: Container[int]) -> int:
        """Return the number of a statement; a new one if its number is taken, since equal parts of one grouping are different
        statements."""
        copy = 0
        while True:
            number = self._numbers.setdefault((statement, copy), len(self._statements))
            if number == len(self._statements):
                self._statements.append(statement)
            if number not in taken:
                return number
            copy += 1

    def subtree(self, number: int) -> frozenset[int]:
        """Return a statement and everything that it is computed from."""
        return frozenset({number}).union(*map(self.subtree, self[number].workspaces))

    def text(self, number: int) -> str:
        """Return the right-hand side with producers written out; orders of operands and names of workspaces do not matter."""
        return canonical_text(self[number].value, self._leaf)

    def _leaf(self, value: Expr) -> str:
        number = workspace_number(value) if isinstance(value, Access) else None
        return show(value) if number is None else f"[{self.text(number)}]"

    def key(self, grouping: Grouping) -> tuple[str, ...]:
        """Return a key that differs for different groupings of an expression, but not for ``w = e`` and ``w += e``."""
        return tuple(sorted(map(self.text, grouping.roots)))


@frozen
class Grouping:
    """A grouped expression: the numbers of its statements, ascending, and of those among them that assign to the result."""

    statements: tuple[int, ...]
    roots: tuple[int, ...]


def workspace_access(number: int) -> Access:
    """Return the read of workspace ``number`` before it has a name; no tensor of an expression can be called so."""
    return Access(f"#{number}")


def workspace_number(access: Access) -> int | None:
    """Return the number of the workspace that an access reads or writes; None for operands and the result."""
    return int(access.tensor[1:]) if access.tensor.startswith("#") else None
