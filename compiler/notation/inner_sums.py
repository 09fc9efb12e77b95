"""Sums inside functions: an argument is an expression of its own (DESIGN 4.5).

An index of an argument is summed inside the function unless it also occurs outside: on the left side, or in other factors of the term.
Such sums, and explicit ones, are replaced by temporaries, each with an expression that defines it, so that only sums over whole terms are
left. An explicit sum is over its whole operand: ``sum(j, A(i,j) - b(i))`` subtracts ``b(i)`` once for every ``j``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from ..frozen import frozen
from .nodes import Access, Add, Apply, Div, Expr, Mul, Neg, Sum, index_subscript, indices, transform_expression
from .terms import terms


@frozen
class Definition:
    """The definition of a temporary: ``target = value``, where the value reads the temporaries of ``inner``."""

    target: Access
    value: Expr
    inner: tuple[Definition, ...] = ()


@frozen
class Resolved:
    """An expression with temporaries in place of inner sums, and their definitions."""

    value: Expr
    definitions: tuple[Definition, ...] = ()


def resolved(value: Expr, left: tuple[str, ...], fresh: Callable[[str], str]) -> Resolved:
    """Return an expression with temporaries for the sums inside it.

    Args:
        value: the right-hand side.
        left: the indices of the result.
        fresh: takes a name, and returns a unique name like it.
    """
    resolver = _Resolver(fresh)
    if isinstance(value, Sum):  # the terms of a right-hand side are summed over indices that are not on the left in any case
        inner = resolver.expression(value.operand, (*left, *value.over))
        return Resolved(_everywhere(inner.value, frozenset(left), value.over), inner.definitions)
    return resolver.expression(value, left)


def with_sums(value: Expr, left: tuple[str, ...]) -> Expr:
    """Return an expression in which all inner sums, explicit ones and those in arguments, are ``Sum`` nodes, each over one term.

    Args:
        value: the right-hand side.
        left: the indices of the result.
    """
    names = (f"#s{number}" for number in count())
    return _expanded(resolved(value, left, lambda _: next(names)))


def _expanded(found: Resolved) -> Expr:
    sums = {each.target.tensor: _sum_of(each) for each in found.definitions}
    return transform_expression(found.value, lambda part: sums.get(part.tensor) if isinstance(part, Access) else None)


def _sum_of(definition: Definition) -> Expr:
    """Return the definition of a temporary as an expression with ``Sum`` nodes."""
    kept = frozenset(definition.target.indices)
    parts = []
    for term in terms(definition.value, kept):
        value = _expanded(Resolved(term.value, definition.inner))
        parts.append(Sum(term.reduced, value) if term.reduced else value)
    return parts[0] if len(parts) == 1 else Add(tuple(parts))


def _everywhere(value: Expr, free: frozenset[str], over: tuple[str, ...]) -> Expr:
    """Return an expression in which every term has all indices of the sum.

    A term that lacks an index becomes ``where(other, term, term)``; ``other`` is a term with that index. The term keeps its value,
    but is added once for every value of the index.
    """
    parts = [part.value for part in terms(value, free)]
    found = [frozenset(indices(part)) for part in parts]
    for place, part in enumerate(parts):
        for index in over:
            if index not in found[place] and (other := next((one for one in parts if index in indices(one)), None)) is not None:
                part = Apply("where", (other, part, part))
                found[place] |= frozenset(indices(other))
        parts[place] = part
    return value if len(parts) == 1 else Add(tuple(parts))


class _Resolver:
    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.fresh = fresh

    def expression(self, value: Expr, around: tuple[str, ...]) -> Resolved:
        """Resolve an expression; ``around`` has the indices that occur outside it."""
        match value:
            case Mul() | Div() if any(child.children for child in value.children):
                found = []
                for place, child in enumerate(value.children):
                    others = [name for number, other in enumerate(value.children) if number != place for name in indices(other)]
                    found.append(self.expression(child, (*around, *others)))
                return self._rebuilt(value, found)
            case Add() | Neg():
                return self._rebuilt(value, [self.expression(child, around) for child in value.children])
            case Apply(_, arguments):
                return self._rebuilt(value, [self.argument(argument, around) for argument in arguments])
            case Sum(over, operand):
                inner, kept = self.expression(operand, (*around, *over)), tuple(name for name in around if name not in over)
                return self._temporary(Resolved(_everywhere(inner.value, frozenset(kept), over), inner.definitions), kept)
            case _:
                return Resolved(value)

    def argument(self, value: Expr, around: tuple[str, ...]) -> Resolved:
        """Resolve an argument of a function; indices that do not occur around it are summed."""
        inner = self.expression(value, around)
        if any(term.reduced for term in terms(inner.value, frozenset(around))):
            return self._temporary(inner, around)
        return inner

    def _temporary(self, inner: Resolved, around: tuple[str, ...]) -> Resolved:
        kept = tuple(dict.fromkeys(name for name in indices(inner.value) if name in around))
        target = Access(self.fresh("s"), tuple(map(index_subscript, kept)))
        return Resolved(target, (Definition(target, inner.value, inner.definitions),))

    def _rebuilt(self, value: Expr, parts: list[Resolved]) -> Resolved:
        definitions = tuple(definition for part in parts for definition in part.definitions)
        return Resolved(value.rebuild(tuple(part.value for part in parts)), definitions)
