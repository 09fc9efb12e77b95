"""The names that queries about an expression use: operands, indices, and the dimensions that both range over."""

from __future__ import annotations

from collections.abc import Mapping

from ...compiler.errors import ExpressionError
from ...compiler.format import Format
from ...compiler.notation.nodes import Access, Assignment, accesses
from .query import Clause


class Vocabulary:
    """Operands and dimensions of an assignment.

    Two indices have the same dimension if they subscript the same mode of some tensor alone. A dimension is named after
    its first index, in upper case.

    Args:
        assignment: the expression.
        formats: a format for every tensor; operands that are not all dense are sparse.
    """

    def __init__(self, assignment: Assignment, formats: Mapping[str, Format]) -> None:
        found = (assignment.target, *accesses(assignment.value))
        self.indices = tuple(dict.fromkeys(name for access in found for name in access.indices))
        self._orders = {access.tensor: len(access.subscripts) for access in found}
        operands = dict.fromkeys(access.tensor for access in accesses(assignment.value))
        self.sparse = tuple(name for name in operands if not formats[name].is_dense)
        self._names: dict[str, str] = {}
        self._modes: dict[tuple[str, int], str] = {}
        self._join(found)
        self.dimensions = tuple(dict.fromkeys(self._names.values()))

    def _join(self, found: tuple[Access, ...]) -> None:
        """Give indices that subscript one mode of a tensor one dimension."""
        leader = {name: name for name in self.indices}
        for access in found:
            for mode, subscript in enumerate(access.subscripts):
                if subscript.is_index:
                    first = self._modes.setdefault((access.tensor, mode), subscript.index)
                    old, new = leader[subscript.index], leader[first]
                    leader = {name: new if other == old else other for name, other in leader.items()}
        spelled: dict[str, str] = {}
        for name in self.indices:
            wish = leader[name].upper() if leader[name].upper() not in spelled.values() else leader[name]
            self._names[name] = spelled.setdefault(leader[name], wish)
        self._modes = {mode: self._names[name] for mode, name in self._modes.items()}

    def index_dimension(self, name: str) -> str:
        """Return the dimension of an index. Raises ExpressionError if the expression does not have it."""
        if name not in self._names:
            raise ExpressionError(f"the expression has no index {name}; its indices are {', '.join(self.indices)}")
        return self._names[name]

    def mode_dimension(self, tensor: str, mode: int) -> str:
        """Return the dimension of a mode; a mode that only affine subscripts reach has one of its own."""
        return self._modes.get((tensor, mode), f"{tensor}.{mode}")

    def whole(self, tensor: str) -> Clause:
        """Return the clause that an entry of a tensor exists, with a variable of its own for every mode."""
        return Clause(tensor, tuple(f"m{mode}" for mode in range(self._orders[tensor])))

    def check_clause(self, tensor: str, count: int, text: str) -> None:
        """Raise ExpressionError unless the expression has a tensor of this name and order."""
        if tensor not in self._orders:
            known = ", ".join(self._orders)
            raise ExpressionError(f"{text.strip()!r} names {tensor}, which the expression does not have; its tensors are {known}")
        if self._orders[tensor] != count:
            raise ExpressionError(f"{text.strip()!r} gives {tensor} {count} indices; it has {self._orders[tensor]}")

    def display_names(self) -> dict[tuple[str, int], str]:
        """Return what to call quantified variables: an index of the dimension of each mode, in lower case."""
        first = {dimension: name for name, dimension in reversed(self._names.items())}
        return {mode: first[dimension] for mode, dimension in self._modes.items()}
