"""Forests written out one by one, by code that knows nothing of the presets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from math import prod
from typing import Any

from sparsetune.compiler.format import Format

Group = frozenset[int]

Node = tuple[Group, ...]
"""What a term multiplies; a group of one is an operand, others are computed by terms before."""


@dataclass(frozen=True)
class Case:
    """A product: the indices of its result, its operands, and of the sparse ones the order of their levels."""

    output: str
    operands: tuple[str, ...]
    stored: dict[int, str]

    @property
    def text(self) -> str:
        names = [f"T{number}" for number in range(len(self.operands))]
        factors = " * ".join(f"{name}({','.join(own)})" for name, own in zip(names, self.operands, strict=True))
        return f"R({','.join(self.output)}) = {factors}"

    @property
    def formats(self) -> dict[str, Format]:
        found = {}
        for number, levels in self.stored.items():
            kinds = ", ".join(["compressed"] * len(levels))
            found[f"T{number}"] = Format(kinds, tuple(self.operands[number].index(one) for one in levels))
        return found

    def kept(self, group: Group) -> set[str]:
        """Return the indices of a group's product."""
        inside = {index for number in group for index in self.operands[number]}
        outside = set(self.output).union(*(set(own) for number, own in enumerate(self.operands) if number not in group))
        return inside & outside

    def read(self, group: Group) -> set[str]:
        return set(self.operands[min(group)]) if len(group) == 1 else self.kept(group)

    def loops(self, term: Node) -> set[str]:
        last = len(frozenset().union(*term)) == len(self.operands)
        return set().union(*map(self.read, term), set(self.output) if last else set())


def groupings(group: Group, most: int) -> Iterator[Node]:
    """Yield the partitions of a group into two to ``most`` parts, by trying all labels."""
    numbers = sorted(group)
    seen = set()
    for labels in product(range(most), repeat=len(numbers)):
        parts = {frozenset(number for number, own in zip(numbers, labels, strict=True) if own == label) for label in labels}
        if len(parts) > 1:
            seen.add(frozenset(parts))
    for parts in seen:
        yield tuple(sorted(parts, key=min))


def paths(group: Group, most: int) -> Iterator[tuple[Node, ...]]:
    if len(group) == 1:
        yield ()
        return
    for node in groupings(group, most):
        inner = [part for part in node if len(part) > 1]
        for order in permutations(inner):
            for before in product(*(list(paths(part, most)) for part in order)):
                yield (*(term for path in before for term in path), node)


def respects(case: Case, order: tuple[str, ...], sparse: Group) -> bool:
    """Return whether stored levels that have a loop come in order."""
    chains = ([index for index in levels if index in order] for number, levels in case.stored.items() if number in sparse)
    return all([index for index in order if index in chain] == chain for chain in chains)


def orders(case: Case, term: Node, inherited: bool) -> list[tuple[str, ...]]:
    """Return the index orders of a term; one inherits the order of sparse operands below its intermediates, or does not."""
    reads = frozenset().union(*(part for part in term if inherited or len(part) == 1))
    return [order for order in permutations(sorted(case.loops(term))) if respects(case, order, reads)]


def nests(terms: tuple[tuple[Node, tuple[str, ...]], ...]) -> Iterator[tuple[Any, ...]]:
    """Yield all ways in which neighbouring terms share their next loops."""
    if not terms:
        yield ()
        return
    first, order = terms[0]
    if not order:
        for rest in nests(terms[1:]):
            yield (frozenset(first), *rest)
        return
    for count in range(1, len(terms) + 1):
        if any(other[:1] != order[:1] for _, other in terms[:count]):
            return
        for inner in nests(tuple((term, other[1:]) for term, other in terms[:count])):
            for rest in nests(terms[count:]):
                yield ((order[0], *inner), *rest)


MOST_WRITTEN = 3000
"""Forests that are written out one by one."""


def spttn_counts(case: Case) -> dict[int, int]:
    """Return how many combinations of index orders there are, by how many loops stand inside each other: fully fused forests."""
    found: dict[int, int] = {}
    for path in paths(frozenset(range(len(case.operands))), 2):
        depth = max(len(case.loops(term)) for term in path)
        found[depth] = found.get(depth, 0) + prod(len(orders(case, term, inherited=True)) for term in path)
    return found


def is_fused(trees: tuple[Any, ...]) -> bool:
    """Return whether no two neighbours have loops of their own over one index."""
    outer = [tree[0] if isinstance(tree, tuple) else None for tree in trees]
    apart = all(one is None or one != other for one, other in pairwise(outer))
    return apart and all(is_fused(tree[1:]) for tree in trees if isinstance(tree, tuple))


