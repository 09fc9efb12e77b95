"""Every named expression of the literature gives values and pattern of the dense and boolean oracles."""

from __future__ import annotations

import pytest

from differential.literature import case_of
from differential.literature_tables import TABLES
from differential.runner import run_given

LEAST = 120


@pytest.mark.cc
@pytest.mark.parametrize("field", TABLES)
def test_named_expressions_agree_with_the_oracle(field: str) -> None:
    cases = {entry.name: case_of(entry) for entry in TABLES[field]}
    failures = run_given(list(cases.values()))
    named = {str(case): name for name, case in cases.items()}
    assert not failures, "\n".join(f"{named[failure.case]}: {failure}" for failure in failures)


def test_the_table_is_large_and_says_where_from() -> None:
    entries = [entry for table in TABLES.values() for entry in table]
    assert len(entries) >= LEAST
    assert len({entry.name for entry in entries}) == len(entries)
    assert len({(entry.text, tuple(entry.formats.items()), entry.semiring) for entry in entries}) >= LEAST
    assert all(entry.source for entry in entries)
    assert {entry.semiring for entry in entries} >= {("+", "*"), ("min", "+"), ("max", "*"), ("or", "and"), ("max", "min")}
