"""Branch and bound over contraction paths: a lower bound on the work of a path's forests, known before its loops are ordered.

A term has a loop for each of its indices. Loops keep the storage order. A loop therefore runs over what a sparse operand stores only if
the loops of the levels above stand around the same term; every other loop runs through its whole extent.
"""

from __future__ import annotations

from itertools import takewhile
from math import prod

from .contraction import Contraction, members
from .paths import Path, Term, term_indices
from .work import Sizes, operations


class LeastWork:
    """Lower bounds of ``work.work``, remembered by term.

    Args:
        contraction: what is computed.
        sizes: of its operands.
    """

    def __init__(self, contraction: Contraction, sizes: Sizes) -> None:
        self._contraction, self._sizes = contraction, sizes
        self._known: dict[Term, float] = {}

    def of_path(self, path: Path) -> float:
        """Return a lower bound on the work of every forest of a path."""
        return sum(map(self.of_term, path))

    def of_term(self, term: Term) -> float:
        """Return a lower bound on the work of a term in every forest."""
        found = self._known.get(term)
        if found is None:
            indices = term_indices(self._contraction, term)
            each = min(operations(self._contraction, term, index) for index in (-1, *members(indices)))
            found = self._known[term] = each * self._iterations(indices)
        return found

    def _iterations(self, indices: int) -> float:
        """Return the least number of iterations of loops over some indices. A sparse operand drives only the loops of its
        outermost levels, down to the first level whose loop is missing."""
        runs = {index: self._sizes.extent(self._contraction, index) for index in members(indices)}
        depths = dict[int, int]()
        for operand, chain in self._contraction.chains:
            for index in takewhile(runs.__contains__, chain):
                runs[index] = min(runs[index], self._sizes.run(operand, chain, index))
                depths[operand] = depths.get(operand, 0) + 1
        together = self._sizes.joined(depths) if len(depths) > 1 else None
        if together is None:
            return prod(runs.values())
        driven = {index for operand, chain in self._contraction.chains for index in chain[: depths.get(operand, 0)]}
        others = (self._sizes.extent(self._contraction, index) for index in runs if index not in driven)
        return min(prod(runs.values()), together * prod(others))
