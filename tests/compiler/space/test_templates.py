"""Templates: counting agrees with listing, what is left is legal, and the paper's schedules fall to the rules they should."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import concretize
from sparsetune.compiler.concrete.lattice import Domain
from sparsetune.compiler.concrete.nodes import Program, Stmt
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.iteration import Iteration
from sparsetune.compiler.space.library import LIBRARY, NamedSchedule
from sparsetune.compiler.space.situation import Situation
from sparsetune.compiler.space.template import Template
from sparsetune.compiler.space.template_filters import DEFAULT, NO_COORD, PAPER, PartitionFilter, UnitFilter
from sparsetune.compiler.space.template_space import Transformation, partitions
from sparsetune.compiler.space.templates import removed_by, report, template_of, templates
from sparsetune.compiler.units import HARDWARE

KERNELS = {
    "SpMV": ("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    "SpMSpV": ("y(i) = A(i,j) * x(j)", {"A": "csc", "x": "compressed"}),
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}),
    "SDDMM": ("Z(i,k) = B(i,k) * C(i,j) * D(j,k)", {"B": "csr", "Z": "csr"}),
    "TTV": ("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"}),
}


def of(kernel: str, target: str, **options: object) -> list[Transformation]:
    expression, formats = KERNELS[kernel]
    assignment = parse(expression)
    return list(templates(assignment, formats_of(assignment, formats), target, **options))  # type: ignore[arg-type]  # keywords only


@pytest.mark.parametrize(("kernel", "target"), [("SpMV", "cpu"), ("SpMV", "cuda"), ("SpMSpV", "cpu")])
def test_counting_agrees_with_listing(kernel: str, target: str) -> None:
    expression, formats = KERNELS[kernel]
    assignment = parse(expression)
    known = formats_of(assignment, formats)
    found = concretize(assignment, known)
    everything = [
        Transformation(partition, order, tuple(zip(placed, units, strict=True)))
        for partition in partitions(Situation(found.program, found.formats, {}))
        for order in permutations(partition.loops)
        for used in range(len(HARDWARE[target].units) + 1)
        for units in combinations(HARDWARE[target].units, used)
        for placed in permutations(order, used)
    ]
    counts = report(assignment, known, target)
    assert counts[0] == ("unpruned", "", len(everything))
    legal = [template for template in everything if template.partition.program is not None]
    nested = [t for t in legal if [t.order.index(loop) for loop, _ in t.units] == sorted(t.order.index(loop) for loop, _ in t.units)]
    without, with_units = list(legal), list(nested)
    units_begin = [rule.name for rule in DEFAULT[target]].index("legal_units")
    for place, rule in enumerate(DEFAULT[target]):
        without = [template for template in without if place < units_begin and not removed_by(template, [rule])]
        with_units = [template for template in with_units if not removed_by(template, [rule])]
        assert counts[place + 1] == (rule.name, rule.kind, len(without if place < units_begin else with_units))


@pytest.mark.parametrize(("kernel", "target"), [*((kernel, "cpu") for kernel in KERNELS), ("SpMV", "cuda"), ("TTV", "cuda")])
def test_what_is_left_is_legal_and_has_no_repeats(kernel: str, target: str) -> None:
    expression, formats = KERNELS[kernel]
    assignment = parse(expression)
    found = concretize(assignment, formats_of(assignment, formats))
    kept = of(kernel, target)
    assert len({template.text for template in kept}) == len(kept)
    for template in kept[:: max(1, len(kept) // 60)]:
        program = apply_schedule(found.program, template.template.fill(), found.formats)
        assert template_of(assignment, found.formats, template.template.fill(), {}).order == template.order
        assert program.relations == template.partition.program.relations  # type: ignore[union-attr]  # legal ones have a program


@pytest.mark.parametrize(("kernel", "target"), [("SpMM", "cpu"), ("SDDMM", "cpu"), ("TTV", "cpu"), ("TTV", "cuda")])
def test_orders_of_magnitude(kernel: str, target: str) -> None:
    expression, formats = KERNELS[kernel]
    assignment = parse(expression)
    counts = {name: count for name, _, count in report(assignment, formats_of(assignment, formats), target, PAPER[target])}
    assert counts["unpruned"] > 1000 * counts["split_is_used"]
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


@pytest.mark.tree
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_counts_of_the_documentation(kernel: str) -> None:
    text = (Path(__file__).parents[3] / "compiler/space/README.md").read_text()
    row = re.search(rf"^\| {kernel} \| cpu \| (.*) \|$", text, re.MULTILINE)
    assert row is not None
    expression, formats = KERNELS[kernel]
    assignment = parse(expression)
    known = formats_of(assignment, formats)
    paper = {name: count for name, _, count in report(assignment, known, "cpu", PAPER["cpu"])}
    stages = ("unpruned", "legal_partition", "no_coord", "storage_order", "legal_units", "split_is_used")
    wanted = [*(paper[stage] for stage in stages), report(assignment, known)[-1][2]]
    assert [int(count.replace(",", "")) for count in row[1].split("|")] == wanted


def test_the_papers_example_of_stage_one() -> None:
    """Section 6.1 on SpMM: collapsing leaves (i, j) and nothing; with it, f is split by positions, and k or not."""
    expression, formats = KERNELS["SpMM"]
    assignment = parse(expression)
    found = concretize(assignment, formats_of(assignment, formats))
    rules = [rule for rule in PAPER["cpu"] if isinstance(rule, PartitionFilter)]
    kept = [
        tuple(Template((step,)).text for step in partition.steps)
        for partition in partitions(Situation(found.program, found.formats, {}))
        if all(rule.keep(partition) for rule in rules)
    ]
    collapsed = [steps for steps in kept if any(step.startswith("collapse") for step in steps)]
    first = ("collapse(i, j, ij_)", "pos(ij_, ij_p, A)", "split(ij_p, ij_p0, ij_p1, {ij_p})")
    assert sorted(collapsed) == sorted([first, (*first, "split(k, k0, k1, {k})")])


EXPECTED = {
    ("position split", "y(i) = A(i,j) * x(j)"): {"outermost_parallel"},
    ("warp per row", "y(i) = A(i,j) * x(j)"): {"load_balanced"},
    ("row split, vectorized dense loop", "Y(i,k) = A(i,j) * X(j,k)"): {"outermost_parallel", "dense_in_order"},
    ("dense loop innermost", "Y(i,k) = A(i,j) * X(j,k)"): {"outermost_parallel"},
    ("position split, threads over columns", "Y(i,k) = A(i,j) * X(j,k)"): {"dense_in_order"},
    ("position split, parallel reduction", "Z(i,k) = B(i,k) * C(i,j) * D(j,k)"): {"outermost_parallel"},
    ("collapsed position split", "T(i,j) = B(i,j,k) * c(k)"): {"outermost_parallel"},
    ("collapsed position split", "T(i,j,l) = B(i,j,k) * C(k,l)"): {"outermost_parallel", "dense_in_order"},
}


PAPERS = [named for named in LIBRARY if "Senanayake" in named.origin]


@pytest.mark.parametrize("named", PAPERS, ids=lambda named: f"{named.name}: {named.expression}")
def test_which_rules_remove_the_papers_own_schedules(named: NamedSchedule) -> None:
    """The first CPU rule forbids Figure 4's position split and every vectorized loop; ours readmits all that run on the CPU."""
    assignment = parse(named.expression)
    template = template_of(assignment, formats_of(assignment, dict(named.formats)), named.schedule, dict(named.extents))
    assert set(removed_by(template, PAPER[named.target])) == EXPECTED.get((named.name, named.expression), set())
    if named.target == "cpu":
        assert removed_by(template, DEFAULT["cpu"]) == []


