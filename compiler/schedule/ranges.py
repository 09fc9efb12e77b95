"""On which indices the range of a loop depends. Provenance computes the range with a dummy arithmetic that only records dependences."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..concrete.provenance import Provenance, Recovery
from ..concrete.relations import SplitRelation
from ..frozen import frozen
from ..notation.nodes import Access
from .context import Context


def unknown_in_range(variable: str, loops: Iterable[str], graph: Provenance, context: Context) -> str:
    """Return a variable on which the range of another depends, and which the loops around do not determine; "" if there is none."""
    recovery = Recovery(graph, _Probe(context), dict.fromkeys(loops, 0))
    try:
        recovery.bounds(variable)
        for name in graph.ancestors(variable):
            made = graph.maker(name)
            if isinstance(made, SplitRelation) and name == made.outer:  # the number of tiles is known before the index that they cut
                recovery.bounds(made.parent)
    except KeyError as missing:
        return str(missing.args[0])
    return ""


@frozen
class _Probe:
    """Dummy arithmetic that asks for every coordinate on which a range depends."""

    context: Context

    def constant(self, value: int, /) -> int:
        return value

    def _nothing(self, left: int, right: int, /) -> int:
        return 0

    add = sub = mul = floordiv = ceildiv = mod = minimum = maximum = _nothing

    def select_le(self, left: int, right: int, then: int, otherwise: int, /) -> int:
        return 0

    def extent(self, index: str, /) -> int:
        return 0

    def segment(self, access: Access, indices: tuple[str, ...], value: Callable[[str], int], /) -> tuple[int, int]:
        self._ask_above(access, indices[0], value)
        return 0, 0

    def coordinate(self, access: Access, index: str, position: int, last: str, /) -> int:
        return 0

    def search(self, access: Access, index: str, coordinate: int, value: Callable[[str], int], /) -> int:
        self._ask_above(access, index, value)
        return 0

    def fibre(self, access: Access, index: str, position: int, /) -> int:
        return 0

    def on_path(self, access: Access, index: str, item: int, /) -> int:
        return 0

    def _ask_above(self, access: Access, index: str, value: Callable[[str], int]) -> None:
        for _, names in self.context.levels(access):
            if index in names:
                return
            for name in names:
                value(name)
