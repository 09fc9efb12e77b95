"""From decisions to concrete index notation: workspaces get names and indices, accesses get protocols (sections 6.5, 6.6)."""

from __future__ import annotations

from collections.abc import Sequence

from ..concrete.nodes import Assign, Block, Program, Stmt, Where, Workspace, nest
from ..notation.nodes import Access, Expr, accesses, index_subscript, transform
from .groupings import Grouping, workspace_number
from .layout import Layout, Nest
from .nestings import Nestings


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
        self.grouping = nestings.grouping
        self.layout = layout
        self.paper_operators = paper_operators
        self.names = _workspace_names(self.grouping, layout)

    def program(self) -> Program:
        workspaces = tuple(Workspace(self.names[number], self.indices(number)) for number in sorted(self.layout.workspaces))
        return Program(self.statement(self.layout.nest), workspaces)

    def indices(self, number: int) -> tuple[str, ...]:
        """Return a workspace's indices in the order in which its reader's loops come."""
        parent = self.grouping.statements[number].parent
        assert parent is not None
        return tuple(name for name in self.layout.enclosing[parent] if name in self.layout.workspaces[number])

    def statement(self, part: Nest) -> Stmt:
        if part.statement is not None:
            return nest(part.loops, self.assignment(part.statement))
        inner = [self.statement(sub) for sub in part.parts]
        final = [self._final(sub) for sub in part.parts]
        consumers = [stmt for stmt, number in zip(inner, final, strict=True) if number in _last(final, self.grouping)]
        body = consumers[0] if len(consumers) == 1 else Block(tuple(consumers))
        for stmt in reversed([stmt for stmt in inner if stmt not in consumers]):
            body = Where(body, stmt)
        return nest(part.loops, body)

    def _final(self, part: Nest) -> int:
        return part.statement if part.statement is not None else self._final(part.parts[-1])

    def assignment(self, number: int) -> Assign:
        statement = self.grouping.statements[number]
        root = statement.parent is None
        target = self.grouping.target if root else self._workspace(number)
        outside = () if root else self.layout.outside[number]
        loops = self.layout.enclosing[number][len(outside) :]
        if self.nestings.protocols:
            target = Access(target.tensor, target.subscripts, write_protocols(target.indices, loops))
        several = root and len(self.grouping.roots()) > 1
        repeated = several or not set(loops) <= set(target.indices)
        operator = statement.operator if self.paper_operators else ("+=" if repeated else "=")
        return Assign(target, operator, self._value(number))

    def _workspace(self, number: int) -> Access:
        return Access(self.names[number], tuple(map(index_subscript, self.indices(number))))

    def _value(self, number: int) -> Expr:
        """Return the right-hand side with workspaces named; the n-th read of each kind gets its protocols."""
        grouping, sparse = self.grouping, self.nestings.sparse
        stored = sum(access.tensor in sparse for access in grouping.operands(number))
        counters = {"stored": iter(range(stored)), "workspace": iter(range(stored, stored + len(grouping.workspaces(number))))}
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

        return transform(grouping.statements[number].value, rule)

    def _protocol(self, number: int, place: int, mode: int) -> str:
        return self.layout.protocols.get((number, place, mode), "locate")


def _last(final: Sequence[int], grouping: Grouping) -> frozenset[int]:
    """Return the statements among those that end the parts which nothing else there reads: the consumers."""
    inner = set(final)
    roots = {number for number in final if grouping.statements[number].parent is None}
    return frozenset(roots) if roots else frozenset({max(inner)})


def _workspace_names(grouping: Grouping, layout: Layout) -> dict[int, str]:
    taken = {grouping.target.tensor, *grouping.loops}
    for number in range(len(grouping.statements)):
        taken.update(access.tensor for access in accesses(grouping.statements[number].value))
    names = {}
    for number in sorted(layout.workspaces):
        wish = "w" if layout.workspaces[number] else "t"
        name, count = wish, 1
        while name in taken:
            count += 1
            name = f"{wish}{count}"
        taken.add(name)
        names[number] = name
    return names


def write_protocols(indices: Sequence[str], loops: Sequence[str]) -> tuple[str, ...]:
    """Return append or insert for each mode of a written tensor.

    Writes come in lexicographic order, and so may be appended, in the leading modes (in loop order) whose loops are the
    outermost ones; from the first other loop on, they are inserted (section 4).

    Args:
        indices: the indices of the modes.
        loops: the loops around the write, below the place where the tensor comes to life.
    """
    concordant = sorted(indices, key=loops.index)
    matching = 0
    while matching < len(concordant) and concordant[matching] == loops[matching]:
        matching += 1
    appended = set(concordant[:matching])
    return tuple("append" if name in appended else "insert" for name in indices)
