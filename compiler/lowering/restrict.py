"""What is left of a statement where some operands are known to hold the fill value.

The fill value annihilates products and is the identity of sums, whatever the operators are called. A quotient without its
numerator is 0 divided by something, which is nothing only where that is known to be stored (``quotients``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..concrete.nodes import Assign, Block, Forall, Stmt, Where, targets
from ..notation.nodes import Access, Add, Div, Expr, Literal, Mul, Neg
from .context import Context
from .quotients import skips
from .scope import Scope

ZERO = Literal(0.0)


Skips = Callable[[Assign, Expr], bool]
"""Tells whether a quotient by a denominator is nothing where its numerator is nothing, in some assignment."""


@dataclass(frozen=True)
class Restriction:
    """What is missing.

    Attributes:
        absent: accesses that hold the fill value.
        skips: see ``Skips``.
        gone: workspaces that nothing was written to.
    """

    absent: frozenset[Access]
    skips: Skips
    gone: frozenset[str] = frozenset()

    def expression(self, value: Expr, statement: Assign) -> Expr | None:
        """Return an expression of an assignment without what is missing, or None where nothing is left."""
        match value:
            case Access():
                return None if value in self.absent or value.tensor in self.gone else value
            case Add(operands):
                kept = [part for operand in operands if (part := self.expression(operand, statement)) is not None]
                if not kept:
                    return None
                return kept[0] if len(kept) == 1 else Add(tuple(kept))
            case Mul(operands):
                parts = [self.expression(operand, statement) for operand in operands]
                return None if None in parts else Mul(tuple(part for part in parts if part is not None))
            case Neg(operand):
                part = self.expression(operand, statement)
                return None if part is None else Neg(part)
            case Div(numerator, denominator):
                above, below = self.expression(numerator, statement), self.expression(denominator, statement)
                if above in (None, ZERO) and below is not None and self.skips(statement, below):
                    return None
                return Div(above or ZERO, below or ZERO)
            case _:
                return value

    def statement(self, statement: Stmt) -> Stmt | None:
        """Return a statement without what is missing; None where it does nothing any more."""
        match statement:
            case Assign(target, operator, value):
                kept = self.expression(value, statement)
                return None if kept is None else Assign(target, operator, kept)
            case Forall(index, body, tag):
                inner = self.statement(body)
                return None if inner is None else Forall(index, inner, tag)
            case Block(statements):
                parts = tuple(part for item in statements if (part := self.statement(item)) is not None)
                return Block(parts) if parts else None
            case Where(consumer, producer):
                filled = self.statement(producer)
                empty = frozenset(targets(producer)) - frozenset(targets(filled) if filled is not None else ())
                used = replace(self, gone=self.gone | empty).statement(consumer)
                if filled is None or used is None:
                    return used
                return Where(used, filled)
            case _:
                raise TypeError(f"cannot restrict {type(statement).__name__}")


def restrict(context: Context, scope: Scope, statement: Stmt) -> Stmt | None:
    """Return what is left of a statement at some place of the nest; None where it does nothing."""
    return Restriction(scope.absent, lambda assign, denominator: skips(context, scope, assign, denominator)).statement(statement)
