"""Algebraic rewrites: the pointwise expressions that compute the same sums (Ahrens et al., section 6.1).

Associativity and commutativity are in the representation: sums and products are n-ary, and equal operands in another
order are equal (``canonical_text``). Distributivity is applied at every subset of the places where a product stands over
a sum. Addends are summed in one assignment, or accumulate one after another, each in loops of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from ..frozen import frozen
from ..notation.nodes import Add, Assignment, Div, Expr, Mul, Neg, Sum
from ..notation.order_free import addends, flattened, order_free_text
from ..notation.printer import show
from ..notation.terms import Term, terms


@frozen
class Form:
    """One way to write the right-hand side.

    Attributes:
        addends: each accumulates into the result on its own; its value is summed over ``reduced`` as a whole.
    """

    addends: tuple[Term, ...]


def unwatched() -> None:
    """Never end an enumeration."""


def rewritings(assignment: Assignment, watch: Callable[[], None] = unwatched) -> tuple[Form, ...]:
    """Return the different forms of an assignment, the one closest to what was written first.

    Args:
        assignment: the expression.
        watch: called again and again; it may raise to end the enumeration.
    """
    free = frozenset(assignment.target.indices)
    choices = [[Term(term.reduced, value) for value in expansions(term.value, watch)] for term in terms(assignment.value, free)]
    forms: dict[str, Form] = {}
    for chosen in product(*choices):
        watch()
        for parts in (chosen, _apart(chosen), _joined(chosen)):
            text = " ; ".join(sorted(canonical_text(Sum(part.reduced, part.value)) for part in parts))
            forms.setdefault(text, Form(parts))
    return tuple(forms.values())


def _apart(parts: tuple[Term, ...]) -> tuple[Term, ...]:
    """Let every addend of a sum accumulate on its own."""
    return tuple(Term(part.reduced, value) for part in parts for value in addends(part.value))


def _joined(parts: tuple[Term, ...]) -> tuple[Term, ...]:
    """Put everything into one assignment; addends that are reduced become sums inside it."""
    if len(parts) == 1:
        return parts
    values = [value for term in parts for value in (addends(term.value) if not term.reduced else (Sum(term.reduced, term.value),))]
    return (Term((), Add(tuple(values))),)


def expansions(value: Expr, watch: Callable[[], None] = unwatched) -> tuple[Expr, ...]:
    """Return every expression that distribution of products over sums gives, the given one first; nested sums and products are merged."""
    first = flattened(value)
    found = {canonical_text(first): first}
    pending = [first]
    while pending:
        for step in _distributions(pending.pop(0)):
            watch()
            result = flattened(step)
            if found.setdefault(canonical_text(result), result) is result:
                pending.append(result)
    return tuple(found.values())


def _distributions(value: Expr) -> Iterator[Expr]:
    """Yield what one application of distributivity, anywhere in the expression, gives."""
    for place, child in enumerate(value.children):
        for changed in _distributions(child):
            yield value.rebuild((*value.children[:place], changed, *value.children[place + 1 :]))
    match value:
        case Mul(operands):
            for place, operand in enumerate(operands):
                if isinstance(operand, Add):
                    yield Add(tuple(Mul((*operands[:place], part, *operands[place + 1 :])) for part in operand.operands))
        case Neg(Add(operands)):
            yield Add(tuple(Neg(part) for part in operands))
        case Div(Add(operands), denominator):
            yield Add(tuple(Div(part, denominator) for part in operands))
        case _:
            pass


def canonical_text(value: Expr, leaf: Callable[[Expr], str] = show) -> str:
    """Return ``order_free_text``, also of sums over indices."""

    def bound(part: Expr) -> str:
        if isinstance(part, Sum):
            return f"sum[{','.join(sorted(part.over))}]{canonical_text(part.operand, leaf)}"
        return leaf(part)

    return order_free_text(value, bound)
