"""Loop nests of scheduled programs as the asymptotic cost model sees them: over the indices of the expression.

The long loop of a tile stands for both of its loops, since the other one runs a constant number of times. A collapsed loop is replaced by
the loops that it joined, and a loop over positions by the loops over the coordinates of the operand: it visits the same entries and skips
empty fibres, so that its cost is at most theirs.
"""

from __future__ import annotations

from functools import reduce

from ...compiler.concrete.nodes import Assign, Forall, Program, Stmt, transform
from ...compiler.concrete.relations import CollapseRelation, Relation, SplitRelation
from ...compiler.notation.nodes import Access, Expr, index_subscript, transform_expression


def original_loops(program: Program) -> Stmt:
    """Return the loop nest of a program over original indices alone."""
    parents: dict[str, tuple[str, ...]] = {}
    for relation in program.relations:
        match relation:
            case SplitRelation(parent, outer, inner, _, constant_inner):
                long, short = (outer, inner) if constant_inner else (inner, outer)
                parents[long], parents[short] = (parent,), ()
            case CollapseRelation(outer, inner, fused):
                parents[fused] = (outer, inner)
            case Relation():
                parents |= dict.fromkeys(relation.children, relation.parents)

    def originals(name: str) -> tuple[str, ...]:
        if name not in parents:
            return (name,)
        return tuple(original for parent in parents[name] for original in originals(parent))

    def access(node: Expr) -> Expr | None:
        if not isinstance(node, Access) or not any(subscript.is_index and subscript.index in parents for subscript in node.subscripts):
            return None
        found = (name for subscript in node.subscripts for name in originals(subscript.index))
        return Access(node.tensor, tuple(map(index_subscript, found)))

    def loop(node: Stmt) -> Stmt | None:
        match node:
            case Forall(index, body):
                return reduce(lambda inner, name: Forall(name, inner), reversed(originals(index)), body)
            case Assign(target, operator, value):
                renamed = transform_expression(target, access)
                assert isinstance(renamed, Access)
                return Assign(renamed, operator, transform_expression(value, access))
            case _:
                return None

    return transform(program.statement, loop)
