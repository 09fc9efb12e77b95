"""How much operands store together, as a question of recordings (``recording``): about all operands, not about one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..compiler.space.joins import Joins
from ..compiler.space.relations import Join, Relation, Scan
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


def size(operands: Any, asked: str, *extents: int) -> float:
    """Return the answer to such a question; ``operands``: a ``replay.Operands``."""
    relation, indices = json.loads(asked)
    joins: Joins = operands.once("joins", lambda: Joins(operands.sketches(), dict(zip(indices, extents, strict=True))))
    found = joins.size(_relation(relation))
    return _UNTOLD if found is None else found


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
