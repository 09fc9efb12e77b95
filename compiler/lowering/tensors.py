"""The tensors of one kernel in memory: operands, results, and the workspaces at a place of the nest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from ..concrete.provenance import Provenance
from ..concrete.relations import SumRelation
from ..format import Format
from ..ir.arithmetic import integer, multiply
from ..ir.nodes import I32, I64, STEP, Value, Var
from ..levels.level import CompoundSubscript, Level, LevelArray, SteppedLevel
from ..notation.nodes import Access
from ..workspaces.levels import Storage
from .parameters import Parameters
from .scope import Scope
from .subscripts import SeenSubscript
from .tensor_types import TensorType, loop_type


class Tensors:
    """Finds the storage of the tensors that accesses mean.

    Args:
        types: the types of every stored operand, by key, and of the results as they are written.
        keys: the key of every operand access.
        results: the names of the results.
        graph: the provenance of the program's indices.
        parameters: what the kernel may take.
    """

    def __init__(
        self, types: Mapping[str, TensorType], keys: Mapping[Access, str], results: Collection[str], graph: Provenance,
        parameters: Parameters,
    ) -> None:  # fmt: skip
        self.types, self.keys = types, keys
        self._results, self._graph, self._parameters = results, graph, parameters
        self._names = {*results, *(access.tensor for access in keys)}
        self.operand_storage = cache(self._operand_storage)

    def is_workspace(self, name: str) -> bool:
        """Whether a name is that of a workspace: neither of an operand nor of a result."""
        return name not in self._names

    def operand(self, access: Access) -> Access:
        """Return the access of the program that is meant, with its protocols."""
        if not access.protocols and access in self.keys:
            return access
        written = (access.tensor, access.subscripts, access.stored)
        return next((own for own in self.keys if (own.tensor, own.subscripts, own.stored) == written), access)

    def key(self, access: Access) -> str:
        """Return the name of the stored copy that an access reads."""
        return self.keys.get(access, access.tensor)

    def format_of(self, access: Access) -> Format | None:
        """Return the format in which an access is stored, None for workspaces."""
        kind = self.types.get(self.key(self.operand(access)))
        return kind.format if kind is not None else None

    # Levels and values

    def storage(self, scope: Scope, access: Access) -> Storage:
        """Return the levels and values of an operand, the dense result, or a workspace, as an access indexes it."""
        held = scope.held(access.tensor)
        return self.operand_storage(access) if held is None else held.stored

    def _operand_storage(self, access: Access) -> Storage:
        """Return the levels and values of an operand or a result, as an access indexes it."""
        key = self.key(access)
        kind = self.types[key]
        levels = tuple(self._level(key, kind, access, level) for level in range(len(kind.format)))
        return Storage(key, levels, self._parameters.array((key, "values")), loop_type(kind.dtype))

    def _level(self, key: str, kind: TensorType, access: Access, level: int) -> Level:
        form, sizes = kind.format, self._parameters.sizes
        what = form.levels[level]
        index = access.subscripts[form.order[level]].index
        place = form.stored_level(level)
        width = I32 if kind.widths[place] == 32 else I64
        arrays = tuple(LevelArray(part, self._parameters.array((key, part, place)), own) for part, own in what.types(width).items())

        def subscript() -> CompoundSubscript:
            mode, names = form.in_memory.order[place], [part.index for part in access.subscripts]
            relation = self._graph.made_by(SumRelation(form.compound_subscripts(names)[mode]).coordinate)
            assert isinstance(relation, SumRelation)
            stored = sizes.parameter((key, "extent", mode))
            return SeenSubscript(relation, index, frozenset(names[own] for own in form.order[:level]), stored, sizes.of)

        if kind.apart and level == len(form) - 1:
            return SteppedLevel(what, index, sizes.of(index), step=sizes.parameter((key, STEP, level)))
        return what.seen(Level(what, index, sizes.of(index), form.unique(level), arrays), subscript)

    # How many positions there are

    def level_length(self, scope: Scope, access: Access, depth: int) -> Value:
        """Return how many positions the first ``depth`` levels of an operand have."""
        key, length = self.key(access), integer(1)
        for place, level in enumerate(self.storage(scope, access).levels[:depth]):
            length = self.stored_length(key, place) if not level.kind.full else multiply(length, level.extent)
        return length

    def stored_length(self, key: str, level: int) -> Var:
        """Return how many positions a level with stored coordinates has."""
        return self._parameters.sizes.parameter((key, "length", self.types[key].format.stored_level(level)))
