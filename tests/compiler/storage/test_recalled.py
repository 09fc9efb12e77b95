"""Matrices of SciPy that come again, in a process with several threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.storage import recalled as module


def matrices(count: int) -> list[Any]:
    random = np.random.default_rng(3)
    return [sp.random_array((20, 30), density=0.2, format="csr", rng=random) for _ in range(count)]


def test_a_matrix_keeps_its_levels_and_gives_its_values_of_now() -> None:
    (one,) = matrices(1)
    first = module.recalled(one)
    one.data *= 2
    again = module.recalled(one)
    assert again.levels is first.levels
    assert np.array_equal(again.to_numpy(), one.toarray())


def test_a_matrix_that_others_crowd_out_meanwhile_is_taken_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,), crowd = matrices(1), matrices(module.MOST)
    module.recalled(one)
    compared = module._has_pattern

    def crowded(kept: st.Tensor, data: Any) -> bool:  # what another thread may do between a look and the next
        if data is one:
            for other in crowd:
                module.recalled(other)
        return compared(kept, data)

    monkeypatch.setattr(module, "_has_pattern", crowded)
    assert np.array_equal(module.recalled(one).to_numpy(), one.toarray())
    assert len(module._known) == module.MOST


def test_dead_matrices_are_forgotten() -> None:
    before = len(module._known)
    (one,) = matrices(1)
    module.recalled(one)
    name = id(one)
    assert name in module._known
    del one
    assert name not in module._known
    assert len(module._known) <= before


def test_index_arrays_of_other_widths_and_lengths_are_compared_as_numbers() -> None:
    one = sp.random_array((300, 200), density=0.05, format="csr", rng=np.random.default_rng(4))
    first = module.recalled(one)
    one.indices, one.indptr = one.indices.astype(np.int64), one.indptr.astype(np.int64)
    assert module.recalled(one).levels is first.levels
    one.indices = np.append(one.indices[:-1], one.indices[-1] ^ 1)
    found = module.recalled(one)
    assert found.levels is not first.levels
    assert np.array_equal(found.to_numpy(), one.toarray())


def test_a_matrix_whose_arrays_are_the_same_is_the_same_tensor() -> None:
    (one,) = matrices(1)
    first = module.recalled(one)
    one.data[0] = 7
    assert module.recalled(one) is first
    assert first.values[0] == 7
    one.data = one.data * 2
    again = module.recalled(one)
    assert again is not first
    assert np.array_equal(again.to_numpy(), one.toarray())
    assert first.values[0] == 7
