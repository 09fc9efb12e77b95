"""Provenance: every relation recovers, bounds and guards as Senanayake et al. say; checked by enumerating small spaces."""

from __future__ import annotations

import pytest
from csr_integers import ALL_PAIRS, COLUMNS, MATRIX, ROWS, B, CsrIntegers, check
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.concrete.provenance import Provenance, Recovery
from sparsetune.compiler.concrete.relations import (
    BoundRelation,
    CollapseRelation,
    CoordRelation,
    MergePathRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)


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
