"""What a level kind of one's own goes through: conversions there and back, schedules, and random expressions against the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np
import pytest
import sparsetune as st
from differential import cases, formats
from differential.runner import run_given
from sparsetune.compiler.format import Format
from sparsetune.compiler.levels import LevelKind
from sparsetune.compiler.pipeline import compile_kernel

SCHEDULES = (
    "",
    "parallelize(i, cpu_thread, no_races, static); prefetch(j, x, 4)",
    "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 8); parallelize(p0, cpu_thread, atomics, static)",
    "pos(j, p, A); split(p, p0, p1, 3); unroll(p1, 3)",
    "split(j, j0, j1, 10); reorder(j0, i, j1)",
    "reorder(j, i); protocol(A, step, locate)",
)
"""Of a matrix A times a vector x; they step, locate, search, cut and share."""


def check_conversions(dense: np.ndarray, form: str, others: Iterable[str]) -> None:
    """Check that a matrix keeps its values from a format to others, and from each of these to the format."""
    stored = st.tensor(dense, form)
    assert stored.nnz == np.count_nonzero(dense)
    for other in others:
        assert np.array_equal(stored.convert(other).to_numpy(), dense)
        assert np.array_equal(st.tensor(dense, other).convert(form).to_numpy(), dense)


def check_absent_parents(kind: LevelKind) -> None:
    """Check that nothing is read below a parent that is absent, of arrays that have no parent at all: the interpreter sees every access."""
    schedule = "protocol(B, locate, locate); collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 2); precompute(A(i,j), [], [], w)"
    formats_given = {"A": "csr", "B": f"compressed, {kind}"}
    kernel = compile_kernel("y(i) = A(i,j) * B(i,j)", formats_given, schedule=schedule, target="interpreter")
    given = {"A": st.tensor(np.ones((3, 70)), "csr"), "B": st.tensor(np.zeros((3, 70)), formats_given["B"])}
    assert np.array_equal(kernel(**given), np.zeros(3))


def check_random_expressions(kind: LevelKind, stands_for: LevelKind, seeds: range, fewest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the random cases of ``differential`` with a kind in every place of another one; at least so many have such a place."""
    drawn_format = formats.random_format

    def with_kind(rng: Random, order: int) -> Format:
        form = drawn_format(rng, order)
        return Format(tuple(kind if level is stands_for else level for level in form.levels), form.order)

    monkeypatch.setattr(cases, "random_format", with_kind)
    drawn = [cases.random_case(seed) for seed in seeds]
    having = [case for case in drawn if any(kind in form.levels for form in case.formats.values())]
    assert len(having) >= fewest
    failures = run_given(having, interpreted_every=4)
    assert not failures, "\n".join(map(str, failures))
