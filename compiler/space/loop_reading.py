"""Reads off a program's loops how indices became them: the treatment of every run of indices, and which loop is which of its pieces."""

from __future__ import annotations

from typing import TypeAlias

from ..concrete.nodes import Forall, Stmt, walk
from ..concrete.provenance import Provenance
from ..concrete.relations import CollapseRelation, CoordRelation, MergePathRelation, PosRelation, SplitRelation
from .pieces import Pieces, Treatment

_Made: TypeAlias = "tuple[Treatment, list[str]]"
"""The transformation of indices, and the loops that it made."""


class LoopReader:
    """Follows the relations of a program from its indices to its loops.

    Args:
        graph: of the program's relations.
        pieces: what indices may become.

    Attributes:
        names: of the loops among the pieces, once ``treatments`` has found these.
    """

    def __init__(self, graph: Provenance, pieces: Pieces) -> None:
        self._graph, self._pieces = graph, pieces
        self.names: dict[str, str] = {}

    def treatments(self, statement: Stmt) -> tuple[Treatment, ...] | None:
        """Return how indices became the loops of a statement; None if not in a way that the space has."""
        present = {self.base(node.index) for node in walk(statement) if isinstance(node, Forall)}
        every = dict.fromkeys(self._graph.originals(name) for name in present)
        orders = [order for order in every if not any(other[-1:] == order != other for other in every)]  # tiles cut before are of a run
        found = []
        for order in orders:
            made = self._made(order)
            if made is None:
                return None
            treatment, loops = made
            if len(treatment.tiles) > self._pieces.levels:
                return None
            self.names |= dict(zip(loops, self._pieces.loops_of(treatment), strict=True))
            found.append(treatment)
        indices = [index for order in orders for index in order]
        return tuple(found) if len(set(indices)) == len(indices) and present == set(self.names) else None

    def base(self, name: str) -> str:
        """Return the name of a loop before it was renamed."""
        relation = self._graph.maker(name)
        while relation is not None and relation.renames:
            (name,) = relation.parents
            relation = self._graph.maker(name)
        return name

    def _made(self, order: tuple[str, ...]) -> _Made | None:
        if not set(order) <= set(self._pieces.movable):
            return (Treatment(order), list(order)) if len(order) == 1 and not self._next(order[0]) else None
        cut = self._next(order[-1]) if len(order) > 1 else None
        if not isinstance(cut, SplitRelation):
            return self._cut(order, self._collapsed(order))
        made = self._cut(order, self._collapsed((*order[:-1], cut.outer)))
        if made is None or made[0].positions is not None or self._next(cut.inner):
            return None
        treatment, loops = made
        return Treatment(order, tiles=(*treatment.tiles, _tile(cut)), before=True), [*loops, cut.inner]

    def _collapsed(self, loops: tuple[str, ...]) -> str | None:
        """Return the loop that others were collapsed to in their order; None where they were not."""
        current, *others = loops
        for loop in others:
            relation = self._next(current)
            if not isinstance(relation, CollapseRelation) or (relation.outer, relation.inner) != (current, loop):
                return None
            current = relation.fused
        return current

    def _cut(self, order: tuple[str, ...], current: str | None) -> _Made | None:
        """Return what became of the loop that indices were collapsed to."""
        if current is None:
            return None
        operand, tiles, loops, path, back = None, list[tuple[str, int]](), list[str](), False, False
        while (relation := self._next(current)) is not None:
            match relation:
                case PosRelation(_, position, access) if operand is None and not tiles:
                    operand, current = access.tensor, position
                case MergePathRelation(_, item) if len(order) > 1 and not tiles and not path:
                    path, current = True, item
                case SplitRelation(_, outer, inner) if not back:
                    tiles.append(_tile(relation))
                    loops.append(outer)
                    current = inner
                case CoordRelation(_, coordinate) if len(tiles) == 1 and operand is not None and not back:
                    back, current = True, coordinate
                case _:
                    return None
        return Treatment(order, operand, path, tuple(tiles), back), [*loops, current]

    def _next(self, name: str) -> object | None:
        """Return the relation that replaced a loop; None where none did."""
        found = [relation for relation in self._graph.relations_from(name) if not relation.renames]
        return found[0] if found else None


def _tile(cut: SplitRelation) -> tuple[str, int]:
    """Return what ``Treatment.tiles`` has of a cut."""
    return "split" if cut.constant_inner else "split_up", cut.factor
