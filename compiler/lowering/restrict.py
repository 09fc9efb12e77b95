"""What is left of a statement where some operands are known to hold the fill value.

The fill value annihilates products and is the identity of sums, whatever the operators are called.
"""

from __future__ import annotations

from ..concrete.nodes import Assign, Block, Forall, Stmt, Where, targets
from ..notation.nodes import Access, Add, Div, Expr, Literal, Mul, Neg


def restrict_expression(value: Expr, absent: frozenset[Access], gone: frozenset[str] = frozenset()) -> Expr | None:
    """Return the expression without absent accesses and workspaces ``gone``, or None where nothing is left."""
    match value:
        case Access():
            return None if value in absent or value.tensor in gone else value
        case Add(operands):
            kept = [part for operand in operands if (part := restrict_expression(operand, absent, gone)) is not None]
            if not kept:
                return None
            return kept[0] if len(kept) == 1 else Add(tuple(kept))
        case Mul(operands):
            parts = [restrict_expression(operand, absent, gone) for operand in operands]
            return None if None in parts else Mul(tuple(part for part in parts if part is not None))
        case Neg(operand):
            part = restrict_expression(operand, absent, gone)
            return None if part is None else Neg(part)
        case Div(numerator, denominator):
            above = restrict_expression(numerator, absent, gone)
            below = restrict_expression(denominator, absent, gone)
            return None if above is None else Div(above, Literal(0.0) if below is None else below)
        case _:
            return value


def restrict(statement: Stmt, absent: frozenset[Access], gone: frozenset[str] = frozenset()) -> Stmt | None:
    """Return the statement where some operands are absent; None where it does nothing any more."""
    match statement:
        case Assign(target, operator, value):
            kept = restrict_expression(value, absent, gone)
            return None if kept is None else Assign(target, operator, kept)
        case Forall(index, body, tag):
            inner = restrict(body, absent, gone)
            return None if inner is None else Forall(index, inner, tag)
        case Block(statements):
            parts = tuple(part for item in statements if (part := restrict(item, absent, gone)) is not None)
            return Block(parts) if parts else None
        case Where(consumer, producer):
            filled = restrict(producer, absent, gone)
            empty = frozenset(targets(producer)) - frozenset(targets(filled) if filled is not None else ())
            used = restrict(consumer, absent, gone | empty)
            if filled is None or used is None:
                return used
            return Where(used, filled)
        case _:
            raise TypeError(f"cannot restrict {type(statement).__name__}")
