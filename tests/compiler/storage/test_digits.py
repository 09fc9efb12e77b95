"""Numbers are ordered digit by digit as sorting orders them."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.compiler.storage.digits import first_places, stable_order


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("end", [1, 2, 255, 256, 2**16 - 1, 2**16, 2**16 + 1, 2**24, 2**31 - 1, 2**62])
def test_orders_are_those_of_a_stable_sort(end: int, dtype: type) -> None:
    rng = np.random.default_rng(end)
    end = min(end, np.iinfo(dtype).max)
    for count in (0, 1, 500):
        drawn = rng.integers(0, end, count).astype(dtype)
        numbers = np.concatenate([drawn, drawn[::3], np.full(min(count, 2), end - 1, dtype)])
        np.testing.assert_array_equal(stable_order(numbers, end), np.argsort(numbers, kind="stable"))
        ordered = np.sort(numbers)
        np.testing.assert_array_equal(first_places(ordered), np.unique(ordered, return_index=True)[1])
