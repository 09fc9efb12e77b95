"""How many cases the loops over an expression would distinguish if all its operands met in one nest.

An iteration lattice has a loop for every set of operands that are not exhausted, and in it a case for every set that is
present (Kjolstad et al., "The tensor algebra compiler", section 5): a sum of n operands with L stored levels takes
(2L + 1)^n - (2L)^n cases. Where everything is visited there is one loop alone, with all cases.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..format import Format
from ..frozen import frozen
from ..notation.nodes import Access, Expr, Mul, accesses, walk_expression
from .annihilation import Patterns
from .lattice import EVERYWHERE, NOWHERE, UNDECIDED, Domain, Stored, cover, points

_MOST_OPERANDS = 8  # operands of one expression; more of them always have too many cases


def cases(value: Expr, loops: tuple[str, ...], formats: Mapping[str, Format], most: int, complete: bool = False) -> int:
    """Return the number of cases; counting ends at the first number above ``most``.

    Args:
        value: the expression.
        loops: the indices, outermost first.
        formats: of its operands.
        most: where counting ends.
        complete: whether quotients have a value everywhere (``concrete.completeness``).
    """
    if all(isinstance(node, Access | Mul) for node in walk_expression(value)):
        return 1  # every loop of a product is one intersection
    sparse = {access for access in accesses(value) if not formats[access.tensor].is_dense}
    if len(sparse) > _MOST_OPERANDS:
        return most + 1
    return _Nest(value, formats, most, complete).cases(loops, frozenset())


@frozen
class _Nest:
    value: Expr
    formats: Mapping[str, Format]
    most: int
    complete: bool

    def cases(self, loops: tuple[str, ...], absent: frozenset[Access]) -> int:
        found = self._domain(loops, absent)
        if found == NOWHERE or not loops:
            return 0 if found == NOWHERE else 1
        lattice = points(found)
        operands = frozenset().union(*lattice)
        total = 0
        for case in lattice:
            around = 1 if frozenset() in lattice else sum(case <= loop for loop in lattice)
            total += around * self.cases(loops[1:], absent | (operands - case))
            if total > self.most:
                break
        return total

    def _domain(self, loops: tuple[str, ...], absent: frozenset[Access]) -> Domain:
        """Return the domain of the outermost of some loops."""

        def of(access: Access) -> Domain:
            if access in absent:
                return NOWHERE
            if (stored := _stored(access, self.formats[access.tensor])) & set(loops[:1]):
                return Stored(access)
            return UNDECIDED if stored & set(loops) else EVERYWHERE

        return cover(Patterns(of).expression(self.value, lambda: self.complete))


def _stored(access: Access, form: Format) -> frozenset[str]:
    """Return the indices whose coordinates an access stores."""
    return frozenset(access.subscripts[mode].index for mode, kind in zip(form.order, form.levels, strict=True) if kind.stores_coordinates)
