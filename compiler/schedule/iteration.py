"""Which stored operands a loop steps through: the points of its iteration lattice, as far as legality needs them."""

from __future__ import annotations

from itertools import product

from ..concrete.nodes import Assign, Stmt, Where, assignments, targets
from ..notation.nodes import Access, Add, Div, Expr, Mul, Neg, accesses
from .context import Context

Points = frozenset[frozenset[Access]]
_EVERYWHERE: Points = frozenset({frozenset()})
_POINTS_LIMIT = 64  # sums of more operands are cut by the compiler; for legality the first points say enough


def stepped_operands(statement: Stmt, indices: tuple[str, ...], context: Context) -> tuple[Points, frozenset[Access]]:
    """Return the lattice points of a loop over some indices around a statement, and the operands that it steps through."""
    found: Points = frozenset()
    for assign in assignments(statement):
        found = _union(found, _points(assign.value, indices, context)) if found else _points(assign.value, indices, context)
    return found, frozenset(access for point in found for access in point)


def _points(value: Expr, indices: tuple[str, ...], context: Context) -> Points:
    match value:
        case Access():
            return frozenset({frozenset({value})}) if _steps(value, indices, context) else _EVERYWHERE
        case Mul(operands):
            choices = product(*(_points(operand, indices, context) for operand in operands))
            return _limited(frozenset(frozenset().union(*choice) for choice in choices))
        case Add(operands):
            whole = _points(operands[0], indices, context)
            for operand in operands[1:]:
                whole = _union(whole, _points(operand, indices, context))
            return whole
        case Neg(operand):
            return _points(operand, indices, context)
        case Div(numerator, denominator):  # where nothing is stored below the line, a numerator of 0 gives NaN, not 0
            below = _points(denominator, indices, context)
            above = _points(numerator, indices, context)
            return above if below == _EVERYWHERE else _union(_EVERYWHERE, _union(above, below))
        case _:
            return _EVERYWHERE


def _union(left: Points, right: Points) -> Points:
    return _limited(left | right | frozenset(a | b for a, b in product(left, right)))


def _limited(points: Points) -> Points:
    return frozenset(sorted(points, key=len)[:_POINTS_LIMIT]) if len(points) > _POINTS_LIMIT else points


def _steps(access: Access, indices: tuple[str, ...], context: Context) -> bool:
    """Return whether a loop over the indices steps through stored coordinates of an access."""
    protocols = context.protocols_of(access)
    for level, (kind, names) in enumerate(context.levels(access)):
        located = level < len(protocols) and protocols[level] == "locate"
        if kind.steps_in_order and not located and set(names) & set(indices):
            return True
    return False


def vanishes(value: Expr, access: Access, producers: dict[str, Stmt], inside: frozenset[str], doubtful: frozenset[Access]) -> bool:
    """Return whether an expression is zero wherever an access has no stored entry.

    Args:
        value: the expression.
        access: the operand whose stored entries a loop visits.
        producers: the statements that fill the workspaces made inside the loop.
        inside: workspaces that have a slot per visited entry.
        doubtful: accesses that may have no stored entry where the loop is: 0 divided by them is NaN.
    """

    def zero(part: Expr) -> bool:
        return vanishes(part, access, producers, inside, doubtful)

    match value:
        case Access(tensor):
            if tensor in producers:
                return all(zero(assign.value) for assign in _writes(producers[tensor], tensor))
            return value == access or value.tensor in inside
        case Mul(operands):
            return any(zero(operand) for operand in operands)
        case Add(operands):
            return all(zero(operand) for operand in operands)
        case Neg(operand):
            return zero(operand)
        case Div(numerator, denominator):
            return zero(numerator) and doubtful.isdisjoint(accesses(denominator))
        case _:
            return False


def _writes(statement: Stmt, tensor: str) -> list[Assign]:
    return [assign for assign in assignments(statement) if assign.target.tensor == tensor]


def producers_inside(statement: Stmt) -> dict[str, Stmt]:
    """Return the producers of all workspaces that are made inside a statement."""
    found: dict[str, Stmt] = {}
    if isinstance(statement, Where):
        found.update(dict.fromkeys(targets(statement.producer), statement.producer))
    for child in statement.children:
        found.update(producers_inside(child))
    return found


def inlined(value: Expr, producers: dict[str, Stmt]) -> Expr:
    """Return an expression in which workspaces are replaced by what fills them, where that is one assignment."""
    if isinstance(value, Access) and value.tensor in producers:
        writes = _writes(producers[value.tensor], value.tensor)
        return inlined(writes[0].value, producers) if len(writes) == 1 else value
    return value.rebuild(tuple(inlined(child, producers) for child in value.children)) if value.children else value
