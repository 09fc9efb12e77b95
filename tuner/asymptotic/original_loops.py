"""Loop nests of scheduled programs as the asymptotic cost model sees them: over the indices of the expression.

Of the two loops of a tile the long one stands for both, since the other runs a constant number of times.
"""

from __future__ import annotations

from ...compiler.concrete.nodes import Assign, Forall, Program, Stmt, transform
from ...compiler.concrete.relations import Bound, Rename, Split
from ...compiler.notation.nodes import Access, Expr, index_subscript
from ...compiler.notation.nodes import transform as transform_expr


def original_loops(program: Program) -> Stmt | None:
    """Return the loop nest of a program over original indices alone; None where loops are collapsed or run through positions."""
    names: dict[str, str | None] = {}
    for relation in program.relations:
        match relation:
            case Split(parent, outer, inner, _, constant_inner):
                long, short = (outer, inner) if constant_inner else (inner, outer)
                names[long], names[short] = parent, None
            case Rename(parent, renamed) | Bound(parent, renamed):
                names[renamed] = parent
            case _:
                return None

    def original(name: str) -> str | None:
        while name in names:
            parent = names[name]
            if parent is None:
                return None
            name = parent
        return name

    def access(node: Expr) -> Expr | None:
        if not isinstance(node, Access) or not any(subscript.is_index and subscript.index in names for subscript in node.subscripts):
            return None
        found = (original(subscript.index) for subscript in node.subscripts)
        return Access(node.tensor, tuple(index_subscript(name) for name in found if name is not None))

    def loop(node: Stmt) -> Stmt | None:
        match node:
            case Forall(index, body):
                name = original(index)
                return body if name is None else Forall(name, body)
            case Assign(target, operator, value):
                renamed = transform_expr(target, access)
                assert isinstance(renamed, Access)
                return Assign(renamed, operator, transform_expr(value, access))
            case _:
                return None

    return transform(program.statement, loop)
