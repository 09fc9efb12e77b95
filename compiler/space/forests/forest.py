"""A loop nest forest: loops that hold loops and terms, in order of execution."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ...frozen import frozen
from .contraction import Contraction
from .paths import Path, Term


@frozen
class Loop:
    """A loop over an index, and what runs in it, in order."""

    index: int
    parts: tuple[Tree, ...]


Tree = Loop | Term
"""A loop, or a term whose loops all stand around it."""


@frozen
class Placed:
    """A term in its forest: the loops around it, outermost first, each with its number in order of appearance."""

    term: Term
    loops: tuple[int, ...]
    order: tuple[int, ...]


@frozen
class Edge:
    """An intermediate: what one term computes for another.

    Attributes:
        producer, consumer: places of the terms in the path.
        shared: how many outermost loops they share; the buffer lives inside these.
        open: the indices that the buffer keeps, as a mask: those of the intermediate without the shared loops.
    """

    producer: int
    consumer: int
    shared: int
    open: int


@frozen
class Forest:
    """Loops and terms that compute a contraction.

    Attributes:
        contraction: what is computed.
        trees: in order of execution.
    """

    contraction: Contraction
    trees: tuple[Tree, ...]

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """The terms with the loops around them, in order of execution."""
        found: list[Placed] = []
        count = 0

        def walk(trees: tuple[Tree, ...], loops: tuple[int, ...], order: tuple[int, ...]) -> None:
            nonlocal count
            for tree in trees:
                if isinstance(tree, Loop):
                    count += 1
                    walk(tree.parts, (*loops, count), (*order, tree.index))
                else:
                    found.append(Placed(tree, loops, order))

        walk(self.trees, (), ())
        return tuple(found)

    @property
    def path(self) -> Path:
        """The terms in order of execution, without their loops."""
        return tuple(place.term for place in self.placed)

    @property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """The index order of every term."""
        return tuple(tuple(self.contraction.indices[number] for number in place.order) for place in self.placed)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The intermediates, by the terms that compute them."""
        return tuple(self._edges())

    def _edges(self) -> Iterator[Edge]:
        for producer, one in enumerate(self.placed[:-1]):
            part = one.term.operands
            consumer = next(place for place, other in enumerate(self.placed) if place > producer and part in other.term.parts)
            shared = shared_loops(one, self.placed[consumer])
            removed = sum(1 << index for index in one.order[:shared])
            yield Edge(producer, consumer, shared, self.contraction.open(part) & ~removed)

    @property
    def loop_depth(self) -> int:
        """The most nested loops."""
        return max(len(place.order) for place in self.placed)

    @property
    def memory_depth(self) -> int:
        """The most modes of a buffer."""
        return max((edge.open.bit_count() for edge in self.edges), default=0)

    def __str__(self) -> str:
        lines: list[str] = []

        def write(trees: tuple[Tree, ...], indent: str) -> None:
            for tree in trees:
                if isinstance(tree, Loop):
                    lines.append(f"{indent}{self.contraction.indices[tree.index]}:")
                    write(tree.parts, indent + "  ")
                else:
                    lines.append(indent + " * ".join(self._name(part) for part in tree.parts))

        write(self.trees, "")
        return "\n".join(lines)

    def _name(self, part: int) -> str:
        names = [access.tensor for number, access in enumerate(self.contraction.operands) if part >> number & 1]
        return names[0] if len(names) == 1 else f"({' '.join(names)})"


def shared_loops(one: Placed, other: Placed) -> int:
    """Return how many outermost loops two terms share."""
    pairs = zip(one.loops, other.loops, strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one.loops), len(other.loops)))

