"""Provenance: every relation recovers, bounds and guards as Senanayake et al. say; checked by enumerating small spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.concrete.arithmetic import INTEGERS
from sparsetune.compiler.concrete.provenance import Provenance, Recovery
from sparsetune.compiler.concrete.relations import (
    BoundRelation,
    CollapseRelation,
    CoordRelation,
    MergePathRelation,
    PosRelation,
    Relation,
    RenameRelation,
    SplitRelation,
    SumRelation,
)
from sparsetune.compiler.notation.nodes import Access, Affine, index_subscript

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


@given(factor=st.integers(1, 9), constant_inner=st.booleans())
def test_split_covers_its_parent_once_in_order(factor: int, constant_inner: bool) -> None:
    check([SplitRelation("k", "k0", "k1", factor, constant_inner)], ("k0", "k1"), ("k",), [(k,) for k in range(7)])


@given(first=st.integers(1, 8), second=st.integers(1, 8), inner=st.booleans(), up=st.booleans())
def test_split_of_a_piece_guards_the_piece(first: int, second: int, inner: bool, up: bool) -> None:
    piece = "k1" if inner else "k0"
    loops = ("k0", "a", "b") if inner else ("a", "b", "k1")
    check([SplitRelation("k", "k0", "k1", first, up), SplitRelation(piece, "a", "b", second)], loops, ("k",), [(k,) for k in range(7)])


def test_collapse_runs_through_the_product() -> None:
    check([CollapseRelation("i", "j", "f")], ("f",), ("i", "j"), ALL_PAIRS)


@given(factor=st.integers(1, 40))
def test_split_of_a_collapsed_coordinate(factor: int) -> None:
    check([CollapseRelation("i", "j", "f"), SplitRelation("f", "f0", "f1", factor)], ("f0", "f1"), ("i", "j"), ALL_PAIRS)


@given(factor=st.integers(1, 8))
def test_position_split_of_collapsed_loops_is_balanced(factor: int) -> None:
    relations = [CollapseRelation("i", "j", "f"), PosRelation("f", "p", B), SplitRelation("p", "p0", "p1", factor)]
    check(relations, ("p0", "p1"), ("i", "j"), list(MATRIX))


@given(factor=st.integers(1, 20), constant_inner=st.booleans())
def test_a_merge_path_leads_through_all_entries_in_order(factor: int, constant_inner: bool) -> None:
    relations = [
        CollapseRelation("i", "j", "f"), PosRelation("f", "p", B), MergePathRelation("p", "m"),
        SplitRelation("m", "m0", "m1", factor, constant_inner),
    ]  # fmt: skip
    check(relations, ("m0", "m1"), ("i", "j"), list(MATRIX))
    assert Recovery(Provenance(relations), CsrIntegers(), {}).length("m") == len(MATRIX) + ROWS


@given(factor=st.integers(1, 8))
def test_position_split_of_one_level_restarts_in_every_row(factor: int) -> None:
    check([PosRelation("j", "p", B), SplitRelation("p", "p0", "p1", factor)], ("i", "p0", "p1"), ("i", "j"), list(MATRIX))


@given(factor=st.integers(1, 8))
def test_positions_within_coordinate_tiles(factor: int) -> None:
    relations = [SplitRelation("j", "j0", "j1", factor), PosRelation("j1", "p", B)]
    tiles = range(-(-COLUMNS // factor))
    check(relations, ("j0", "i", "p"), ("i", "j"), [entry for tile in tiles for entry in MATRIX if entry[1] // factor == tile])


def test_pieces_are_recovered_from_stored_coordinates() -> None:
    graph = Provenance([SplitRelation("j", "j0", "j1", 4), PosRelation("j1", "p", B)])
    recovery = Recovery(graph, CsrIntegers(), {"i": 0, "j0": 1, "p": 1})
    assert (recovery.value("j"), recovery.value("j1")) == (4, 0)


@given(factor=st.integers(1, 8))
def test_coordinates_between_position_tiles_cover_everything_once(factor: int) -> None:
    relations = [PosRelation("j", "p", B), SplitRelation("p", "p0", "p1", factor), CoordRelation("p1", "c")]
    rows = {i for i, _ in MATRIX}
    check(relations, ("i", "p0", "c"), ("i", "j"), [pair for pair in ALL_PAIRS if pair[0] in rows])


@given(factor=st.integers(1, 8), pieces=st.integers(1, 4))
def test_coordinates_are_those_of_the_index_in_whichever_of_its_tiles(factor: int, pieces: int) -> None:
    pieces_of = SplitRelation("j", "j0", "j1", factor), SplitRelation("p", "p0", "p1", pieces)
    relations = [pieces_of[0], PosRelation("j1", "p", B), pieces_of[1], CoordRelation("p1", "c")]
    filled = {(i, j // factor) for i, j in MATRIX}
    expected = [pair for pair in ALL_PAIRS if (pair[0], pair[1] // factor) in filled]
    check(relations, ("i", "j0", "p0", "c"), ("i", "j"), expected)
    whole = Recovery(Provenance(relations), CsrIntegers(), {"i": 0, "j0": 1, "p": 1})
    assert whole.value("c") == whole.value("j")


def test_coord_straight_after_pos() -> None:
    pairs = [p for p in ALL_PAIRS if p[0] in {i for i, _ in MATRIX}]
    check([PosRelation("j", "p", B), CoordRelation("p", "c")], ("i", "c"), ("i", "j"), pairs)


def test_collapse_of_a_coordinate_with_positions_is_a_position() -> None:
    relations = [PosRelation("j", "p", B), CollapseRelation("i", "p", "q"), SplitRelation("q", "q0", "q1", 4)]
    assert Provenance(relations).space("q1") == "position"
    check(relations, ("q0", "q1"), ("i", "j"), list(MATRIX))


def test_rename_is_an_identity() -> None:
    relations = [SplitRelation("k", "k0", "k1", 3), RenameRelation("k1", "kw")]
    check(relations, ("k0", "kw"), ("k",), [(k,) for k in range(7)])


@pytest.mark.parametrize(
    ("kind", "amount", "expected"),
    [
        ("max_exact", 7, (0, 7)),
        ("min_exact", 2, (2, 7)),
        ("max_constraint", 5, (0, 5)),
        ("min_constraint", 3, (3, 7)),
        ("divisible", 7, (0, 7)),
    ],
)
def test_bounds(kind: str, amount: int, expected: tuple[int, int]) -> None:
    graph = Provenance([BoundRelation("k", "kb", amount, kind)])
    assert Recovery(graph, CsrIntegers(), {}).bounds("kb") == expected


@given(low=st.integers(0, 6), factor=st.integers(1, 5))
def test_tiles_begin_where_the_range_begins(low: int, factor: int) -> None:
    relations = [BoundRelation("k", "kb", low, "min_exact"), SplitRelation("kb", "k0", "k1", factor)]
    check(relations, ("k0", "k1"), ("k",), [(k,) for k in range(low, 7)])


def test_guards_fall_away_where_a_factor_divides() -> None:
    split = SplitRelation("kb", "k0", "k1", 8)
    assert not Provenance([BoundRelation("k", "kb", 32, "max_exact"), split]).possibly_out_of_bounds("k")
    assert not Provenance([BoundRelation("k", "kb", 16, "divisible"), split]).possibly_out_of_bounds("k")
    assert Provenance([BoundRelation("k", "kb", 12, "divisible"), split]).possibly_out_of_bounds("k")
    assert Provenance([SplitRelation("k", "k0", "k1", 8)]).possibly_out_of_bounds("k")
    assert not Provenance([SplitRelation("k", "k0", "k1", 8)]).possibly_out_of_bounds("k", {"k": 64})


def test_parents_of_positions_are_in_bounds() -> None:
    graph = Provenance([CollapseRelation("i", "j", "f"), PosRelation("f", "p", B), SplitRelation("p", "p0", "p1", 4)])
    assert graph.possibly_out_of_bounds("p")
    assert not any(graph.possibly_out_of_bounds(name) for name in ("f", "i", "j", "p0", "p1"))
    assert graph.guards(("p0", "p1")) == {"p1": ("p",)}


def test_graph_questions() -> None:
    graph = Provenance([
        CollapseRelation("i", "j", "f"), PosRelation("f", "p", B), SplitRelation("p", "p0", "p1", 4), SplitRelation("k", "k0", "k1", 8),
    ])  # fmt: skip
    assert graph.originals("p1") == ("i", "j")
    assert graph.parents("p") == ("f",)
    assert graph.children("p") == ("p0", "p1")
    assert graph.leaves("i") == ("p0", "p1")
    assert [graph.space(name) for name in ("i", "f", "p", "p0", "k1")] == ["coordinate", "coordinate", "position", "position", "coordinate"]
    assert graph.position_access("p1") == B
    assert graph.constant_extent("k1") == 8
    assert graph.constant_extent("k0", {"k": 20}) == 3
    known = graph.known_after(("k0", "p0", "k1", "p1"))
    assert (known["k"], known["i"], known["j"], known["f"]) == (2, 3, 3, 3)
    assert str(graph).splitlines()[2] == "p = p0 x p1 (4 a tile)"


def test_unknown_values_are_refused() -> None:
    with pytest.raises(KeyError):
        Recovery(Provenance([SplitRelation("k", "k0", "k1", 8)]), CsrIntegers(), {"k0": 1}).value("k")


SUMS = st.builds(
    lambda factors, constant: Affine(tuple(zip("ijk", factors, strict=False)), constant),
    st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=3), st.integers(-4, 4),
)  # fmt: skip


@given(subscript=SUMS, values=st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1), st.integers(0, 6)))
def test_sums_and_their_terms_follow_from_one_another(subscript: Affine, values: tuple[int, ...]) -> None:
    known = dict(zip("ijk", values, strict=True))
    coordinate = subscript.constant + sum(factor * known[index] for index, factor in subscript.terms)
    relation = SumRelation(subscript)
    whole = Recovery(Provenance([relation]), CsrIntegers(), {index: known[index] for index in subscript.indices})
    assert whole.value(relation.coordinate) == coordinate
    for index in subscript.indices:
        others = {name: known[name] for name in subscript.indices if name != index}
        assert Recovery(Provenance([relation]), CsrIntegers(), {**others, relation.coordinate: coordinate}).value(index) == known[index]


@given(subscript=SUMS)
def test_sums_range_from_the_least_coordinate_to_the_greatest(subscript: Affine) -> None:
    machine, relation = CsrIntegers(), SumRelation(subscript)
    graph = Provenance([relation])
    spans = [[factor * value for value in range(machine.extents[index])] for index, factor in subscript.terms]
    reached = [subscript.constant + sum(parts) for parts in product(*spans)]
    assert Recovery(graph, machine, {}).bounds(relation.coordinate) == (min(reached), max(reached) + 1)
    assert graph.constant_extent(relation.coordinate, machine.extents) == max(reached) - min(reached) + 1


@given(factor=st.integers(1, 8), inner=st.booleans())
def test_terms_of_sums_may_be_cut_into_tiles(factor: int, inner: bool) -> None:
    graph = Provenance([SumRelation(Affine((("i", 1), ("k", -2)), 12)), SplitRelation("i", "i0", "i1", factor, inner)])
    assert graph.leaves("i") == ("i0", "i1")  # loops go over the terms
    assert graph.known_after(("i0", "k", "i1"))["i - 2*k + 12"] == 2  # the resolving edge
    assert graph.guards(("i0", "k", "i1")) == {"i1": ("i",)}
    found = {
        (recovery.value("i"), recovery.value("k"), recovery.value("i - 2*k + 12"))
        for i0, i1, k in product(range(ROWS), range(ROWS), range(7))
        for recovery in [Recovery(graph, CsrIntegers(), {"i0": i0, "i1": i1, "k": k})]
    }
    assert {(i, k, i - 2 * k + 12) for i, k in product(range(ROWS), range(7))} <= found


@given(subscript=SUMS.filter(lambda one: one.terms[0][1] > 0), stored=st.integers(-20, 30))
def test_reducing_loops_go_to_where_a_subsection_reaches_what_is_stored(subscript: Affine, stored: int) -> None:
    extents = CsrIntegers().extents
    (_, factor), *rest = subscript.terms
    left = SumRelation(subscript).known(INTEGERS, extents.__getitem__, (), {name: extents[name] for name, _ in rest})
    spans = [[one * value for value in range(extents[name])] for name, one in rest]
    reached = [subscript.constant + sum(parts) for parts in product(*spans)]
    assert (left.least, left.most, left.reach) == (min(reached), max(reached), max(reached) - min(reached))
    first = next(value for value in range(-100, 100) if factor * value + max(reached) >= stored)
    assert left.first(stored, factor) == first
    at = left.reduced(first, factor)
    assert (at.least, at.most) == (min(reached) + factor * first, max(reached) + factor * first)
    assert left.resolved(left.base + factor * 5, factor) == 5
