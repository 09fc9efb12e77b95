"""A product of tensors as sets of indices: what contraction trees and loop nest forests are made of.

Sets of indices and of operands are bit masks: the dynamic program looks at many thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from ...errors import ExpressionError
from ...format import Format
from ...frozen import frozen
from ...notation.nodes import Access, Assignment, Mul, accesses
from ...notation.printer import show
from ...schedule.factors import flatten, product_factors


def members(mask: int) -> Iterator[int]:
    """Yield the numbers in a mask, smallest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@frozen
class Fibres:
    """Outermost levels of a sparse operand that loops go through together, one stored fibre after the other.

    Attributes:
        operand: its number.
        levels: the indices of these levels, outermost first.
        index: the index that counts their positions.
    """

    operand: int
    levels: tuple[int, ...]
    index: int

    @cached_property
    def coordinates(self) -> int:
        """The indices of the levels, as a mask."""
        return sum(1 << index for index in self.levels)

    def counted(self, indices: int) -> int:
        """Return indices with positions in place of the coordinates that are among them."""
        return indices & ~self.coordinates | 1 << self.index if indices & self.coordinates else indices


@frozen
class Contraction:
    """One product of at least two tensors, summed over every index that the result does not have.

    With ``fibres``, what is made of their operand has a slot for every position, as long as it keeps all coordinates of these levels.

    Attributes:
        target: the access of the result.
        operands: the factors, as written.
        indices: all indices; masks count them from the first on.
        chains: for every sparse operand its number and its indices in the order of its levels, outermost first; one index stands for all
            levels of ``fibres``.
        fibres: the levels that are gone through by positions, if any (``fibres.by_fibres``).
    """

    target: Access
    operands: tuple[Access, ...]
    indices: tuple[str, ...]
    chains: tuple[tuple[int, tuple[int, ...]], ...]
    fibres: Fibres | None = None

    @cached_property
    def sets(self) -> tuple[int, ...]:
        """The indices of every operand."""
        return tuple(self._told_apart(1 << number, indices) for number, indices in enumerate(self._coordinates))

    @cached_property
    def _coordinates(self) -> tuple[int, ...]:
        return tuple(self.mask(access.indices) for access in self.operands)

    @cached_property
    def output(self) -> int:
        """The indices of the result."""
        return self.mask(self.target.indices)

    @cached_property
    def everything(self) -> int:
        """All operands."""
        return (1 << len(self.operands)) - 1

    @cached_property
    def sparse(self) -> int:
        """The sparse operands."""
        return sum(1 << number for number, _ in self.chains)

    def mask(self, names: tuple[str, ...]) -> int:
        """Return the set of indices with these names, as a mask; a name may occur several times."""
        return sum(1 << self.indices.index(name) for name in dict.fromkeys(names))

    def names_in_order(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the names of some indices."""
        return tuple(self.indices[number] for number in numbers)

    def names(self, mask: int) -> tuple[str, ...]:
        """Return the names of a set of indices, in the order of ``indices``."""
        return tuple(self.indices[number] for number in members(mask))

    @cached_property
    def _needed(self) -> dict[int, tuple[int, int]]:
        return {}

    def _sides(self, operands: int) -> tuple[int, int]:
        found = self._needed.get(operands)
        if found is None:
            inside = outside = 0
            for number, indices in enumerate(self._coordinates):
                if operands >> number & 1:
                    inside |= indices
                else:
                    outside |= indices
            found = self._needed[operands] = (inside, inside & (outside | self.output))
        return found

    def open(self, operands: int) -> int:
        """Return the indices that the product of some operands keeps: those that the others or the result have too."""
        return self._told_apart(operands, self._sides(operands)[1])

    def written(self, operands: int) -> int:
        """Return the indices of what the term of some operands writes: the result's if these are all operands, else an intermediate's."""
        return self._told_apart(operands, self.output) if operands == self.everything else self.open(operands)

    def levels(self, operand: int) -> tuple[int, ...]:
        """Return the indices of the levels of a sparse operand, outermost first, one for each level."""
        chain = dict(self.chains)[operand]
        return (*self.fibres.levels, *chain[1:]) if self.fibres is not None and self.fibres.operand == operand else chain

    def depth(self, operand: int, entries: int) -> int:
        """Return how many levels the first entries of a sparse operand's chain are."""
        is_merged = self.fibres is not None and self.fibres.operand == operand and entries > 0
        return entries + len(self.fibres.levels) - 1 if self.fibres is not None and is_merged else entries

    def _told_apart(self, operands: int, indices: int) -> int:
        """Return the indices of what is made of some operands, with the index of positions if all coordinates of the fibres are
        among them."""
        fibres = self.fibres
        is_whole = fibres is not None and operands >> fibres.operand & 1 and not fibres.coordinates & ~indices
        return fibres.counted(indices) if fibres is not None and is_whole else indices


def contraction_of(assignment: Assignment, formats: Mapping[str, Format]) -> Contraction:
    """Return the contraction that an assignment is.

    Args:
        assignment: checked.
        formats: a format for every tensor.

    Raises:
        ExpressionError: the right-hand side is no product of two tensors or more, an access has subscripts other than different
        indices, or a factor appears twice.
    """
    value = flatten(assignment.value)
    factors = product_factors(value) if isinstance(value, Mul) else ()
    operands = tuple(factor for factor in factors if isinstance(factor, Access))
    if len(operands) < 2 or len(operands) != len(factors):
        raise ExpressionError(f"loop nest forests compute products of two tensors or more; {show(assignment.value)} is not one")
    for access in (assignment.target, *operands):
        if any(not subscript.is_index for subscript in access.subscripts) or len(set(access.indices)) < len(access.subscripts):
            raise ExpressionError(f"loop nest forests have a different plain index in every mode; {show(access)} does not")
    if len(set(operands)) < len(operands):
        raise ExpressionError(f"loop nest forests read every factor once; {show(assignment.value)} has one twice")
    indices = tuple(dict.fromkeys(name for access in (*accesses(assignment.value), assignment.target) for name in access.indices))
    chains = tuple(
        (number, tuple(indices.index(access.indices[mode]) for mode in formats[access.tensor].order))
        for number, access in enumerate(operands)
        if not formats[access.tensor].is_dense
    )
    return Contraction(assignment.target, operands, indices, chains)
