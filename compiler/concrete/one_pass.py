"""Several products with one sparse operand in one pass over its entries, which share partial products.

At every node of the operand's tree the factors of deeper levels are summed once for all products that have them, and the factors of
upper levels are multiplied once. This is the MTTKRP of SPLATT (Smith, Ravindran, Sidiropoulos and Karypis, 2015, section IV) for all
modes at once: the memoized products of dimension trees (Phan, Tichavsky and Cichocki, 2013; Kaya and Ucar, 2018), kept for one node at
a time, so that no intermediate is as large as the operand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..fresh import FreshNames
from ..notation.nodes import Access, Mul, index_subscript
from ..notation.printer import show
from .loop_tag import PLAIN, LoopTag
from .nodes import Assign, Block, Forall, Program, Stmt, Where, Workspace, nest

VISIT = 8
"""Cost of going to a node and reading what it stores, counted in products."""


@dataclass(frozen=True)
class Product:
    """``target = operand * factors``, dense but for the operand; every index stands in the target or in the operand."""

    target: Access
    factors: tuple[Access, ...]


@dataclass(frozen=True)
class _Update:
    """``target += product of factors``, or ``=``."""

    target: Access
    operator: str
    factors: tuple[Access, ...]

    def within(self, levels: Sequence[str]) -> tuple[str, ...]:
        """Return the update's own loops, inside those over levels."""
        return tuple(dict.fromkeys(name for access in (self.target, *self.factors) for name in access.indices if name not in levels))

    def statement(self, levels: Sequence[str]) -> Stmt:
        value = self.factors[0] if len(self.factors) == 1 else Mul(self.factors)
        return nest(self.within(levels), Assign(self.target, self.operator, value))


@dataclass
class _Node:
    """What is done at every node of a level: ``before`` its children come, and after them, when the sums over them are known."""

    before: dict[tuple[str, ...], _Update] = field(default_factory=dict)
    sums: dict[tuple[str, ...], Access] = field(default_factory=dict)
    after: list[_Update] = field(default_factory=list)


class OnePass:
    """The loop nest of some products over the levels of their sparse operand.

    Args:
        operand: the access, which is the same in all products.
        levels: its indices in the order in which it stores them.
        products: what is computed.
        taken: names that workspaces must not have.
    """

    def __init__(self, operand: Access, levels: Sequence[str], products: Sequence[Product], taken: set[str]) -> None:
        self.operand, self.levels, self.products = operand, tuple(levels), tuple(products)
        self._names, self._workspaces = FreshNames(taken), list[Workspace]()
        self._nodes = [_Node() for _ in range(len(levels) + 1)]
        for product in products:
            self._place(product)

    def program(
        self, tag: LoopTag = PLAIN, ahead: tuple[tuple[Access, int], ...] = (), add: str = "+", multiply: str = "*"
    ) -> Program:
        """Return the program.

        Args:
            tag: of the outermost loop.
            ahead: what the innermost loop over levels prefetches, and how many iterations ahead.
            add, multiply: operators of the semiring.
        """
        tags = [tag, *(PLAIN for _ in self.levels[1:])]
        tags[-1] = replace(tags[-1], prefetch=ahead)
        return Program(Forall(self.levels[0], self._body(1, tags), tags[0]), tuple(self._workspaces), add=add, multiply=multiply)

    def work(self, nodes: Sequence[int], extents: Mapping[str, int]) -> int:
        """Return how many products are added up, plus the cost of reading the operand.

        Args:
            nodes: of every level, the root first.
            extents: of the indices that are no levels.
        """
        each = (sum(math.prod(extents[name] for name in update.within(self.levels)) for update in _updates(node)) for node in self._nodes)
        return sum(count * (VISIT + work) for count, work in zip(nodes, each, strict=True))

    def racing(self) -> tuple[Access, ...]:
        """Return the results that iterations of the outermost loop share."""
        return tuple(product.target for product in self.products if self.levels[0] not in product.target.indices)

    def _depth(self, access: Access) -> int:
        return max((self.levels.index(name) + 1 for name in access.indices if name in self.levels), default=0)

    def _place(self, product: Product) -> None:
        """Put the update of a result where its last level is known, after the sum over the levels below."""
        depth, deepest = max(1, self._depth(product.target)), len(self.levels)
        if depth < deepest and all(self._depth(factor) > depth for factor in product.factors):
            depth += 1  # the result itself holds the sum
        at, above = self._multiplied(product, depth)
        here = tuple(factor for factor in product.factors if at < self._depth(factor) <= depth)
        self._nodes[depth].after.append(_Update(product.target, "+=", (self._summed(product, depth), *above, *here)))

    def _multiplied(self, product: Product, depth: int) -> tuple[int, tuple[Access, ...]]:
        """Return the last level above whose nodes keep the product of two factors or more, and that product, if there is one."""
        at, held = -1, tuple[Access, ...]()
        for level in range(1, depth):
            upper = tuple(factor for factor in product.factors if self._depth(factor) <= level)
            new = tuple(factor for factor in upper if self._depth(factor) > at)
            if len(upper) > 1 and new:
                known = self._nodes[level].before
                key = _key(upper)
                if key not in known:
                    known[key] = _Update(self._workspace("above", level, upper), "=", (*held, *new))
                at, held = level, (known[key].target,)
        return at, held

    def _summed(self, product: Product, level: int) -> Access:
        """Return what holds, at a node of a level, the sum over its entries of the operand times the factors of deeper levels."""
        if level == len(self.levels):
            return self.operand
        below = tuple(factor for factor in product.factors if self._depth(factor) > level)
        key, known = _key(below), self._nodes[level].sums
        if key not in known:
            known[key] = self._workspace("below", level, below)
            here = tuple(factor for factor in below if self._depth(factor) == level + 1)
            self._nodes[level + 1].after.append(_Update(known[key], "+=", (self._summed(product, level + 1), *here)))
        return known[key]

    def _workspace(self, wish: str, level: int, factors: tuple[Access, ...]) -> Access:
        modes = tuple(dict.fromkeys(name for factor in factors for name in factor.indices if name not in self.levels))
        name = self._names.fresh(f"{wish}_{self.levels[level - 1]}")
        self._workspaces.append(Workspace(name, modes))
        return Access(name, tuple(map(index_subscript, modes)))

    def _body(self, level: int, tags: Sequence[LoopTag]) -> Stmt:
        """Return what is done at a node of a level, whose children are those of the next one."""
        node = self._nodes[level]
        after = [update.statement(self.levels) for update in node.after]
        if level == len(self.levels):
            body = _together(after)
        else:
            inner = Forall(self.levels[level], self._body(level + 1, tags), tags[level])
            body = Where(_together(after), inner) if after else inner
        for update in reversed(node.before.values()):
            body = Where(body, update.statement(self.levels))
        return body


def _updates(node: _Node) -> Iterator[_Update]:
    yield from node.before.values()
    yield from node.after


def _together(statements: list[Stmt]) -> Stmt:
    return statements[0] if len(statements) == 1 else Block(tuple(statements))


def _key(factors: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a key that is the same for equal products."""
    return tuple(sorted(map(show, factors)))
