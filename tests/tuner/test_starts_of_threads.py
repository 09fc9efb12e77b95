"""How many starts of threads the static model charges."""

from __future__ import annotations

import pytest
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.datasets.generate import generate
from sparsetune.tuner import costs
from sparsetune.tuner.constants import Constants
from sparsetune.tuner.model import expected_cost
from sparsetune.tuner.reports.workloads import KERNELS, operands_of
from sparsetune.tuner.resolve import make_problem
from static_choices import spmv, with_rows

SHARED = "parallelize(i, cpu_thread, no_races, static)"
FIBRES = "precompute(T(i,j,k) * C(k,r), r, r, w)"
TILES = "collapse(i, j, f); pos(f, p, T); split_up(p, p0, p1, {}); parallelize(p0, cpu_thread, atomics, static)"


@pytest.mark.parametrize(
    ("schedule", "starts"),
    [
        ("", 0),
        (SHARED, 1),
        (f"{FIBRES}; {SHARED}", 1),  # two assignments in one loop
        (f"{FIBRES}; {TILES.format(2)}", 2),  # a thread that waits has nothing to take over
        (f"{FIBRES}; {TILES.format(64)}", 1),
    ],
    ids=["serial", "a loop", "two assignments", "one piece each", "many pieces"],
)
def test_each_parallel_loop_starts_threads_once(monkeypatch: pytest.MonkeyPatch, schedule: str, starts: int) -> None:
    case = KERNELS["MTTKRP 32"]
    problem = make_problem(case.expression, operands_of(case, generate("random:uniform:40x60x70:nnz=4000", "csf")), threads=2)

    def cost(start: float) -> float:
        monkeypatch.setattr(costs, "machine_constants", lambda: Constants(operation=1e-10, start=start))
        return expected_cost(problem, Schedule(schedule))

    assert cost(2e-6) - cost(1e-6) == pytest.approx(starts * 1e4)


@pytest.mark.parametrize(("rows", "shared"), [(200, False), (800, True)])
def test_kernels_of_some_microseconds_are_shared_on_a_machine_that_was_not_calibrated(
    monkeypatch: pytest.MonkeyPatch, rows: int, shared: bool
) -> None:
    """Two threads take two thirds of the time of a product of 4,800 entries, and no less for 1,200."""
    monkeypatch.setattr(costs, "machine_constants", Constants)
    assert ("cpu_thread" in spmv(with_rows([6] * rows), threads=2)) == shared
