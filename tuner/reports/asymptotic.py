"""``results/asymptotic.md``, measured anew: ``python -m sparsetune.tuner.reports.asymptotic``.

Times are those of fresh processes on one core, after importing, the median of three.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ...compiler.space.protocolized import parse_protocolized, show_protocolized
from ..asymptotic.listing import annotated
from ..asymptotic.model import CostModel, Frontier
from ..asymptotic.taco import taco_schedules
from .markdown import table
from .publishing import output_option, publish
from .records import Taken
from .space_sizes import KERNELS, LARGER, measured, paper_space
from .taco_comparison import differences

RESULTS = Path("results") / "asymptotic.md"

PRINTED = {  # Figure 6: min-depth, undominated, min-depth (TACO), undominated (TACO), seconds to filter one schedule
    "SpMV": (8, "4", 4, 4, 0.0323),
    "SpMV2": (144, "28", 24, 16, 0.172),
    "SpGEMM": (96, "12", 16, 4, 0.0743),
    "SpGEMM2": (20736, "292", 32, 2, 0.188),
    "SpGEMMH": (102272, "204", 336, 4, 0.198),
    "SpMTTKRP": (3631104, "timed out", 768, 23, 0.437),
}

FIGURES = (
    ("Figure 1, inner products", "SpGEMM", "forall(i,j,k) A(i,j) += B(i:step,k:step) * C(k:step,j:step)"),
    ("Figure 1, Gustavson", "SpGEMM", "forall(i,k,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)"),
    ("Figure 1, outer products", "SpGEMM", "forall(k,i,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)"),
    ("Figure 2, fused SDDMM", "SDDMM", "forall(i,j,k) A(i,j) += B(i:locate,k:locate) * C(k:locate,j:locate) * D(i:step,j:step)"),
    (
        "Figure 2, SDDMM not fused",
        "SDDMM",
        "(forall(i,j) A(i,j) += w(i:locate,j:locate) * D(i:step,j:step)"
        " where forall(i,j,k) w(i,j) += B(i:locate,k:locate) * C(k:locate,j:locate))",
    ),
)


def report() -> str:
    """Return the page, section by section."""
    sections = (_introduction(), _figure_6(), differences(), _switches(), _spmttkrp(), _figures(), _own_spaces(), _definition())
    return "\n\n".join(section.strip() for section in sections) + "\n"


def _introduction() -> str:
    return f"""
# The schedule space and its asymptotic frontier

Written by `python -m sparsetune.tuner.reports.asymptotic` ({Taken().text}; Python
{sys.version.split()[0]}, one core). The model is
that of Ahrens, Kjolstad and Amarasinghe, "An asymptotic cost model for autoscheduling sparse tensor programs"; sections and
figures without a name are theirs. The counts of Figure 6, the frontiers in both models and the figures are also asserted by
tests in `tests/compiler/space` and `tests/tuner/asymptotic`.
"""


def _figure_6() -> str:
    rows = []
    for name, expression in KERNELS.items():
        exact, paper = (measured(expression, state) for state in ("exact", "paper"))
        space, model = paper_space(expression)
        taco = list(taco_schedules(space))
        kept = sum(one.count for one in model.listed_frontier(taco))
        printed = PRINTED[name]
        rows.append((
            f"{name} `{expression}`",
            f"{exact['schedules']:.0f}",
            f"{exact['undominated']:.0f} ({exact['classes']:.0f})",
            f"{paper['undominated']:.0f} ({paper['classes']:.0f})",
            printed[1],
            f"{len(taco)}",
            f"{kept}",
            f"{printed[3]}",
            f"{exact['seconds']:.3f}",
            f"{paper['seconds']:.3f}",
            f"{exact['megabytes']:.0f}",
            f"{paper['megabytes']:.0f}",
        ))
    head = (
        "kernel", "min-depth schedules", "undominated, exact (costs)", "undominated, paper's state (costs)", "printed",
        "TACO", "undominated", "printed", "seconds, exact", "seconds, paper's", "MB, exact", "MB, paper's",
    )
    return f"""
## Figure 6

All matrices and tensors, the result's included, are stored (dense, compressed, ...), vectors dense. Min-depth counts are the
printed ones, without exception, by counting and by listing. "Undominated" counts the schedules that no other beats, including
all of equal cost; the number of different costs is in brackets. "Exact" and "paper's" are the two models of a workspace's state
(below). Seconds and peak memory are for counting the space, finding its frontier and counting that, in a fresh process, after
import, median of 3. The paper needs 0.03 to 0.44 seconds *per schedule*; for SpMTTKRP its filter had not ended after days.

{table(head, rows)}
"""


def _switches() -> str:
    rows = []
    for sunk in (("inputs", "dimensions"), ("dimensions",), ("inputs",), ()):
        counts = []
        for expression in list(KERNELS.values())[:5]:
            space, model = paper_space(expression, sunk_costs=sunk)
            counts.append(str(model.frontier(space).count))
        rows.append((" and ".join(sunk) or "nothing", *counts))
    assumptions = []
    for expression in list(KERNELS.values())[:5]:
        space, model = paper_space(expression, assumptions=False)
        assumptions.append(str(model.frontier(space).count))
    rows.append(("inputs and dimensions; operands may be empty", *assumptions))
    return f"""
## Switches

