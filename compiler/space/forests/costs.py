"""What a forest costs, symbolically: scalar operations, and elements of buffers (Dias et al., section 3; Kanakagiri and
Solomonik, section 2.4).

A term of m factors takes, per iteration of the loops around it, m - 1 multiplications, and an addition where it sums. A loop runs
over what a sparse operand stores where everything in it is a multiple of that operand (``work.is_driven``), else over its whole
extent. A buffer is in memory from the tree of the forest that fills it to the one that reads it; memory is what is there at one time.
Symbols are extents, named as the indices, and ``nnz_B_k``: positions of the k-th level of operand B, counted from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from ...format import Format
from ...frozen import frozen
from .contraction import Contraction, members
from .forest import Forest, Loop, Placed, Tree
from .optimum import terms_of
from .posynomial import ONE, Peak, Posynomial
from .separable import Peel
from .work import is_driven


@frozen
class Costs:
    """The costs of a forest.

    Attributes:
        time: scalar operations; a multiplication and an addition are two.
        memory: elements of the buffers that are there at one time; scalars are none.
        loop_depth: the most nested loops.
        memory_depth: the most modes of a buffer.
    """

    time: Posynomial
    memory: Peak
    loop_depth: int
    memory_depth: int


def costs_of(forest: Forest, formats: Mapping[str, Format]) -> Costs:
    """Return the costs of a forest; ``formats`` has those of its sparse operands."""
    shared = {edge.producer: edge.shared for edge in forest.edges}
    time = Posynomial()
    for number, place in enumerate(forest.placed):
        own = place.order[shared.get(number, 0) :]
        kept = forest.contraction.written(place.term.operands)
        sums = any(not kept >> index & 1 for index in own)
        operations = len(place.term.parts) - 1 + sums
        time += driven_iterations(forest, place, formats, len(place.order)).scaled(operations)
    return Costs(time, _memory(forest), forest.loop_depth, forest.memory_depth)


def _memory(forest: Forest) -> Peak:
    """Return the elements of the buffers that are there while a tree of a forest runs, at most."""
    trees = [number for number, tree in enumerate(forest.trees) for _ in terms_of(tree)]
    buffers = [(edge, elements(forest.contraction, edge.open)) for edge in forest.edges if edge.open]
    there = ([size for edge, size in buffers if trees[edge.producer] <= tree <= trees[edge.consumer]] for tree in dict.fromkeys(trees))
    return Peak.of(sum(sizes, Posynomial()) for sizes in there)


@lru_cache(maxsize=256)
def _driving(forest: Forest) -> Mapping[int, frozenset[int]]:
    return dict(_driven(forest, forest.trees, 0, 0)[0])


def _driven(forest: Forest, trees: tuple[Tree, ...], removed: int, count: int) -> tuple[list[tuple[int, frozenset[int]]], int]:
    """Return, for every loop by its number in order of appearance, the sparse operands that it runs over; and the number of loops."""
    found: list[tuple[int, frozenset[int]]] = []
    for tree in trees:
        if isinstance(tree, Loop):
            count += 1
            peel = Peel(forest.contraction, tree.index, terms_of(tree), removed, ())
            operands = (number for number, chain in forest.contraction.chains if tree.index in chain and is_driven(peel, 1 << number))
            found.append((count, frozenset(operands)))
            inner, count = _driven(forest, tree.parts, removed | 1 << tree.index, count)
            found += inner
    return found, count


def driven_iterations(forest: Forest, place: Placed, formats: Mapping[str, Format], outermost: int) -> Posynomial:
    """Return how many iterations some outermost loops around a term have together."""
    driven = _driving(forest)
    levels = dict(forest.contraction.chains)
    deepest: dict[int, int] = {}
    for loop, index in zip(place.loops[:outermost], place.order[:outermost], strict=True):
        for number in driven[loop]:
            deepest[number] = max(deepest.get(number, -1), levels[number].index(index))
    return driven_product(forest.contraction, deepest, sum(1 << index for index in place.order[:outermost]), formats)


def driven_product(contraction: Contraction, deepest: Mapping[int, int], indices: int, formats: Mapping[str, Format]) -> Posynomial:
    """Return how many iterations loops over some indices have together.

    Args:
        contraction: what is computed.
        deepest: the level down to which sparse operands, by their numbers, drive the loops.
        indices: of the loops.
        formats: of the sparse operands.
    """
    product, left, levels = ONE, indices, dict(contraction.chains)
    for number, level in deepest.items():
        run = sum(1 << index for index in levels[number][: level + 1])
        if run & ~left:  # loops over some of these follow another operand already
            continue
        left &= ~run
        access = contraction.operands[number]
        names = tuple(contraction.indices[index] for index in contraction.levels(number))
        product *= positions(access.tensor, formats[access.tensor], names, contraction.depth(number, level + 1) - 1)
    return product * elements(contraction, left)


@lru_cache(maxsize=4096)
def positions(tensor: str, form: Format, names: tuple[str, ...], level: int) -> Posynomial:
    """Return how many positions of a level loops go through, as its kind says: a symbol for what is stored, or those above times an extent.

    Args:
        tensor: the operand.
        form: its format.
        names: the indices of its levels, outermost first.
        level: counted from 0; -1: the root, which has one.
    """
    if level < 0:
        return ONE
    above = positions(tensor, form, names, level - 1)
    extent, stored = (Posynomial.of([((symbol,), 1)]) for symbol in (names[level], f"nnz_{tensor}_{level + 1}"))
    return form.levels[level].size(above, extent, stored)


def position_symbols(tensor: str, stored: Sequence[str], order: Sequence[str]) -> tuple[str, ...]:
    """Return the symbols of positions of an operand's levels in some order: ``nnz_B_2`` where they hold the coordinates of its first two
    levels as it is stored, else with the names of their indices, ``nnz_B_j``.

    Args:
        tensor: the operand.
        stored, order: its indices, outermost level first.
    """
    prefixes = {frozenset(stored[:depth]): str(depth) for depth in range(1, len(stored) + 1)}
    held = (frozenset(order[:depth]) for depth in range(1, len(order) + 1))
    return tuple(f"nnz_{tensor}_{prefixes.get(one) or '_'.join(sorted(one, key=stored.index))}" for one in held)


def elements(contraction: Contraction, mask: int) -> Posynomial:
    """Return the product of the extents of some indices; an index that counts positions has as many values as there are positions."""
    return Posynomial.of([((_extent(contraction, index) for index in members(mask)), 1)])


def _extent(contraction: Contraction, index: int) -> str:
    fibres = contraction.fibres
    if fibres is None or index != fibres.index:
        return contraction.indices[index]
    return f"nnz_{contraction.operands[fibres.operand].tensor}_{len(fibres.levels)}"
