"""Rows of few keys: listed and put in order by comparing them, sorted and complete whatever the row before had."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsetune.compiler.lowering.workspaces import FEW_KEYS
from sparsetune.compiler.pipeline import CompiledExpression, compile_kernel

PRODUCT = "C(i,j) = A(i,k) * B(k,j)"
CSR = {"A": "csr", "B": "csr", "C": "csr"}
COLUMNS = 5000
PLAIN = 'build(gcc, "-O2 -march=x86-64-v3")'
"""Without the instruction that compares and counts sixteen keys."""


def product(schedule: str = "") -> CompiledExpression:
    return compile_kernel(PRODUCT, CSR, schedule=schedule)


def rows_of(lengths: list[int], seed: int) -> sp.csr_array:
    """Return a matrix with rows of given lengths, in order; its product with a permutation has them shuffled."""
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(COLUMNS, length, replace=False)) for length in lengths]
    pos = np.concatenate(([0], np.cumsum(lengths)))
    return sp.csr_array((rng.random(pos[-1]), np.concatenate(columns), pos), (len(lengths), COLUMNS))


LENGTHS = st.lists(st.sampled_from((0, 1, 15, 16, 17, 32, 33, 48, 49, FEW_KEYS, FEW_KEYS + 1, 300)), min_size=1, max_size=12)


@settings(max_examples=30, deadline=None)
@given(lengths=LENGTHS, seed=st.integers(0, 99))
@pytest.mark.parametrize("schedule", ["", PLAIN, "parallelize(i, cpu_thread, no_races, dynamic, 2); assemble(C, insert)"])
def test_rows_come_out_in_order(schedule: str, lengths: list[int], seed: int) -> None:
    a = rows_of(lengths, seed)
    shuffled = sp.csr_array(sp.eye_array(COLUMNS, format="csr")[np.random.default_rng(seed).permutation(COLUMNS)])
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
