"""Compound subscripts in lowering: the relation of their indices (``concrete.relations.sum``) for the levels of views."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..concrete.relations import SumRelation
from ..concrete.relations.sum import Unresolved
from ..format import Format
from ..frozen import frozen
from ..ir.arithmetic import ONE, maximum
from ..ir.nodes import Value
from ..notation.nodes import Access
from .operations import LoopOperations

_OPERATIONS = LoopOperations()


@frozen
class SeenSubscript:
    """A compound subscript for the level of one of its indices (``levels.level.CompoundSubscript``).

    Attributes:
        relation: the relation of its indices.
        index: the index of the level.
        above: the indices of the levels above, which get values before.
        stored: the extent of the stored mode.
        size: returns the extent of an index.
    """

    relation: SumRelation
    index: str
    above: frozenset[str]
    stored: Value
    size: Callable[[str], Value]

    @property
    def factor(self) -> int:
        return self.relation.factor(self.index)

    def before(self, value: Callable[[str], Value], /) -> Unresolved[Value]:
        known = [name for name in self.relation.parents if name in self.above and name != self.index]
        later = {name: self.size(name) for name in self.relation.parents if name not in self.above and name != self.index}
        return self.relation.known(_OPERATIONS, value, known, later)

    def whole(self, value: Callable[[str], Value], /) -> Value:
        return self.relation.known(_OPERATIONS, value, self.relation.parents).base

    def window(self, value: Callable[[str], Value | None], /) -> Unresolved[Value]:
        found = {name: at for name in self.relation.parents if (at := value(name)) is not None}
        rest = {name: maximum(self.size(name), ONE) for name in self.relation.parents if name not in found}
        return self.relation.known(_OPERATIONS, found.__getitem__, found, rest)


def sums_of(read: Iterable[tuple[Access, Format]]) -> tuple[SumRelation, ...]:
    """Return the relations of the indices in all compound subscripts of the given accesses."""
    found = (form.compound_subscripts(tuple(part.index for part in access.subscripts)) for access, form in read)
    return tuple(dict.fromkeys(SumRelation(subscript) for subscripts in found for subscript in subscripts.values()))
