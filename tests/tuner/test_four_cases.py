"""The four cases of SparseAuto's section 3.1: which nest of its Figure 2 is the fastest depends on sizes, and the static model says which.

The fastest by measurement (``results/forests.md``): the shallowest in the first, the deepest in the second and third, and in the fourth,
where the buffers of the shallow ones are far too large.
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
        ("random:uniform:4x400x400:nnz=2.4e5", 4, "a"),
        ("random:uniform:500x500x100000:nnz=10000", 8, "a"),
        ("random:uniform:1000x2000x2000:nnz=30000", 8, "a"),
    ],
)
def test_the_fastest_nest_of_figure_2_has_the_least_cost(source: str, extent: int, fastest: str) -> None:
    problem = Case("", FIGURE_2, source, dict.fromkeys("lmn", extent), ()).problem()
    found = problem.concretized()
    programs = {name: apply_schedule(found.program, Schedule(text), found.formats, problem.constants) for name, text in NESTS.items()}
    costs = {name: operations(problem, program, found.sources) for name, program in programs.items()}
    assert min(costs, key=costs.__getitem__) == fastest


def test_a_tensor_that_is_gone_through_again_costs_its_steps() -> None:
    """TTMc of order 4 on short fibres: a nest with r outside went through the tensor eight times, 1.9 times as slow as fibre by fibre."""
    problem = next(case for name, case in CASES.items() if name.startswith("TTMc4, random:uniform")).problem()
    chosen = model_choice(problem, Deadline(30.0))
    assert chosen is not None
    assert "reorder" not in str(chosen), "no loop of a factor stands around those of the tensor"