def depth(tree: Any) -> int:
    return 1 + max(map(depth, tree[1:])) if isinstance(tree, tuple) else 0


def spttn_nests(case: Case) -> set[tuple[Any, ...]]:
    """Return all fully fused forests: of all ways to share loops those in which neighbours share what they can."""
    found = set()
    for path in paths(frozenset(range(len(case.operands))), 2):
        for chosen in product(*(orders(case, term, inherited=True) for term in path)):
            found |= {nest for nest in nests(tuple(zip(path, chosen, strict=True))) if is_fused(nest)}
    return found


@dataclass(frozen=True)
class FibreCase(Case):
    """A product where positions, called p, stand for the first ``levels`` levels of operand 0 as long as all their coordinates are kept."""

    levels: int = 1

    def counted(self, group: Group, found: set[str]) -> set[str]:
        prefix = set(self.stored[0][: self.levels])
        return (found - prefix) | {"p"} if 0 in group and prefix <= found else found

    def kept(self, group: Group) -> set[str]:
        return self.counted(group, super().kept(group))

    def read(self, group: Group) -> set[str]:
        return self.counted(group, super().read(group))

    def loops(self, term: Node) -> set[str]:
        """Return the loops of a term: if it goes by positions, none over the coordinates that these tell."""
        everything = frozenset().union(*term)
        found = set().union(*map(self.read, term))
        found |= set(self.output) if len(everything) == len(self.operands) else set()
        return found - set(self.stored[0][: self.levels]) if "p" in found else found

    def passes_fibres(self, path: tuple[Node, ...]) -> bool:
        """Return whether two terms go by positions, and read no intermediate over coordinates that these tell."""
        by_position = [term for term in path if "p" in self.loops(term)]
        inner = [self.read(part) for term in by_position for part in term if len(part) > 1]
        return len(by_position) > 1 and not any(found & set(self.stored[0][: self.levels]) for found in inner)


def fibres_count(case: Case, levels: int) -> int:
    """Return how many forests pass stored fibres of operand 0 by positions: combinations of index orders, each in a loop of its own."""
    stored = {**case.stored, 0: "p" + case.stored[0][levels:]}
    merged, found = FibreCase(case.output, case.operands, case.stored, levels), 0
    for path in paths(frozenset(range(len(case.operands))), 2):
        size = int(merged.passes_fibres(path))
        for term in path:
            reads = frozenset().union(*term)
            own = permutations(sorted(merged.loops(term)))
            chains = [[index for index in order if index in merged.loops(term)] for number, order in stored.items() if number in reads]
            size *= sum(all([index for index in order if index in chain] == chain for chain in chains) for order in own)
        found += size
    return found


def turned(case: Case) -> Iterator[Case]:
    """Yield a case with its sparse matrices in both orders; copies of larger tensors have more modes than the usual threshold."""
    ways = [["".join(order) for order in permutations(levels)] if len(levels) < 3 else [levels] for levels in case.stored.values()]
    for levels in product(*ways):
        yield replace(case, stored=dict(zip(case.stored, levels, strict=True)))


def sparseauto_count(case: Case, most_modes: int | None = None) -> int:
    """Return how many forests there are whose intermediates all sum over an index, and are buffers of at most some modes."""
    everything = frozenset(range(len(case.operands)))
    seen = set()
    for path in paths(everything, len(case.operands)):
        if any(case.loops(term) == case.kept(frozenset().union(*term)) for term in path[:-1]):
            continue
        for chosen in product(*(orders(case, term, inherited=False) for term in path)):
            for nest in nests(tuple(zip(path, chosen, strict=True))):
                if most_modes is None or all(modes <= most_modes for modes in buffers(case, nest)):
                    seen.add(nest)
    return len(seen)


def buffers(case: Case, nest: tuple[Any, ...]) -> Iterator[int]:
    """Yield how many modes each intermediate has: what it keeps without the loops that the term that reads it stands in too."""
    places: dict[Group, tuple[tuple[tuple[int, ...], str], ...]] = {}
    readers: dict[Group, Group] = {}

    def walk(trees: tuple[Any, ...], around: tuple[tuple[tuple[int, ...], str], ...], where: tuple[int, ...]) -> None:
        for number, tree in enumerate(trees):
            if isinstance(tree, tuple):
                walk(tree[1:], (*around, ((*where, number), tree[0])), (*where, number))
            else:
                whole = frozenset().union(*tree)
                places[whole] = around
                readers.update(dict.fromkeys((part for part in tree if len(part) > 1), whole))

    walk(nest, (), ())
    for group, reader in readers.items():
        shared = {index for loop, index in places[group] if (loop, index) in places[reader]}
        yield len(case.kept(group) - shared)
