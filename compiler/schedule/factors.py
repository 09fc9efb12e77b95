"""Parts of expressions: finds a sub-product or some addends of an expression, and the rest around them."""

from __future__ import annotations

from collections.abc import Iterator

from ..frozen import frozen
from ..notation.nodes import Access, Add, Apply, Div, Expr, Literal, Mul
from ..notation.order_free import order_free_text


@frozen
class Occurrence:
    """A part of an expression.

    Attributes:
        part: the part, as in the expression.
        place: child numbers from the root of the expression to the node that contains it.
        members: the numbers of the operands of that node that make up the part; None if it is the whole node.
    """

    part: Expr
    place: tuple[int, ...]
    members: tuple[int, ...] | None


def flatten(expr: Expr) -> Expr:
    """Return the expression with nested products, and nested sums, merged."""
    if not expr.children:
        return expr
    operands = tuple(flatten(child) for child in expr.children)
    if isinstance(expr, Mul | Add):
        kind = type(expr)
        operands = tuple(inner for operand in operands for inner in (operand.children if type(operand) is kind else (operand,)))
    return expr.rebuild(operands)


def canonical(expr: Expr) -> str:
    """Return a text that is equal for expressions that differ only in the order of factors and addends."""
    return order_free_text(flatten(expr))


def occurrences(whole: Expr, part: Expr) -> Iterator[Occurrence]:
    """Yield where a part occurs in a flattened expression, modulo the order of factors and addends."""
    yield from _occurrences(whole, flatten(part), ())


def _occurrences(whole: Expr, part: Expr, place: tuple[int, ...]) -> Iterator[Occurrence]:
    if canonical(whole) == canonical(part):
        yield Occurrence(whole, place, None)
        return
    if isinstance(part, Mul | Add) and type(whole) is type(part):
        members = _members(whole.children, part.children)
        if members is not None:
            yield Occurrence(whole.rebuild(tuple(whole.children[number] for number in members)), place, members)
            return
    for number, child in enumerate(whole.children):
        yield from _occurrences(child, part, (*place, number))


def _members(operands: tuple[Expr, ...], wanted: tuple[Expr, ...]) -> tuple[int, ...] | None:
    """Return the numbers of the wanted operands, each used once, in their own order; None if one is missing."""
    texts = [canonical(operand) for operand in operands]
    found: list[int] = []
    for text in map(canonical, wanted):
        free = [number for number, other in enumerate(texts) if other == text and number not in found]
        if not free:
            return None
        found.append(free[0])
    return tuple(sorted(found))


def replace_part(whole: Expr, found: Occurrence, new: Expr) -> Expr:
    """Return the expression with a part replaced; the new part is at the place of the first operand of the old one."""
    if found.place:
        number, *rest = found.place
        children = list(whole.children)
        children[number] = replace_part(children[number], Occurrence(found.part, tuple(rest), found.members), new)
        return whole.rebuild(tuple(children))
    if found.members is None:
        return new
    kept = [new if number == found.members[0] else operand for number, operand in enumerate(whole.children)]
    return joined(whole, [operand for number, operand in enumerate(kept) if number not in found.members[1:]])


def joined(node: Expr, operands: list[Expr]) -> Expr:
    """Return a product or sum with other operands; a single operand is returned itself."""
    return operands[0] if len(operands) == 1 else node.rebuild(tuple(operands))


def distributes(whole: Expr, found: Occurrence) -> bool:
    """Return whether a sum over the part equals a sum over the whole: the part may only be multiplied, negated or divided; nothing is
    added to it and no function is applied to it."""
    node = whole
    for number in found.place:
        if isinstance(node, Add | Apply) or (isinstance(node, Div) and number == 1):
            return False
        node = node.children[number]
    return found.members is None or isinstance(node, Mul)


def around(whole: Expr, found: Occurrence) -> Expr:
    """Return the expression with a part replaced by a number, to find out which indices the rest uses."""
    return replace_part(whole, found, Literal(1))


def product_factors(expr: Expr) -> tuple[Expr, ...]:
    """Return the factors of a flattened product; any other expression is its own only factor."""
    return expr.operands if isinstance(expr, Mul) else (expr,)


def matches(factor: Expr, wanted: Expr) -> bool:
    """Return whether a directive means a factor: it names the operand, or gives an equal expression."""
    if isinstance(wanted, Access) and isinstance(factor, Access) and not wanted.subscripts:
        return factor.tensor == wanted.tensor
    return canonical(factor) == canonical(wanted)
