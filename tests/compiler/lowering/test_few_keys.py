"""Rows of few keys: listed and put in order by comparing them, sorted and complete whatever the row before had."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsetune.compiler.kernel import Kernel
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.workspaces.bitmap import FEW_KEYS

PRODUCT = "C(i,j) = A(i,k) * B(k,j)"
CSR = {"A": "csr", "B": "csr", "C": "csr"}
COLUMNS = 5000
PLAIN = 'build(gcc, "-O2 -march=x86-64-v3")'
"""Without the instruction that compares and counts sixteen keys."""


def product(schedule: str = "") -> Kernel:
    return compile_kernel(PRODUCT, CSR, schedule=schedule)


def rows_of(lengths: list[int], seed: int) -> sp.csr_array:
    """Return a matrix with rows of given lengths, in order; its product with a permutation has them shuffled."""
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(COLUMNS, length, replace=False)) for length in lengths]
    pos = np.concatenate(([0], np.cumsum(lengths)))
    return sp.csr_array((rng.random(pos[-1]), np.concatenate(columns), pos), (len(lengths), COLUMNS))


LENGTHS = st.lists(st.sampled_from((0, 1, 8, 9, 15, 16, 17, 32, 33, 48, 49, FEW_KEYS, FEW_KEYS + 1, 300)), min_size=1, max_size=12)


@settings(max_examples=30, deadline=None)
@given(lengths=LENGTHS, seed=st.integers(0, 99), is_rolled=st.booleans())
@pytest.mark.parametrize("schedule", ["", PLAIN, "parallelize(i, cpu_thread, no_races, dynamic, 2); assemble(C, insert)"])
def test_rows_come_out_in_order(schedule: str, lengths: list[int], seed: int, is_rolled: bool) -> None:
    """Keys come in any order, or in order but for one place, where they are inserted."""
    a, rng = rows_of(lengths, seed), np.random.default_rng(seed)
    order = np.roll(np.arange(COLUMNS), rng.integers(COLUMNS)) if is_rolled else rng.permutation(COLUMNS)
    shuffled = sp.csr_array(sp.eye_array(COLUMNS, format="csr")[order])
    expected = sp.csr_array(a @ shuffled)
    expected.sort_indices()
    made = product(schedule)(A=a, B=shuffled, threads=2).to_scipy()
    np.testing.assert_array_equal(made.indptr, expected.indptr)
    np.testing.assert_array_equal(made.indices, expected.indices)
    np.testing.assert_array_equal(made.data, expected.data)


@pytest.mark.parametrize("schedule", ["", PLAIN])
def test_keys_that_meet_are_added(schedule: str) -> None:
    rng = np.random.default_rng(2)
    a = sp.random_array((400, 300), density=0.03, format="csr", rng=rng)
    b = sp.random_array((300, 70), density=0.2, format="csr", rng=rng)
    expected = sp.csr_array(a @ b)
    expected.sort_indices()
    made = product(schedule)(A=a, B=b).to_scipy()
    np.testing.assert_array_equal(made.indices, expected.indices)
    np.testing.assert_allclose(made.data, expected.data)


def test_only_what_every_row_fills_anew_has_two_forms() -> None:
    assert "st_few_drain" in product().source
    once = compile_kernel("y(i) = A(i,j) * x(j)", {"A": "csc", "x": "compressed", "y": "compressed"})
    assert "st_bits_drain" in once.source
    assert "st_few" not in once.source


def chained(length: int, more: str = "") -> Kernel:
    """Return a product that is handed on through so many workspaces."""
    steps, value = [], "A(i,k) * B(k,j)"
    for number in range(length):
        steps.append(f"precompute({value}, j, j{number}, w{number})")
        value = f"w{number}(j)"
    return product("; ".join([*steps, *([more] if more else [])]))


@pytest.mark.parametrize("more", ["", "assemble(C, insert)"], ids=["appended", "inserted"])
def test_code_grows_with_workspaces_as_they_are_added(more: str) -> None:
    two, four, six = (chained(length, more).source.count("\n") for length in (2, 4, 6))
    assert six - four <= 1.2 * (four - two)


@pytest.mark.parametrize("more", ["", "assemble(C, insert)"], ids=["appended", "inserted"])
def test_rows_go_through_many_workspaces(more: str) -> None:
    a = rows_of([0, 1, FEW_KEYS, FEW_KEYS + 1, 300, 2, 0, 33], 3)
    shuffled = sp.csr_array(sp.eye_array(COLUMNS, format="csr")[np.random.default_rng(3).permutation(COLUMNS)])
    expected = sp.csr_array(a @ shuffled)
    expected.sort_indices()
    made = chained(4, more)(A=a, B=shuffled, threads=1).to_scipy()
    np.testing.assert_array_equal(made.indptr, expected.indptr)
    np.testing.assert_array_equal(made.indices, expected.indices)
    np.testing.assert_array_equal(made.data, expected.data)


def test_a_workspace_around_another_lists_its_keys_however_many() -> None:
    rng = np.random.default_rng(4)
    a, b, c = (sp.random_array(shape, density=0.1, format="csr", rng=rng) for shape in ((20, 30), (30, 40), (40, 300)))
    schedule = "precompute(B(k,l) * C(l,j), j, j1, u)"
    compiled = compile_kernel("Z(i,j) = A(i,k) * B(k,l) * C(l,j)", {"A": "csr", "B": "csr", "C": "csr", "Z": "csr"}, schedule=schedule)
    lowered = compiled.stages["lowering"]
    assert (lowered.count("few_insert"), lowered.count("bits_insert")) == (2, 1)
    expected = sp.csr_array(a @ b @ c)
    expected.sort_indices()
    assert np.diff(expected.indptr).min() < FEW_KEYS < np.diff(expected.indptr).max()
    made = compiled(A=a, B=b, C=c, threads=1).to_scipy()
    np.testing.assert_array_equal(made.indices, expected.indices)
    np.testing.assert_allclose(made.data, expected.data)
