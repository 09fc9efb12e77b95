"""How much operands store together, as a question of recordings (``recording``): about all operands, not about one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.space.joins import Joins
from ..compiler.space.relations import Join, Relation, Scan

if TYPE_CHECKING:
    from .recording import Recording

_UNTOLD = -1.0  # what takes too long to find out


class RecordedJoins:
    """Stands for the joins of a problem's operands.

    Args:
        joins: of the operands.
        extents: of all indices; recorded.
        recording: to which questions are added.
    """

    def __init__(self, joins: Joins, extents: Mapping[str, Any], recording: Recording) -> None:
        self._joins, self._recording = joins, recording
        self._indices, self._extents = list(extents), list(extents.values())

    def size(self, relation: Relation) -> Any:
        """Return how many combinations a relation has, as ``Joins.size``."""
        size = self._joins.size(relation)
        asked = json.dumps([_told(relation), self._indices])
        found: Any = self._recording.asked("joined.size", "", [asked, *self._extents], _UNTOLD if size is None else size)
        return None if found < 0 else found

    def steps(self, relation: Relation, fibres: tuple[tuple[Scan, str], ...]) -> Any:
        """Return how many entries loops go through that find what fibres have in common, as ``Joins.steps``."""
        steps = self._joins.steps(relation, fibres)
        asked = json.dumps([_told(relation), [[_told(scan), index] for scan, index in fibres], self._indices])
        found: Any = self._recording.asked("joined.steps", "", [asked, *self._extents], _UNTOLD if steps is None else steps)
        return None if found < 0 else found


def size(operands: Any, asked: str, *extents: int) -> float:
    """Return the answer to a question for a size; ``operands``: a ``replay.Operands``."""
    relation, indices = json.loads(asked)
    found = _joins(operands, indices, extents).size(_relation(relation))
    return _UNTOLD if found is None else found


def steps(operands: Any, asked: str, *extents: int) -> float:
    """Return the answer to a question for steps, as ``size`` does."""
    relation, fibres, indices = json.loads(asked)
    chosen = tuple((Scan(operand, (first, second)), index) for (operand, first, second), index in fibres)
    found = _joins(operands, indices, extents).steps(_relation(relation), chosen)
    return _UNTOLD if found is None else found


def _joins(operands: Any, indices: Sequence[str], extents: Sequence[int]) -> Joins:
    """Return the joins of operands, made once."""
    return operands.once("joins", lambda: Joins(operands.sketches(), dict(zip(indices, extents, strict=True))))


def _told(relation: Relation) -> Any:
    """Return a relation as JSON has it, the same for equal ones."""
    if isinstance(relation, Scan):
        return [relation.operand, *relation.indices]
    return {"of": sorted(map(_told, relation.parts), key=json.dumps), "kept": sorted(relation.kept)}


def _relation(told: Any) -> Relation:
    if isinstance(told, list):
        operand, *indices = told
        return Scan(operand, tuple(indices))
    return Join(frozenset(map(_relation, told["of"])), frozenset(told["kept"]))
