"""Random expressions of index notation: trees of their own, so that parser, distribution and lowering are all under test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

INDICES = ("i", "j", "k", "l", "m", "n")
ROW = INDICES[0]
"""The index of rows, where a case has many of them."""
SUM, PRODUCT, ATOM = 1, 2, 3


@dataclass(frozen=True)
class Leaf:
    """A tensor read at plain indices; an index that repeats reads a diagonal."""

    tensor: str
    indices: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    value: int | float


@dataclass(frozen=True)
class Minus:
    operand: Tree


@dataclass(frozen=True)
class Sum:
    """``left + right``, or ``left - right``."""

    left: Tree
    right: Tree
    negative: bool = False


@dataclass(frozen=True)
class Product:
    left: Tree
    right: Tree


@dataclass(frozen=True)
class Quotient:
    left: Tree
    right: Tree


Tree: TypeAlias = Leaf | Constant | Minus | Sum | Product | Quotient


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Yield the accesses of a tree, left to right."""
    match tree:
        case Leaf():
            yield tree
        case Minus(operand):
            yield from leaves(operand)
        case Sum(left, right) | Product(left, right) | Quotient(left, right):
            yield from leaves(left)
            yield from leaves(right)


def denominators(tree: Tree) -> Iterator[Leaf]:
    """Yield the accesses that stand somewhere below a division line."""
    match tree:
        case Minus(operand):
            yield from denominators(operand)
        case Quotient(left, right):
            yield from denominators(left)
            yield from leaves(right)
        case Sum(left, right) | Product(left, right):
            yield from denominators(left)
            yield from denominators(right)


def has_sum(tree: Tree, *, below_product: bool = False, inside: bool = False) -> bool:
    """Whether a sum stands in a tree, numerators only; ``below_product``: a sum that a product or quotient is taken of."""
    match tree:
        case Sum(left, right):
            return inside or not below_product or has_sum(left, below_product=True) or has_sum(right, below_product=True)
        case Minus(operand):
            return has_sum(operand, below_product=below_product, inside=inside)
        case Product(left, right):
            return any(has_sum(part, below_product=below_product, inside=True) for part in (left, right))
        case Quotient(left, _):
            return has_sum(left, below_product=below_product, inside=True)
        case _:
            return False


def show_leaf(leaf: Leaf) -> str:
    return f"{leaf.tensor}({','.join(leaf.indices)})" if leaf.indices else leaf.tensor


def show(tree: Tree, rng: Random, above: int = SUM) -> str:
    """Return the text of a tree, with the parentheses that it needs and some that it does not."""
    match tree:
        case Leaf():
            text, own = show_leaf(tree), ATOM
        case Constant(value):
            text, own = repr(value), ATOM
        case Minus(operand):
            text, own = f"-{show(operand, rng, ATOM)}", PRODUCT
        case Sum(left, right, negative):
            text, own = f"{show(left, rng, SUM)} {'-' if negative else '+'} {show(right, rng, PRODUCT)}", SUM
        case Product(left, right):
            text, own = f"{show(left, rng, PRODUCT)} * {show(right, rng, ATOM)}", PRODUCT
        case Quotient(left, right):
            text, own = f"{show(left, rng, PRODUCT)} / {show(right, rng, ATOM)}", PRODUCT
    return f"({text})" if own < above or rng.random() < 0.08 else text


@dataclass(frozen=True)
class Style:
    """What may occur in an expression.

    Attributes:
        negation: differences and unary minus (bool and most semirings have none).
        division: quotients (values are floating-point).
        fractions: constants that are no integers.
        constants: numeric constants at all.
    """

    negation: bool = True
    division: bool = True
    fractions: bool = True
    constants: bool = True


class Expressions:
    """Draws trees over some indices; one generator an expression, since it remembers the tensors it has named."""

    def __init__(self, rng: Random, style: Style, pool: tuple[str, ...]) -> None:
        self.rng = rng
        self.style = style
        self.pool = pool
        self.orders: dict[str, int] = {}

    def tree(self, count: int, below_line: bool = False) -> Tree:
        """Return a tree with ``count`` accesses."""
        rng, style = self.rng, self.style
        if count == 1:
            return self._decorated(self._leaf(below_line), below_line)
        split = rng.randint(1, count - 1)
        draw = rng.random()
        if draw < 0.05 and style.division and not below_line:
            return Quotient(self.tree(split), self._denominator(count - split))
        left, right = self.tree(split, below_line), self.tree(count - split, below_line)
        if draw < 0.55:
            made: Tree = Product(left, right)
        else:
            made = Sum(left, right, style.negation and not below_line and draw < 0.7)
        return Minus(made) if style.negation and not below_line and rng.random() < 0.04 else made

    def row_sums(self, count: int) -> Tree:
        """Return a sum with ``count`` terms, most of them sums over a row each: ``B(i,j) * C(j)``."""
        made = self._row_sum()
        for _ in range(count - 1):
            made = Sum(made, self._row_sum(), self.style.negation and self.rng.random() < 0.3)
        return made

    def _row_sum(self) -> Tree:
        rng = self.rng
        inner = rng.choice(self.pool[1:] or self.pool)
        matrix = self._named((ROW, inner))
        draw = rng.random()
        if draw < 0.1:
            return self._named((ROW,))
        if draw < 0.2:
            return matrix
        return Product(matrix, self._named((inner,) if draw < 0.9 else (inner, rng.choice(self.pool))))

    def _denominator(self, count: int) -> Tree:
        tree = self.tree(count, below_line=True)
        return Sum(Constant(2), Product(tree, tree)) if self.rng.random() < 0.3 else tree

    def _decorated(self, leaf: Leaf, below_line: bool) -> Tree:
        """Return the access, sometimes with a sign (not in denominators, which are to stay positive) or a constant."""
        rng, style = self.rng, self.style
        draw = rng.random()
        if draw < 0.06 and style.negation and not below_line:
            return Minus(leaf)
        if draw < 0.16 and style.constants:
            constant = Constant(rng.choice((2, 3, 1.5, 0.25) if style.fractions else (2, 3)))
            kinds = ("left", "right", "sum", "over") if style.division else ("left", "right", "sum")
            match rng.choice(kinds):
                case "left":
                    return Product(constant, leaf)
                case "right":
                    return Product(leaf, constant)
                case "over":
                    return Quotient(leaf, constant)
                case _:
                    return Sum(leaf, constant) if rng.random() < 0.3 else leaf
        return leaf

    def _leaf(self, below_line: bool) -> Leaf:
        rng = self.rng
        known = [name for name in self.orders if not below_line]
        if known and rng.random() < 0.2:
            tensor = rng.choice(known)
            return Leaf(tensor, self._chosen(self.orders[tensor]))
        order = min(rng.choices((0, 1, 2, 3, 4, 5, 6), (60, 220, 460, 190, 50, 10, 10))[0], len(self.pool) + 1)
        return self._named(self._chosen(order))

    def _named(self, indices: tuple[str, ...]) -> Leaf:
        """Return an access of a new tensor."""
        tensor = "BCDEFGHPQRS"[len(self.orders)]
        self.orders[tensor] = len(indices)
        return Leaf(tensor, indices)

    def _chosen(self, order: int) -> tuple[str, ...]:
        if order <= len(self.pool) and self.rng.random() < 0.88:
            return tuple(self.rng.sample(self.pool, order))
        return tuple(self.rng.choice(self.pool) for _ in range(order))
