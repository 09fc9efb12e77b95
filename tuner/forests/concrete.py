"""The stages of Dias et al. that need the input (section 5.3): least time among what fits the cache, then how leaves access memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ...compiler.format import Format
from ...compiler.space.forests.forest import Forest, Placed

BYTES = 8
"""The bytes of an element of a buffer."""


def fastest(forests: Mapping[Forest, Mapping[str, Format]], sizes: Mapping[str, float]) -> Forest:
    """Return, of forests that take the same time, the one whose leaves access memory best; of equal ones, the one whose loops agree most
    with the orders in which tensors are stored.

    Args:
        forests: at least one, each with the formats in which it reads operands and writes the result.
        sizes: extents, by index.
    """
    return min(forests, key=lambda one: (access_cost(one, forests[one], sizes), disagreements(one, forests[one])))


def access_cost(forest: Forest, formats: Mapping[str, Format], sizes: Mapping[str, float]) -> float:
    """Return how far apart leaves access memory: the sum, over the tensors at leaves, of the elements between two accesses.

    A tensor counts if it has the index of the leaf's innermost loop, but not as its last index; a leaf without loops of its own counts 0.
    """
    names = forest.contraction.indices
    return sum(
        prod(sizes[name] for name in modes[modes.index(names[place.order[-1]]) + 1 :])
        for place in forest.placed
        if place.order
        for modes in _tensors(forest, place, formats)
        if names[place.order[-1]] in modes[:-1]
    )


def disagreements(forest: Forest, formats: Mapping[str, Format]) -> int:
    """Return for how many pairs of a tensor's indices the loops around a term come in another order than the tensor stores them."""
    names = forest.contraction.indices
    found = 0
    for place in forest.placed:
        order = [names[index] for index in place.order]
        for modes in _tensors(forest, place, formats):
            places = [order.index(name) for name in modes if name in order]
            found += sum(one > other for number, one in enumerate(places) for other in places[number + 1 :])
    return found


def _tensors(forest: Forest, place: Placed, formats: Mapping[str, Format]) -> Iterator[tuple[str, ...]]:
    """Yield, for each operand that a term reads and the result if it writes that, the indices in the order of storage."""
    accesses = [forest.contraction.operands[part.bit_length() - 1] for part in place.term.parts if not part & (part - 1)]
    if place.term.operands == forest.contraction.everything:
        accesses.append(forest.contraction.target)
    for access in accesses:
        yield tuple(access.indices[mode] for mode in formats[access.tensor].order)
