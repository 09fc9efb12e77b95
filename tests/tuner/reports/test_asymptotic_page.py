"""The published figures: measured by fresh processes, and still those in results/asymptotic.md."""

from __future__ import annotations

from pathlib import Path

import pytest
import sparsetune
from sparsetune.tuner.reports.asymptotic import RESULTS
from sparsetune.tuner.reports.space_sizes import KERNELS, measured

ROOT = Path(sparsetune.__file__).parent
PUBLISHED = {  # min-depth, undominated exact and with the paper's state
    "SpMV": (8, "4 (1)", "4 (1)"),
    "SpMV2": (144, "28 (1)", "28 (1)"),
    "SpGEMM": (96, "12 (1)", "12 (1)"),
    "SpGEMM2": (20736, "8 (2)", "292 (4)"),
    "SpGEMMH": (102272, "292 (1)", "204 (1)"),
    "SpMTTKRP": (3631104, "508 (10)", "30 (10)"),
}


def test_measurements_come_from_fresh_processes():
    found = measured(KERNELS["SpMV2"], state="paper", runs=1)
    assert (found["schedules"], found["undominated"], found["classes"]) == (144, 28, 1)
    assert 0 < found["count_seconds"] <= found["seconds"]
    assert 1 < found["megabytes"] < 1024


def test_our_own_space_is_measured_too():
    found = measured("A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", own=True, sparse="B", runs=1)
    assert found["schedules"] == 1638048
    assert found["undominated"] == 102


@pytest.mark.tree
@pytest.mark.parametrize("kernel", PUBLISHED)
def test_published_counts(kernel):
    row = next(line for line in (ROOT / RESULTS).read_text().splitlines() if line.startswith(f"| {kernel} `"))
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    count, exact, paper = PUBLISHED[kernel]
    assert cells[1:4] == [str(count), exact, paper]
