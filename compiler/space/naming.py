"""From decisions to concrete index notation: workspaces get names and indices, accesses get protocols (sections 6.5, 6.6)."""

from __future__ import annotations

from collections.abc import Sequence

from ..concrete.nodes import Assign, Block, Program, Stmt, Where, Workspace, nest
from ..fresh import FreshNames
from ..notation.nodes import Access, Expr, index_subscript, transform_expression
from .layout import Layout, Nest
from .nestings import Nestings
from .statements import Statements, workspace_number


def build_program(nestings: Nestings, layout: Layout, paper_operators: bool = False) -> Program:
    """Write a layout as a program.

    Args:
        nestings: where the layout comes from.
        layout: the decisions.
        paper_operators: write ``+=`` or ``=`` as the grouping says; otherwise ``+=`` exactly where a loop repeats a write.
    """
    return _Writer(nestings, layout, paper_operators).program()


class _Writer:
    def __init__(self, nestings: Nestings, layout: Layout, paper_operators: bool) -> None:
        self.nestings = nestings
        self.table = nestings.table
        self.layout = layout
        self.paper_operators = paper_operators
        self.names = workspace_names(self.table, layout)

    def program(self) -> Program:
        workspaces = tuple(Workspace(self.names[number], self.indices(number)) for number in sorted(self.layout.workspaces))
        return Program(self.statement(self.layout.nest), workspaces)

    def indices(self, number: int) -> tuple[str, ...]:
        """Return a workspace's indices in the order in which its reader's loops come."""
        reader = next(other for other in self.layout.enclosing if number in self.table[other].workspaces)
        return tuple(name for name in self.layout.enclosing[reader] if name in self.layout.workspaces[number])

    def statement(self, part: Nest) -> Stmt:
        if part.statement is not None:
            return nest(part.loops, self.assignment(part.statement))
        inner = [self.statement(sub) for sub in part.parts]
        ends = [self._end(sub) for sub in part.parts]
        last = {number for number in ends if self.table[number].root} or {max(ends)}
        consumers = [stmt for stmt, number in zip(inner, ends, strict=True) if number in last]
        body = consumers[0] if len(consumers) == 1 else Block(tuple(consumers))
        for stmt in reversed([stmt for stmt, number in zip(inner, ends, strict=True) if number not in last]):
            body = Where(body, stmt)
        return nest(part.loops, body)

    def _end(self, part: Nest) -> int:
        """Return the last statement of a part, for which its other statements are computed."""
        return part.statement if part.statement is not None else self._end(part.parts[-1])

    def assignment(self, number: int) -> Assign:
        statement = self.table[number]
        target = self.table.target if statement.root else self._workspace(number)
        outside = () if statement.root else self.layout.outside[number]
        loops = self.layout.enclosing[number][len(outside) :]
        if self.nestings.protocols:
            target = Access(target.tensor, target.subscripts, write_protocols(target.indices, loops))
        several = statement.root and sum(self.table[other].root for other in self.layout.enclosing) > 1
        repeated = several or not set(loops) <= set(target.indices)
        operator = statement.operator if self.paper_operators else ("+=" if repeated else "=")
        return Assign(target, operator, self._value(number))

    def _workspace(self, number: int) -> Access:
        return Access(self.names[number], tuple(map(index_subscript, self.indices(number))))

    def _value(self, number: int) -> Expr:
        """Return the right-hand side with workspaces named; the n-th read of each kind gets its protocols."""
        statement, sparse = self.table[number], self.nestings.sparse
        stored = sum(access.tensor in sparse for access in statement.operands)
        counters = {"stored": iter(range(stored)), "workspace": iter(range(stored, stored + len(statement.workspaces)))}
        order = self.layout.workspaces

        def rule(expr: Expr) -> Expr | None:
            if not isinstance(expr, Access):
                return None
            other = workspace_number(expr)
            if other is not None:
                named = self._workspace(other)
                place = next(counters["workspace"])
                chosen = [self._protocol(number, place, order[other].index(name)) for name in named.indices]
            elif expr.tensor in sparse:
                named, place = expr, next(counters["stored"])
                chosen = [self._protocol(number, place, mode) for mode in range(len(expr.subscripts))]
            else:
                named, chosen = expr, ["locate"] * len(expr.subscripts)
            return Access(named.tensor, named.subscripts, tuple(chosen) if self.nestings.protocols else (), span=expr.span)

        return transform_expression(statement.value, rule)

    def _protocol(self, number: int, place: int, mode: int) -> str:
        return self.layout.protocols.get((number, place, mode), "locate")


def workspace_names(table: Statements, layout: Layout) -> dict[int, str]:
    """Return names that no tensor and no index of the expression has."""
    operands = {access.tensor for number in layout.enclosing for access in table[number].operands}
    names = FreshNames({table.target.tensor, *table.loops, *operands})
    return {number: names.fresh("w" if layout.workspaces[number] else "t") for number in sorted(layout.workspaces)}


def write_protocols(indices: Sequence[str], loops: Sequence[str]) -> tuple[str, ...]:
    """Return append or insert for each mode of a written tensor.

    Writes come in lexicographic order, and so may be appended, in the leading modes (in loop order) whose loops are the
    outermost ones; from the first other loop on, they are inserted (section 4).

    Args:
        indices: the indices of the modes.
        loops: the loops around the write, below the place where the tensor is made.
    """
    concordant = sorted(indices, key=loops.index)
    matching = 0
    while matching < len(concordant) and concordant[matching] == loops[matching]:
        matching += 1
    appended = set(concordant[:matching])
    return tuple("append" if name in appended else "insert" for name in indices)
