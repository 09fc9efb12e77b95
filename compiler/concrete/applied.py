"""Programs of expressions with functions: temporaries for the sums inside arguments, in loops that all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..notation.constants import value_of_nothing
from ..notation.nodes import Access, Add, Apply, Expr, Neg, index_subscript, transform_expression, walk_expression
from .nodes import Assign, Block, Forall, Stmt, Where, Workspace, transform


def acting(value: Expr, dense: bool) -> Expr:
    """Return an expression whose functions know where they act: on all entries of a dense result, if their value at 0 is not 0.

    Other functions act wherever one of their arguments stores an entry.
    """

    def rule(node: Expr) -> Expr | None:
        if not isinstance(node, Apply):
            return None
        return replace(node, everywhere=dense and value_of_nothing(node) != 0)

    return transform_expression(value, rule)


def arguments_without_functions(value: Expr, inside: bool = False) -> list[Expr]:
    """Return the largest parts of functions' arguments that hold no function and no sum: each has a value where all it reads is stored."""
    if inside and not isinstance(value, Add | Neg) and not any(isinstance(node, Apply) for node in walk_expression(value)):
        return [value]
    return [part for child in value.children for part in arguments_without_functions(child, inside or isinstance(value, Apply))]


def replaced(value: Expr, by: Mapping[Expr, Expr]) -> Expr:
    """Return an expression in which the largest parts that ``by`` names are replaced."""
    if value in by:
        return by[value]
    return value.rebuild(tuple(replaced(child, by) for child in value.children)) if value.children else value


def where_defined(consumer: Stmt, producers: Sequence[Stmt], temporaries: Sequence[Workspace]) -> tuple[Stmt, tuple[Workspace, ...]]:
    """Return a statement that fills temporaries before it reads them, in as few places as possible, and these workspaces.

    Outermost loops over indices that all temporaries have are shared, so that a temporary over rows is a scalar in the loop over rows.
    """
    shared: list[str] = []
    bodies = [consumer, *producers]
    while all(isinstance(body, Forall) for body in bodies):
        loops = [body for body in bodies if isinstance(body, Forall)]
        index = loops[0].index
        if any(loop.index != index for loop in loops) or any(index not in temporary.indices for temporary in temporaries):
            break
        shared.append(index)
        bodies = [loop.body for loop in loops]
    kept = {temporary.name: tuple(name for name in temporary.indices if name not in shared) for temporary in temporaries}
    consumer, *producers = (_narrowed(body, kept) for body in bodies)
    found: Stmt = Where(consumer, producers[0] if len(producers) == 1 else Block(tuple(producers)))
    for index in reversed(shared):
        found = Forall(index, found)
    return found, tuple(Workspace(name, indices) for name, indices in kept.items())


def _narrowed(statement: Stmt, kept: dict[str, tuple[str, ...]]) -> Stmt:
    """Return a statement whose temporaries have the given indices only."""

    def access(node: Expr) -> Access | None:
        if not isinstance(node, Access) or node.tensor not in kept:
            return None
        return replace(node, subscripts=tuple(map(index_subscript, kept[node.tensor])))

    def rule(node: Stmt) -> Stmt | None:
        if not isinstance(node, Assign):
            return None
        return Assign(access(node.target) or node.target, node.operator, transform_expression(node.value, access))

    return transform(statement, rule)
