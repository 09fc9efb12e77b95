"""Random expressions with compound subscripts against the oracle on the grid of their indices."""

from __future__ import annotations

import random

import pytest

from differential import affine

DRAWN = 24
FOUND = (174, 487, 10329, 10494)
"""Seeds of cases that found a fault once: vectors of coordinates counted from a constant; a converted point; operands that are read as they
are and converted, in calls that are to be made again."""


@pytest.mark.cc
@pytest.mark.parametrize("part", range(3))
def test_random_expressions_with_compound_subscripts(part: int) -> None:
    faults = [affine.fault(affine.draw(seed)) for seed in (*range(part, DRAWN, 3), *FOUND[part::3])]
    assert not [fault for fault in faults if fault]


def test_random_orders_of_their_loops() -> None:
    faults = [affine.fault_in_some_order(affine.draw(seed), seed) for seed in range(30)]
    assert not [fault for fault in faults if fault]


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_fresh_expressions_with_compound_subscripts(part: int) -> None:
    start = random.SystemRandom().randrange(2**40)
    faults = [affine.fault(affine.draw(start + number)) for number in range(50)]
    assert not [f"from {start}: {fault}" for fault in faults if fault]
