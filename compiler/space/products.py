"""Workspaces for any factors of a product, summed or hoisted wherever the loops allow, one and two levels deep.

``products`` keeps workspaces within loops over stored levels, over dense indices alone. Where several operands are stored,
``stored_products`` also ranges workspaces over their indices: two sparse matrices times a vector then are two products of a matrix and a
vector, which is asymptotically better (Ahrens et al., section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice

from ..concrete.nodes import Assign, Block, Forall, Stmt, Where
from ..concrete.provenance import Provenance
from ..frozen import frozen
from ..notation.nodes import Expr
from ..schedule.addresses import Address, enclosing_loops, frames, leaves
from ..schedule.dependence import graph_of, needs_of_expression, uses
from ..schedule.factors import flatten, product_factors
from ..schedule.iteration import producers_inside
from .situation import Situation, Structure, precompute_over, precompute_step, shared_below, tree_first

MAX_PRODUCTS = 40
MAX_SPLITS = 512  # most ways to split one product that are tried: all of up to nine factors


@frozen
class _Split:
    """A product taken apart: some factors, the others, and the indices that either side needs.

    Attributes:
        part, rest: the factors.
        leaf: the assignment.
        loops: those around it, outermost first; the innermost ``own`` can be taken apart.
        needs, others: indices of the part; of the rest and the target.
        graph: of derived indices.
    """

    part: tuple[Expr, ...]
    rest: tuple[Expr, ...]
    leaf: Assign
    loops: tuple[str, ...]
    own: int
    needs: frozenset[str]
    others: frozenset[str]
    graph: Provenance

    @property
    def shared(self) -> list[str]:
        """The loops that both sides need."""
        return [loop for loop in self.loops if uses(self.needs, loop, self.graph) and uses(self.others, loop, self.graph)]

    def saves(self, listed: Sequence[str]) -> bool:
        """Return whether a workspace over some loops takes a loop away from the part or from the rest.

        A loop that only the part needs is summed before the rest is multiplied; a loop that only the rest needs, inside those
        around the workspace, no longer repeats the part.
        """
        scope = len(self.loops) - self.own
        if any(uses(self.needs, loop, self.graph) and not uses(self.others, loop, self.graph) for loop in self.loops[scope:]):
            return True
        outside = [loop for loop in self.shared if loop not in listed]
        inside = self.loops[max(scope, self.loops.index(outside[-1]) + 1 if outside else 0) :]
        return any(not uses(self.needs, loop, self.graph) for loop in inside)


def products(starts: Sequence[Structure], situation: Situation) -> Iterator[Structure]:
    """Yield workspaces over dense indices."""
    return _two_levels(starts, situation, _over_dense)


def stored_products(starts: Sequence[Structure], situation: Situation) -> Iterator[Structure]:
    """Yield workspaces over indices of several stored operands, those over the fewest first."""
    if len({access.tensor for access in situation.stored(situation.program)}) < 2:
        return iter(())
    return _two_levels(starts, situation, _over_any)


_Rule = Callable[[Structure, Situation, int], Iterator[Structure]]


def _two_levels(starts: Sequence[Structure], situation: Situation, rule: _Rule) -> Iterator[Structure]:
    count, second = 0, []
    for start in starts:
        for found in rule(start, situation, 1):
            yield found
            count += 1
            if tree_first(start, situation):
                second.append(found)
            if count == MAX_PRODUCTS // 2:
                break
        if count == MAX_PRODUCTS // 2:
            break
    for start in second:
        for found in rule(start, situation, 2):
            yield found
            count += 1
            if count == MAX_PRODUCTS:
                return


def _over_dense(start: Structure, situation: Situation, level: int) -> Iterator[Structure]:
    """Yield workspaces over the dense loops that both sides share, where that saves work."""
    tree = situation.tree(start.program)
    for split in _splits(start, situation):
        if split.saves(shared_below(split.shared, tree, split.graph)):
            step = precompute_step(split.part, split.rest, split.leaf, split.loops, situation, start, level)
            changed = start.then(situation, step, origin="products")
            if changed is not None:
                yield changed


def _over_any(start: Structure, situation: Situation, level: int) -> Iterator[Structure]:
    """Yield workspaces over the innermost of the loops that both sides share, however many, where that saves work."""
    for split in _splits(start, situation):
        shared = split.shared
        for outermost in range(len(shared), -1, -1):
            listed = shared[outermost:]
            if split.saves(listed):
                step = precompute_over(split.part, listed, start.program, situation, level)
                changed = start.then(situation, step, origin="products")
                if changed is not None:
                    yield changed


def _splits(start: Structure, situation: Situation) -> Iterator[_Split]:
    """Yield ways to take two or more factors, but not all, out of a product, the fewest first."""
    program = start.program
    graph, producers = graph_of(program.relations), producers_inside(program.statement)
    for address, leaf in leaves(program.statement):
        loops = enclosing_loops(program.statement, address)
        own = len(loops) - _outside_of_leaf(program.statement, address)
        factors = product_factors(flatten(leaf.value))
        needed = {factor: needs_of_expression(factor, producers, graph) for factor in factors}
        parts = (part for size in range(2, len(factors)) for part in combinations(factors, size))
        for part in islice(parts, MAX_SPLITS):
            situation.deadline.watch()
            rest = tuple(factor for factor in factors if factor not in part)
            needs = frozenset().union(*(needed[factor] for factor in part))
            others = frozenset(leaf.target.indices).union(*(needed[factor] for factor in rest))
            yield _Split(part, rest, leaf, loops, own, needs, others, graph)


def _outside_of_leaf(statement: Stmt, address: Address) -> int:
    """Return how many loops around an assignment stand outside its producer or block."""
    around = frames(statement, address)
    edges = [depth for depth, frame in enumerate(around) if isinstance(frame, Block) or (isinstance(frame, Where) and address[depth] == 1)]
    return sum(isinstance(frame, Forall) for frame in around[: max(edges, default=0)])
