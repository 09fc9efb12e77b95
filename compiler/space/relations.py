"""Relations of indices: what operands store in their outermost levels, and joins of such relations."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..frozen import frozen


@frozen
class Scan:
    """What an operand stores in its outermost levels.

    Attributes:
        operand: its name.
        indices: of these levels, outermost first.
    """

    operand: str
    indices: tuple[str, ...]

    @property
    def kept(self) -> frozenset[str]:
        """The indices of its combinations."""
        return frozenset(self.indices)

    def is_part_of(self, other: Scan) -> bool:
        """Whether another goes further down the same levels."""
        return self != other and self.operand == other.operand and self.indices == other.indices[: len(self.indices)]


@frozen
class Join:
    """The combinations of indices that all parts have, cut to some of the indices; equal ones count once.

    Attributes:
        parts: at least one.
        kept: the indices of its combinations.
    """

    parts: frozenset[Relation]
    kept: frozenset[str]

    @property
    def whole(self) -> Join:
        """The join of the same parts with all indices."""
        return Join(self.parts, _indices(self.parts))

    @property
    def is_whole(self) -> bool:
        """Whether no index is left out."""
        return self.kept == _indices(self.parts)


Relation = Scan | Join


def join(parts: Collection[Relation], kept: frozenset[str] | None = None) -> Relation:
    """Return the join of some relations, cut to some indices; None: to all. Joins of the same relations are equal however they are
    nested."""
    flat = {inner for part in parts for inner in (part.parts if isinstance(part, Join) and part.is_whole else (part,))}
    scans = [part for part in flat if isinstance(part, Scan)]
    flat -= {one for one in scans for other in scans if one.is_part_of(other)}
    kept = _indices(flat) if kept is None else kept
    (only, *more) = flat
    return only if not more and only.kept == kept else Join(frozenset(flat), kept)


def _indices(parts: Collection[Relation]) -> frozenset[str]:
    return frozenset[str]().union(*(part.kept for part in parts))


def is_nested(relation: Relation) -> bool:
    """Return whether a relation joins others that are cut to some indices."""
    return isinstance(relation, Join) and any(isinstance(part, Join) for part in relation.parts)


def apart(relation: Relation) -> list[Relation]:
    """Return the parts of a relation that have no index in common, whose combinations are all pairs of theirs."""
    groups: list[tuple[frozenset[str], frozenset[Relation]]] = []
    for part in relation.parts if isinstance(relation, Join) else (relation,):
        near = [group for group in groups if group[0] & part.kept]
        groups = [group for group in groups if group not in near]
        groups.append((part.kept.union(*(group[0] for group in near)), frozenset((part,)).union(*(group[1] for group in near))))
    return [join(parts, indices & relation.kept) for indices, parts in groups]


def sampled(relation: Relation, kept: frozenset[str]) -> Iterator[tuple[Scan, str]]:
    """Yield the indices that may be sampled, each with a scan that has it: those that nothing sums over."""
    kept = kept & relation.kept
    if isinstance(relation, Scan):
        yield from ((relation, index) for index in relation.indices if index in kept)
    else:
        for part in relation.parts:
            yield from sampled(part, kept)
