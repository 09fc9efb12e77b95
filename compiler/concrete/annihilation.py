"""Where expressions have a value, and what remains of them where operands have none: the only rule of annihilation.

What is not stored is the fill value, which annihilates products and is the identity of sums, whatever the operators are called (DESIGN
4.5). A constant has a value everywhere, unless it is the identity of sums as such (``identities.is_nothing``); a constant factor leaves a
pattern as it is, even 0, since 0 * inf is NaN. A quotient has the pattern of its numerator, for 0 / x is 0; and it has a value wherever
its denominator is not stored, for 0 / 0 is NaN. A stored denominator may be 0 where the numerator is not stored. Such coordinates count
only in the terms of a dense result that are not summed (``concrete.completeness``). A function has a value where one of its arguments
has, and everywhere in a dense result if its value at 0 is not 0 (``Apply.everywhere``). Quotients and functions of ``2 + d`` keep
their pattern where nothing of d is stored and 2 is left of it.

Counting, legality, the schedule space and lowering differ in what they know of an access; each passes it as the domain of that access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..frozen import frozen
from ..notation.constants import is_constant, makes_nan
from ..notation.nodes import Access, Add, Apply, Div, Expr, Literal, Mul, Neg, walk_expression
from .identities import is_nothing
from .lattice import EVERYWHERE, NOWHERE, Domain, complement, intersect, is_nowhere, unite
from .nodes import Assign, Block, Forall, Stmt, Unless, Where

ZERO = Literal(0.0)

Loops = tuple[str, ...]
Domains = Mapping[str, Domain]
_NONE: Domains = MappingProxyType({})


def combined(value: Expr, parts: Sequence[Domain], add: str, complete: Callable[[], bool]) -> Domain:
    """Return where an expression has a value.

    Args:
        value: any expression other than an access.
        parts: where its operands have one.
        add: the add of the semiring.
        complete: whether quotients have one everywhere here.
    """
    if is_constant(value):
        return NOWHERE if is_nothing(value, add) else EVERYWHERE
    match value:
        case Neg():
            return parts[0]
        case Add():
            return unite(parts)
        case Mul(operands):
            return intersect(part for operand, part in zip(operands, parts, strict=True) if not is_constant(operand))
        case Apply(_, arguments, everywhere):
            reading = [part for argument, part in zip(arguments, parts, strict=True) if not is_constant(argument)]
            return unite((EVERYWHERE, *reading)) if everywhere else unite(reading)
        case Div(_, denominator, everywhere):
            above, below = parts
            if is_constant(denominator):
                return unite((EVERYWHERE, above)) if everywhere or makes_nan(denominator) else above
            return unite((EVERYWHERE, above, below) if complete() else (above, complement(below)))
        case _:
            raise TypeError(f"no domain of {type(value).__name__}")


def _never(assign: Assign, loops: Loops) -> bool:
    return False


@frozen
class Remaining:
    """The part of a statement that has an effect.

    Attributes:
        statement: without the parts that have no effect; None if no part has one.
        domain: where it has an effect.
        written: where each tensor that it writes, the result or a workspace, gets entries.
    """

    statement: Stmt | None
    domain: Domain
    written: Domains


@frozen
class Patterns:
    """Where statements have an effect, given the domains of their accesses.

    Attributes:
        of: where an access has a value, of operands and of workspaces that are filled outside.
        add: the add of the semiring.
        complete: whether an assignment inside given loops counts at all coordinates (``concrete.completeness``).
    """

    of: Callable[[Access], Domain]
    add: str = "+"
    complete: Callable[[Assign, Loops], bool] = _never

    def expression(self, value: Expr, complete: Callable[[], bool] = lambda: False, inner: Domains = _NONE) -> Domain:
        """Return where an expression has a value; ``inner``: where workspaces that are filled inside have one."""
        return self.left(value, complete, inner)[1]

    def left(self, value: Expr, complete: Callable[[], bool], inner: Domains = _NONE) -> tuple[Expr | None, Domain]:
        """Return an expression without what has no value anywhere, None where nothing is left, and where it has one."""
        if isinstance(value, Access):
            found = inner[value.tensor] if value.tensor in inner else self.of(value)
            return (None if is_nowhere(found) else value), found
        pairs = [self.left(child, complete, inner) for child in value.children]
        found = combined(value, [domain for _, domain in pairs], self.add, complete)
        if is_nowhere(found):
            return None, NOWHERE
        # What is added to something stays, even 0, since it may be -0; so does a constant factor that is 0.
        keeps = isinstance(value, Add | Mul)
        kept = [child if keeps and is_constant(child) else part for (part, _), child in zip(pairs, value.children, strict=True)]
        if all(part is child for part, child in zip(kept, value.children, strict=True)):
            return value, found
        if isinstance(value, Add):
            parts = tuple(part for part in kept if part is not None)
            return (parts[0] if len(parts) == 1 else value.rebuild(parts)), found
        made = value.rebuild(tuple(part or ZERO for part in kept))
        # A constant as such says nothing of the pattern; what a constant is left of had a value everywhere, and so has the whole.
        left = any(part is not child and part is not None and is_constant(part) for part, child in zip(kept, value.children, strict=True))
        if left and (isinstance(made, Apply) or (isinstance(made, Div) and complete())):
            made = replace(made, everywhere=True)
        return made, found

    def remaining(self, statement: Stmt, loops: Loops = (), inner: Domains = _NONE) -> Remaining:
        """Return the part of a statement inside some loops that has an effect; a producer stays only where its consumer does."""
        match statement:
            case Assign(target, _, value):
                kept, found = self.left(value, lambda: self.complete(statement, loops), inner)
                whole = statement if kept is value else None if kept is None else replace(statement, value=kept)
                return Remaining(whole, found, {target.tensor: found})
            case Forall():
                return self._chain(statement, loops, inner)
            case Unless(_, _, body):
                below = self.remaining(body, loops, inner)
                return below if below.statement is None else replace(below, statement=statement.rebuild((below.statement,)))
            case Block(statements):
                return self._block(statements, loops, inner)
            case Where(consumer, producer):
                made = self.remaining(producer, loops, inner)
                used = self.remaining(consumer, loops, {**inner, **made.written})
                if made.statement is None or used.statement is None:
                    return used
                return replace(used, statement=statement.rebuild((used.statement, made.statement)))
            case _:
                raise TypeError(f"cannot restrict {type(statement).__name__}")

    def _chain(self, statement: Forall, loops: Loops, inner: Domains) -> Remaining:
        chain, body = [statement], statement.body
        while isinstance(body, Forall):
            chain.append(body)
            body = body.body
        below = self.remaining(body, (*loops, *(loop.index for loop in chain)), inner)
        if below.statement is None or below.statement is body:
            return below if below.statement is None else replace(below, statement=statement)
        whole = below.statement
        for loop in reversed(chain):
            whole = loop.rebuild((whole,))
        return replace(below, statement=whole)

    def _block(self, statements: tuple[Stmt, ...], loops: Loops, inner: Domains) -> Remaining:
        filled, written, found = dict(inner), dict[str, Domain](), list[Remaining]()
        for item in statements:
            part = self.remaining(item, loops, filled)
            _add(filled, part.written)
            _add(written, part.written)
            found.append(part)
        kept = tuple(part.statement for part in found if part.statement is not None)
        return Remaining(Block(kept) if kept else None, unite(part.domain for part in found), written)


def doing_something(statement: Stmt, add: str) -> Stmt | None:
    """Return the part of a statement that has an effect if all operands have values everywhere; None if there is none.

    Statements with quotients stay as they are: where a quotient has a value depends on what is stored.
    """
    if any(isinstance(node, Div) for assign in statement.assignments for node in walk_expression(assign.value)):
        return statement
    return Patterns(lambda access: EVERYWHERE, add).remaining(statement).statement


def _add(found: dict[str, Domain], more: Domains) -> None:
    """Note where tensors get further entries."""
    for name, domain in more.items():
        found[name] = unite((found.get(name, NOWHERE), domain))
