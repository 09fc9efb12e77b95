"""The integers of a sparse matrix, for relations over stored entries; loops run through by their relations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sparsetune.compiler.concrete.provenance import Provenance, Recovery
from sparsetune.compiler.concrete.relations import (
    Relation,
)
from sparsetune.compiler.notation.nodes import Access, index_subscript

MATRIX = ((0, 1), (0, 4), (2, 0), (2, 1), (2, 3), (3, 2))  # rows 1 and 4 are empty

ROWS, COLUMNS = 5, 6

B = Access("B", (index_subscript("i"), index_subscript("j")))


class CsrIntegers:
    """Integers, and the positions of one matrix B(i,j) in CSR."""

    def __init__(self, entries: tuple[tuple[int, int], ...] = MATRIX) -> None:
        self.entries = entries
        self.extents = {"i": ROWS, "j": COLUMNS, "k": 7}

    def constant(self, value: int) -> int:
        return value

    def add(self, left: int, right: int) -> int:
        return left + right

    def sub(self, left: int, right: int) -> int:
        return left - right

    def mul(self, left: int, right: int) -> int:
        return left * right

    def floordiv(self, left: int, right: int) -> int:
        return left // right

    def ceildiv(self, left: int, right: int) -> int:
        return -(-left // right)

    def mod(self, left: int, right: int) -> int:
        return left % right

    def minimum(self, left: int, right: int) -> int:
        return min(left, right)

    def maximum(self, left: int, right: int) -> int:
        return max(left, right)

    def select_le(self, left: int, right: int, then: int, otherwise: int) -> int:
        return then if left <= right else otherwise

    def extent(self, index: str) -> int:
        return self.extents[index]

    def segment(self, access: Access, indices: tuple[str, ...], value: Callable[[str], int]) -> tuple[int, int]:
        assert access == B
        if indices == ("i", "j"):
            return 0, len(self.entries)
        if indices == ("i",):
            return 0, ROWS
        row = value("i")
        return sum(i < row for i, _ in self.entries), sum(i <= row for i, _ in self.entries)

    def coordinate(self, access: Access, index: str, position: int, last: str) -> int:
        if not 0 <= position < len(self.entries):
            return -1  # past the end; callers guard positions
        return self.entries[position][("i", "j").index(index)] if last == "j" else position

    def search(self, access: Access, index: str, coordinate: int, value: Callable[[str], int]) -> int:
        low, high = self.segment(access, ("j",), value)
        return next((place for place in range(low, high) if self.entries[place][1] >= coordinate), high)

    def fibre(self, access: Access, index: str, position: int) -> int:
        return self.entries[position][0]

    def on_path(self, access: Access, index: str, item: int) -> int:
        return next((place for place, (row, _) in enumerate(self.entries) if place + row == item), len(self.entries))


def visited(graph: Provenance, loops: tuple[str, ...], arith: CsrIntegers, wanted: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Run the loops with every guard that the graph asks for and yield the values of ``wanted``."""
    guards = graph.guards(loops)

    def run(place: int, known: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
        recovery = Recovery(graph, arith, known)
        if place == len(loops):
            yield tuple(recovery.value(name) for name in wanted)
            return
        low, high = recovery.bounds(loops[place])
        for value in range(low, high):
            inner = Recovery(graph, arith, {**known, loops[place]: value})
            if all(inner.value(name) < inner.bounds(name)[1] for name in guards.get(loops[place], ())):
                yield from run(place + 1, inner.known)

    yield from run(0, {})


def check(relations: list[Relation], loops: tuple[str, ...], wanted: tuple[str, ...], expected: list[tuple[int, ...]]) -> None:
    assert list(visited(Provenance(relations), loops, CsrIntegers(), wanted)) == expected


ALL_PAIRS = [(i, j) for i in range(ROWS) for j in range(COLUMNS)]
