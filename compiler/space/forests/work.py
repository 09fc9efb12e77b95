"""How much work a forest is on operands of known size, as a tree-separable cost.

Every term costs, per iteration of the loops around it, its multiplications and one more for each value that its innermost loop moves to or
from memory; innermost loops over consecutive values of dense tensors count by vectors. A loop runs over what a sparse operand
stores where everything in it is a multiple of that operand, as often as an average fibre is long, or a fibre of what several sparse
operands have in common. Buffers cost their elements each time they are cleared, as in the static model (``distances``); those beyond the
near caches also cost their loads and stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from math import inf, prod

from ...frozen import frozen
from ..distances import LANES, START, cleared, passed_through
from .contraction import Contraction, members
from .paths import Term, read_indices, term_indices
from .separable import Peel, SeparableCost


@frozen
class Sizes:
    """How large the operands of a contraction are.

    Attributes:
        extents: by index.
        fibres: for every sparse operand by its number, how many positions each of its levels has, outermost first.
        joined: how many combinations several sparse operands have together: those of so many outermost levels of each, by number;
            None where that is not known, and always without operands.
    """

    extents: Mapping[str, float]
    fibres: Mapping[int, tuple[float, ...]]
    joined: Callable[[Mapping[int, int]], float | None] = field(default=lambda depths: None)

    def extent(self, contraction: Contraction, index: int) -> float:
        """Return the extent of an index, given by its number in the contraction."""
        return self.extents[contraction.indices[index]]

    def elements(self, contraction: Contraction, mask: int) -> float:
        """Return how many elements a dense buffer over some indices has."""
        return prod((self.extent(contraction, index) for index in members(mask)), start=1.0)

    def run(self, operand: int, chain: tuple[int, ...], index: int) -> float:
        """Return how long a fibre of a sparse operand is on average in the level of an index."""
        level = chain.index(index)
        counts = self.fibres[operand]
        above = counts[level - 1] if level else 1.0
        return counts[level] / above if above else 0.0


def work(sizes: Sizes, most: float = inf) -> SeparableCost:
    """Return the operations of a forest as a cost; buffers have at most ``most`` elements."""

    def phi(peel: Peel, inner: float) -> float:
        contraction = peel.contraction
        filled = [sizes.elements(contraction, mask) for mask in peel.passed]
        if any(elements > most for elements in filled):
            return inf
        fill = sum(_buffered(elements) for elements, mask in zip(filled, peel.passed, strict=True) if mask)
        if peel.loop < 0:
            return operations(contraction, peel.terms[0], -1) + fill
        last = len(peel.terms) == 1 and term_indices(contraction, peel.terms[0]) & ~peel.removed == 1 << peel.loop
        each = operations(contraction, peel.terms[0], peel.loop) if last else inner
        return iterations(peel, sizes) * each + (START if last else 0.0) + fill

    return SeparableCost("work", phi, lambda one, other: one + other)


def _buffered(elements: float) -> float:
    """Return the cost of a buffer each time it is filled: it is cleared, and its elements are stored and read at least once, which
    ``operations`` counts as if all were near."""
    return cleared(elements) + 3.0 * (passed_through(elements) - 1.0) * elements / LANES


def iterations(peel: Peel, sizes: Sizes) -> float:
    """Return how many iterations a loop has each time it is entered, on average."""
    contraction = peel.contraction
    driving = [
        (operand, chain) for operand, chain in contraction.chains if peel.loop in chain and is_driven(peel, 1 << operand)
    ]
    read = {part.bit_length() - 1 for term in peel.terms for part in term.parts if not part & (part - 1)}
    around = {operand: _outer_levels(chain, peel.removed) for operand, chain in contraction.chains if operand in read}
    inside = around | {operand: chain.index(peel.loop) + 1 for operand, chain in driving}
    if sum(map(bool, inside.values())) > 1 and driving:
        before, after = sizes.joined(around), sizes.joined(inside)
        if before and after is not None:
            return after / before
    runs = [sizes.run(operand, chain, peel.loop) for operand, chain in driving]
    return min(runs, default=sizes.extent(contraction, peel.loop))


def _outer_levels(chain: tuple[int, ...], loops: int) -> int:
    """Return how many outermost levels of an operand have their loops among given ones."""
    return next((level for level, index in enumerate(chain) if not loops >> index & 1), len(chain))


def is_driven(peel: Peel, operand: int) -> bool:
    """Return whether everything in a loop is a multiple of a sparse operand that a term in it reads.

    A term is, if the operand is among what it multiplies, or if what it computes is read by such a term in the same loop.
    """
    if not any(operand in term.parts for term in peel.terms):
        return False
    reaching = 0
    for term in reversed(peel.terms):
        multiple = term.operands & operand or reaching & term.operands
        if not multiple:
            return False
        for part in term.intermediates:
            reaching |= part
    return True


def operations(contraction: Contraction, term: Term, innermost: int) -> float:
    """Return the operations of one iteration of a term's innermost loop; -1: it has none of its own."""
    bit = 1 << innermost if innermost >= 0 else 0
    target = contraction.written(term.operands)
    varying = sum(bool(read_indices(contraction, term, part) & bit) for part in term.parts)
    multiplied = max(1.0, varying - 1.0 + (varying < len(term.parts)))  # loop-invariant factors are multiplied once before
    each = multiplied + varying + 2 * bool(target & bit)
    return each / LANES if bit and _is_contiguous(contraction, term, innermost) else each


def _is_contiguous(contraction: Contraction, term: Term, innermost: int) -> bool:
    """Return whether an innermost loop runs over the last mode of every tensor of a term that has its index."""
    if contraction.fibres is not None and innermost == contraction.fibres.index:
        return False
    name = contraction.indices[innermost]
    accesses = [contraction.operands[part.bit_length() - 1] for part in term.parts if not part & (part - 1)]
    if term.operands == contraction.everything:
        accesses.append(contraction.target)
    if any(term.operands >> number & 1 and innermost in chain for number, chain in contraction.chains if 1 << number in term.parts):
        return False
    return all(access.indices[-1] == name for access in accesses if name in access.indices)
