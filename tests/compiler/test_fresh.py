"""Fresh names: the wish where it is free, else numbered, never one that is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.fresh import FreshNames, fresh, numbered


@pytest.mark.parametrize(
    ("wish", "taken", "mark", "name"),
    [
        ("w", (), "", "w"),
        ("w", ("w",), "", "w2"),
        ("w", ("w", "w2", "w4"), "", "w3"),
        ("j", ("j",), "_", "j_2"),
        ("j", ("j", "j2"), "_", "j_2"),
        ("t1", ("t1",), "_", "t1_2"),
    ],
)
def test_the_wish_or_its_first_free_number(wish: str, taken: tuple[str, ...], mark: str, name: str) -> None:
    assert fresh(wish, taken, mark) == name


def test_numbered_names_begin_with_the_first_free_number() -> None:
    assert numbered("d", ()) == "d1"
    assert numbered("d", {"d", "d1", "d3"}) == "d2"
    assert numbered("d", {"d2", "d3"}, 2) == "d4"


NAMES = st.text("ab12_", min_size=1, max_size=4)


@given(st.lists(NAMES, max_size=12), st.lists(NAMES, max_size=12), st.sampled_from(("", "_")))
def test_no_name_is_handed_out_twice(taken: list[str], wishes: list[str], mark: str) -> None:
    names = FreshNames(taken, mark)
    drawn = [names.fresh(wish) for wish in wishes]
    assert len({*taken, *drawn}) == len(set(taken)) + len(drawn)
    assert all(name.startswith(wish) for name, wish in zip(drawn, wishes, strict=True))
