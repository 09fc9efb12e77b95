"""Contraction paths: in which groups, and in which order, the factors of a product are multiplied.

A path is a depth-first postorder of a contraction tree (Kanakagiri and Solomonik, Definition 4.1): what a term reads is
computed directly before it, one intermediate after the other. The inner nodes of a tree have two children in that paper; with
more, several factors are multiplied at once, as SparseAuto's splits leave them (Dias et al., section 5.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations, product
from math import comb

from ...frozen import frozen
from .contraction import Contraction, members


@frozen
class Term:
    """An inner node of a contraction tree: the product of its parts.

    Attributes:
        parts: what is multiplied, each a set of operands, sorted by their first ones. A set of one is that operand, a larger set
        an intermediate.
    """

    parts: tuple[int, ...]

    @property
    def operands(self) -> int:
        """All operands below the node."""
        return sum(self.parts)

    @property
    def intermediates(self) -> tuple[int, ...]:
        """The parts that other terms compute."""
        return tuple(part for part in self.parts if part & (part - 1))


Path = tuple[Term, ...]


@frozen
class PathRules:
    """Rules that say which contraction paths there are.

    Attributes:
        pairwise: every term multiplies two parts; otherwise two or more, so that the product as one term is a path too.
        reducing: every term but the last sums over an index.
    """

    pairwise: bool = True
    reducing: bool = False


def paths(contraction: Contraction, rules: PathRules | None = None) -> Iterator[Path]:
    """Yield all contraction paths, in canonical order."""
    chosen = rules or PathRules()
    return (path for path in _generated(contraction.everything, chosen.pairwise) if _admitted(contraction, path, chosen))


def _admitted(contraction: Contraction, path: Path, rules: PathRules) -> bool:
    if contraction.fibres is not None and not _passes_fibres(contraction, path):
        return False
    return not rules.reducing or all(term_indices(contraction, term) != contraction.open(term.operands) for term in path[:-1])


def _passes_fibres(contraction: Contraction, path: Path) -> bool:
    """Return whether some term passes stored fibres on to another, and no term that goes by positions reads an intermediate by
    coordinates."""
    assert contraction.fibres is not None
    by_position = [term for term in path if goes_by_position(contraction, term)]
    inner = (part_indices(contraction, part) for term in by_position for part in term.intermediates)
    return len(by_position) > 1 and not any(indices & contraction.fibres.coordinates for indices in inner)


def goes_by_position(contraction: Contraction, term: Term) -> bool:
    """Return whether a term goes through stored fibres by positions: it reads the operand, or an intermediate with a slot for each."""
    fibres = contraction.fibres
    return fibres is not None and any(part_indices(contraction, part) >> fibres.index & 1 for part in term.parts)


def term_indices(contraction: Contraction, term: Term) -> int:
    """Return the indices of the loops around a term: those of its parts, and of the result where it is the last."""
    found = contraction.written(term.operands) if term.operands == contraction.everything else 0
    for part in term.parts:
        found |= part_indices(contraction, part)
    return _counted(contraction, term, found)


def read_indices(contraction: Contraction, term: Term, part: int) -> int:
    """Return the indices of the loops around a term that go through one of its parts."""
    return _counted(contraction, term, part_indices(contraction, part))


def _counted(contraction: Contraction, term: Term, indices: int) -> int:
    return contraction.fibres.counted(indices) if contraction.fibres is not None and goes_by_position(contraction, term) else indices


def part_indices(contraction: Contraction, part: int) -> int:
    """Return the indices of what a term reads: all of an operand, the open ones of an intermediate."""
    return contraction.open(part) if part & (part - 1) else contraction.sets[part.bit_length() - 1]


@cache
def _postorders(operands: int, pairwise: bool) -> tuple[Path, ...]:
    return tuple(_generated(operands, pairwise))


def _generated(operands: int, pairwise: bool) -> Iterator[Path]:
    if not operands & (operands - 1):
        yield ()
        return
    for parts in _partitions(operands, pairwise):
        term = Term(parts)
        for inner in permutations(term.intermediates):
            choices = product(*(_postorders(part, pairwise) for part in inner))
            yield from ((*(other for path in before for other in path), term) for before in choices)


def _partitions(operands: int, pairwise: bool) -> Iterator[tuple[int, ...]]:
    """Yield the partitions of a set into two parts, or into two or more, with parts sorted by their first members."""
    first, rest = operands & -operands, operands & (operands - 1)
    for chosen in _subsets(rest):
        others = rest ^ chosen
        if others:
            yield first | chosen, others
            if not pairwise and others & (others - 1):
                yield from ((first | chosen, *more) for more in _partitions(others, pairwise))


def _subsets(mask: int) -> Iterator[int]:
    numbers = tuple(members(mask))
    for flags in range(1 << len(numbers)):
        yield sum(1 << number for place, number in enumerate(numbers) if flags >> place & 1)


@cache
def path_count(tensors: int) -> int:
    """Return how many pairwise postorders of contraction trees there are.

    A node with two inner children has two orders. The side with the first operand is counted apart from the other side.
    """
    if tensors == 1:
        return 1
    found = 0
    for beside in range(tensors - 1):  # other operands on the side of the first one
        left, right = beside + 1, tensors - 1 - beside
        orders = 2 if left > 1 and right > 1 else 1
        found += comb(tensors - 1, beside) * orders * path_count(left) * path_count(right)
    return found
