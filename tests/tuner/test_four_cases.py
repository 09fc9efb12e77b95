"""The four cases of SparseAuto's section 3.1: which nest of its Figure 2 is the fastest depends on sizes, and the static model says which.

The fastest by measurement (``results/forests.md``): the shallowest in the first and, on the machine with the smaller cache and as long as
that holds its buffer, in the second, where on the other one it is the deepest; the deepest in the third, and in the fourth, where the
buffers of the shallow ones are far too large.
"""

from __future__ import annotations

import pytest
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.costs import operations
from sparsetune.tuner.model import model_choice
from sparsetune.tuner.reports.forest_cases import CASES, FIGURE_2, NESTS, Case


@pytest.mark.parametrize(
    ("source", "extent", "fastest"),
    [
        ("random:uniform:2000x150x150:nnz=5e5", 8, "e"),
        ("random:uniform:4x219x219:nnz=71941", 4, "e"),
        ("random:uniform:4x400x400:nnz=2.4e5", 4, "e"),
        ("random:uniform:500x500x100000:nnz=10000", 8, "a"),
        ("random:uniform:1000x2000x2000:nnz=30000", 8, "a"),
    ],
)
def test_the_fastest_nest_of_figure_2_has_the_least_cost(source: str, extent: int, fastest: str) -> None:
    costs = nest_costs(source, extent)
    assert min(costs, key=costs.__getitem__) == fastest


def nest_costs(source: str, extent: int) -> dict[str, float]:
    problem = Case("", FIGURE_2, source, dict.fromkeys("lmn", extent), ()).problem()
    found = problem.concretized()
    programs = {name: apply_schedule(found.program, Schedule(text), found.formats, problem.constants) for name, text in NESTS.items()}
    return {name: operations(problem, program, found.sources) for name, program in programs.items()}


def test_vectors_of_nests_take_what_their_code_says() -> None:
    """Nest a multiplies a row of E, held in a register, 16 times for every entry: each time it loads an element of D, multiplies it with
    T*C, and adds a vector to one of 16 sums; it took 2 operations in place of 3 each time, and fewer than the nests with buffers."""
    entries, rows = 71941, 4 * 219
    costs = nest_costs(f"random:uniform:4x219x219:nnz={entries}", 4)
    around = 16 * rows + 64  # ends of fibres, the result
    assert costs["a"] == pytest.approx(entries * (16 * 3 + 1) + around, rel=0.01)


def test_a_buffer_beyond_all_caches_costs_its_lines() -> None:
    near, far = (nest_costs(f"random:uniform:4x{side}x{side}:nnz=1e5", 4)["e"] / side**2 for side in (2000, 2100))
    lines = (4 + 16) * (10 - 3) / 8  # cleared four times, read sixteen times; from memory in place of the caches before it
    assert far - near == pytest.approx(lines, rel=0.1)


def test_a_tensor_that_is_gone_through_again_costs_its_steps() -> None:
    """TTMc of order 4 on short fibres: a nest with r outside went through the tensor eight times, 1.9 times as slow as fibre by fibre."""
    problem = next(case for name, case in CASES.items() if name.startswith("TTMc4, random:uniform")).problem()
    chosen = model_choice(problem, Deadline(30.0))
    assert chosen is not None
    assert "reorder" not in str(chosen), "no loop of a factor stands around those of the tensor"