Undominated schedules (exact state) when less is sunk or assumed. "Inputs": reading every sparse operand; "dimensions": any
single loop over a dimension. `sunk_costs=False` is the second row, `("inputs",)` the third, `()` the fourth. Users add sunk
costs and assumptions of their own as text, e.g. `sunk_costs=("inputs", "dimensions", "{{(i,k) | B(i,k) and C(k,j)}}")` or
`assumptions=("nonempty", "B(i,k) implies C(i,k)")`.

{table(("sunk", *list(KERNELS)[:5]), rows)}
"""


def _spmttkrp() -> str:
    parts = ["## The frontier of SpMTTKRP", _SPMTTKRP_TEXT.strip()]
    for state in ("exact", "paper"):
        space, model = paper_space(KERNELS["SpMTTKRP"], workspace_state=state)
        frontier = model.frontier(space)
        parts.append(f"### {state.capitalize()} state: {frontier.count} schedules, {len(frontier.classes)} costs")
        parts.extend(_classes(model, frontier))
    return "\n\n".join(parts)


_SPMTTKRP_TEXT = """
The paper's filter "timed out after a few days" on these 3,631,104 schedules. Costs are given beyond the sunk ones (reading B,
C and D, any single dimension), each with the number of its schedules and every loop structure that has it; the number before a
structure says how many choices of protocols have it. `w` and `t` are workspaces.
"""


def _classes(model: CostModel, frontier: Frontier) -> Iterator[str]:
    for number, one in enumerate(frontier.classes, 1):
        structures: dict[str, int] = {}
        for schedule in one.schedules:
            text = _without_protocols(show_protocolized(schedule.program.statement))
            structures[text] = structures.get(text, 0) + 1
        yield f"**Cost {number}**, {one.count} schedules: `{model.show(one.tasks)}`"
        yield "```\n" + "\n".join(f"{count:3} x {text}" for text, count in structures.items()) + "\n```"


def _without_protocols(text: str) -> str:
    for word in (":step", ":locate", ":append", ":insert"):
        text = text.replace(word, "")
    return text


def _figures() -> str:
    models = {
        "SpGEMM": paper_space(KERNELS["SpGEMM"])[1],
        "SDDMM": paper_space("A(i,j) += B(i,k) * C(k,j) * D(i,j)", sparse="AD")[1],
    }
    parts = ["## Figures 1 and 2", "What every line costs. The k lines of the first two lack the guards of the outer loops in print."]
    for title, kernel, text in FIGURES:
        parts.append(f"{title}:\n\n```\n{annotated(models[kernel], parse_protocolized(text))}\n```")
    return "\n\n".join(parts)


def _own_spaces() -> str:
    rows = []
    requests: list[tuple[str, str, str | None]] = [(name, expression, None) for name, expression in KERNELS.items()]
    for name, expression, sparse in (*requests, *LARGER):
        found = measured(expression, own=True, sparse=sparse, runs=1)
        rows.append((
            f"{name} `{expression}`",
            f"{found['schedules']:.0f}",
            f"{found['undominated']:.0f} ({found['classes']:.0f})",
            f"{found['count_seconds']:.2f}",
            f"{found['seconds']:.2f}",
            f"{found['megabytes']:.0f}",
        ))
    return f"""
## Our own space

Without a preset every depth is allowed, each program counts once, and a schedule is dropped only if another needs neither more time
nor more memory in workspaces of two modes or more. (The workspace of a sparse result that is written out of order counts too.) Time
is that in the stored formats: a loop through the rows of CSR visits empty rows too. Workspaces work as in our compiler: if a
producer has nothing to do, statements that read its workspace are dropped, while in the paper they run and find
nothing. So `forall i, m, j: (forall l A += C * t where forall k t += B * D)` costs the nonempty fibres of B times l, not all of
i, m, j and l, and a scalar or a workspace over a fibre beats the program without one. The tuner's screening counts the same way;
the numbers above, of the paper's space, do not. The first six rows are the
paper's kernels in its formats; in the others only B is sparse unless their name says more. One run each.

{table(("kernel", "schedules", "undominated (costs)", "seconds to count", "seconds in all", "MB"), rows)}
"""


def _definition() -> str:
    return """
## What is counted

A schedule is an algebraic form, a where grouping, a forall nesting, and step or locate for every mode of every read of a sparse
operand or workspace.

- **Forms.** Sums and products are n-ary and without order. Products are distributed over sums at every subset of places; addends
  share one assignment, or accumulate one after another; addends with different reductions are joined through workspaces.
- **Groupings.** Every set of two or more operands of a sum or product, but not all, may become a workspace, and again in its
  producer: 1, 4, 26, 236 ways for products of 2, 3, 4, 5 factors (total partitions). `w += e` where sums distribute, `w = e`.
  The paper counts both even where they are one program (SpGEMMH: 102272 against 51328 different ones); without a preset
  `w += e` must sum something inside its where.
- **Nestings.** A loop goes around everything in a scope, or the scope is cut and each side keeps the loops that it needs.
  Where statements without a loop in between are one cut, so `(c where p) where q` and `c where (p where q)` are one schedule.
- **Protocols** are free for sparse reads, none for dense operands; append and insert follow from the loops.
- Equal reads are different operands: `B(i,j) * B(i,j)` counts step and locate on each.
"""


@click.command()
@output_option(RESULTS, "Where the page is written.")
def main(output: Path) -> None:
    """Measure the schedule spaces and frontiers that results/asymptotic.md reports."""
    publish(output, report())


if __name__ == "__main__":
    main()