def test_every_filter_can_be_left_out() -> None:
    whole = of("SpMV", "cpu")
    more = of("SpMV", "cpu", filters=[rule for rule in DEFAULT["cpu"] if rule is not NO_COORD])
    assert {template.text for template in whole} < {template.text for template in more}
    assert any("coord(" in template.text for template in more)


def test_multi_level_tiling_can_be_switched_on() -> None:
    assert any(template.text.count("split(") == 3 for template in of("SpMV", "cpu", levels=2))
    assert not any(template.text.count("split(") == 3 for template in of("SpMV", "cpu"))


def test_where_operands_meet_is_asked_once_for_all_ways_to_give_loops_to_units(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Program, tuple[str, ...]]] = []
    stepped = Iteration.stepped

    def noted(self: Iteration, statement: Stmt, loops: tuple[str, ...], indices: Collection[str]) -> Domain:
        asked.append((self._program, loops))
        return stepped(self, statement, loops, indices)

    monkeypatch.setattr(Iteration, "stepped", noted)
    assert of("SpMM", "cuda")
    legality = [(id(program), loops) for program, loops in asked]
    assert len(set(legality)) == len(legality)


def test_units_that_a_loop_cannot_have_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[Transformation] = []

    def made(*parts: Any) -> Transformation:
        listed.append(Transformation(*parts))
        return listed[-1]

    monkeypatch.setattr("sparsetune.compiler.space.templates.Transformation", made)
    assert of("TTV", "cuda")
    rules = [rule.allowed for rule in DEFAULT["cuda"] if isinstance(rule, UnitFilter) and rule.allowed is not None]
    units = [(each, loop, unit) for each in listed for loop, unit in each.units]
    assert rules
    assert units
    assert all(rule(each.partition, each.order, loop, unit) for rule in rules for each, loop, unit in units)


def test_sizes_stay_open() -> None:
    template = next(template for template in of("SpMV", "cpu") if template.sizes == ("i",))
    assert "{i}" in template.text
    assert "split(i, i0, i1, 32)" in str(template.template.fill({"i": 32}))
