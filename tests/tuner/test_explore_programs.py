"""Programs with tiles, collapsed loops and positions, judged as the loops that they come from."""

from __future__ import annotations

import pytest
from sparsetune.tuner.explore import explore


def test_directives_with_tiles_are_judged_as_the_loops_they_come_from():
    found = explore("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"})
    assert found.compare("split(r, r0, r1, 8); reorder(i, r0, j, k, r1)", "reorder(i, r, j, k)").verdict == "equivalent"


@pytest.mark.parametrize(
    ("schedule", "loops"),
    [
        ("collapse(i, j, f); pos(f, p, A)", "reorder(i, j, r)"),
        ("collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 64); parallelize(p0, cpu_thread, atomics)", "reorder(i, j, r)"),
        ("pos(j, p, A); coord(p, q)", "reorder(i, j, r)"),
        ("reorder(i, r, j); collapse(i, r, f)", "reorder(i, r, j)"),
    ],
)
def test_collapsed_loops_and_positions_are_judged_as_the_loops_they_come_from(schedule: str, loops: str) -> None:
    found = explore("Y(i,r) = A(i,j) * X(j,r)", {"A": "csr"})
    assert found.compare(schedule, loops).verdict == "equivalent"
    assert str(found.statement(schedule)) == str(found.statement(loops))
