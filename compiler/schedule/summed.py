"""The terms that a program sums, independent of its workspaces; ``addends`` compares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..concrete.nodes import Assign, Forall, Program, Stmt, Where
from ..notation.nodes import Access, Add, Apply, Expr, Sum, transform_expression, unbound
from ..notation.order_free import flattened, order_free_text
from ..notation.printer import show
from ..notation.terms import Term, addend_count, distributed
from .rules import Rule, refuse

MOST_PIECES = 4096
"""The most addends to which products of sums are distributed to compare two sums; they double with every factor."""


def with_meanings(value: Expr, meanings: Mapping[str, Expr]) -> Expr:
    """Return an expression in which reads of workspaces are replaced by their values."""
    return transform_expression(value, lambda part: meanings.get(part.tensor) if isinstance(part, Access) else None)


def sum_of(value: Expr, kept: frozenset[str]) -> Expr:
    """Return the sum of an expression over the indices that are not kept."""
    over = tuple(name for name in unbound(value) if name not in kept)
    return Sum(over, value) if over else value


def workspace_meanings(program: Program) -> dict[str, Expr]:
    """Return, for every workspace of a program, its value in terms of operands."""
    found: dict[str, list[Expr]] = {}
    local = {space.name for space in program.workspaces}
    for assign, around in _assigned(program.statement, ()):
        if assign.target.tensor in local:
            known = {name: _added(parts) for name, parts in found.items()}
            value = with_meanings(assign.value, known)
            found.setdefault(assign.target.tensor, []).append(sum_of(value, frozenset((*around, *assign.target.indices))))
    return {name: _added(parts) for name, parts in found.items()}


def _added(parts: list[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else Add(tuple(parts))


def _assigned(statement: Stmt, loops: tuple[str, ...], shared: tuple[str, ...] = ()) -> Iterator[tuple[Assign, tuple[str, ...]]]:
    """Yield the assignments in the order in which they run, each with the loops around the where of its target; for results no loops."""
    match statement:
        case Assign():
            yield statement, shared
        case Forall(index, body):
            yield from _assigned(body, (*loops, index), shared)
        case Where(consumer, producer):
            yield from _assigned(producer, loops, loops)
            yield from _assigned(consumer, loops, shared)
        case _:
            for child in statement.children:
                yield from _assigned(child, loops, shared)


def pieces(term: Term) -> Iterator[str]:
    """Yield texts of the sums in a term after distributing products over sums. Equal terms have the same texts, in any order."""
    for text in _distributed(term.value):
        yield f"the sum over {', '.join(sorted(term.reduced))} of {text}" if term.reduced else text


def _distributed(value: Expr) -> list[str]:
    value = _without_sums(value)
    if addend_count(value) > MOST_PIECES:
        refuse(Rule.ADDENDS_SAME, f"the products of sums in {show(value)[:40]}... have more than {MOST_PIECES} addends")
    return [order_free_text(flattened(piece)) for piece in distributed(value)]


def _without_sums(value: Expr) -> Expr:
    """Return an expression with functions and inner sums as leaves, named by texts that do not depend on the order of operands."""
    match value:
        case Apply(function, arguments):
            return Access(f"{function}({', '.join(' + '.join(sorted(_distributed(argument))) for argument in arguments)})")
        case Sum(over, operand):
            return _added([Access(f"the sum over {', '.join(sorted(over))} of {text}") for text in _distributed(operand)])
        case _:
            return value.rebuild(tuple(map(_without_sums, value.children))) if value.children else value
