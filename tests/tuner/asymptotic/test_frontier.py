"""Frontiers of whole spaces: the numbers of Figure 6 and of the issue, and agreement with judging schedules one by one."""

from __future__ import annotations

from collections import Counter

import pytest
from space_samples import KERNELS, SUMS, csf_formats
from sparsetune.compiler.errors import ExpressionError
from sparsetune.compiler.format import Format
from sparsetune.compiler.levels import DENSE
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.protocolized import parse_protocolized
from sparsetune.compiler.space.space import PIGEON, Rules, ScheduleSpace
from sparsetune.tuner.asymptotic.algebra import Algebra
from sparsetune.tuner.asymptotic.census import Census
from sparsetune.tuner.asymptotic.model import CostModel
from sparsetune.tuner.asymptotic.steps import Steps
from sparsetune.tuner.asymptotic.taco import taco_schedules

UNDOMINATED = {
    ("SpMV", "exact"): 4,
    ("SpMV", "paper"): 4,
    ("SpMV2", "exact"): 28,
    ("SpMV2", "paper"): 28,
    ("SpGEMM", "exact"): 12,
    ("SpGEMM", "paper"): 12,
    ("SpGEMM2", "exact"): 8,
    ("SpGEMM2", "paper"): 292,
    ("SpGEMMH", "exact"): 292,
    ("SpGEMMH", "paper"): 204,
    ("SpMTTKRP", "exact"): 508,
    ("SpMTTKRP", "paper"): 30,
}
TACO = {"SpMV": (4, 4), "SpMV2": (24, 24), "SpGEMM": (16, 4), "SpGEMM2": (32, 4), "SpGEMMH": (336, 4), "SpMTTKRP": (768, 20)}


def space_and_model(expression: str, rules: Rules = PIGEON, **options) -> tuple[ScheduleSpace, CostModel]:
    assignment = parse(KERNELS.get(expression, expression))
    formats = csf_formats(assignment)
    return ScheduleSpace(assignment, formats, rules), CostModel(assignment, formats, **options)


@pytest.mark.parametrize(("kernel", "state"), UNDOMINATED)
def test_undominated_schedules_of_figure_6(kernel, state):
    space, model = space_and_model(kernel, workspace_state=state)
    assert model.frontier(space).count == UNDOMINATED[kernel, state]


@pytest.mark.parametrize("kernel", TACO)
def test_taco_columns_of_figure_6(kernel):
    space, model = space_and_model(kernel)
    schedules = list(taco_schedules(space))
    assert all(schedule in space for schedule in schedules[:10])
    assert (len(schedules), sum(one.count for one in model.listed_frontier(schedules))) == TACO[kernel]


def test_switches_of_sunk_costs():
    assert _count("SpMV2", sunk_costs=False) == 10
    assert _count("SpMV2", sunk_costs=("dimensions",)) == 10
    assert _count("SpMV2", sunk_costs=()) == 3
    assert _count("SpMV2", sunk_costs=("inputs",)) == 11
    assert _count("SpMV2", sunk_costs=("inputs", "dimensions")) == 28


def _count(kernel: str, **options) -> int:
    space, model = space_and_model(kernel, **options)
    return model.frontier(space).count


@pytest.mark.parametrize("state", ["exact", "paper"])
@pytest.mark.parametrize(
    "expression", ["SpMV", "SpMV2", "SpGEMM", "A(i,j) = B(i,j) + C(i,j)", "a(i) = b(i) + C(i,j) * d(j)", "a(i) = 0 * B(i,j) + C(i,j)"]
)
def test_composed_costs_equal_those_of_listed_schedules(expression, state):
    _compare_all(expression, PIGEON, workspace_state=state)


@pytest.mark.parametrize("options", [{}, {"workspace_state": "paper"}, {"as_stored": True}, {"as_stored": True, "sunk_costs": ()}], ids=str)
@pytest.mark.parametrize("expression", [SUMS[0], SUMS[3], SUMS[4]])  # the others have thousands of schedules
def test_composed_costs_of_sums(expression, options):
    _compare_all(expression, Rules(depth="minimum"), **options)


@pytest.mark.parametrize(
    "expression", ["SpMV2", "SpGEMM", "a(i) = b(i) + C(i,j) * d(j)", "A(i,j) = B(i,j) + C(i,j)", "a(i) = 0 * B(i,j) + C(i,j)"]
)
def test_composed_costs_when_looking_ahead(expression):
    _compare_all(expression, Rules(depth="minimum"), algebra=Algebra(looks_ahead=True), as_stored=True)


def _compare_all(expression: str, rules: Rules, **options) -> None:
    space, model = space_and_model(expression, rules, memory=True, **options)
    listed = Counter(model.cost(schedule.program.statement) for schedule in space)
    composed: Counter[int] = Counter()
    census = Census(Steps(space.nestings, model.tasks, model.predicates, model.reading, model.memory, model.gathering))
    for number in range(len(space.groupings)):
        for outcome, count in census.outcomes(census.steps.start(space.top(number))).items():
            composed[outcome.tasks] += count
    assert composed == listed
    lowest = {cost for cost in listed if not any(other != cost and model.tasks.within(other, cost) for other in listed)}
    frontier = model.frontier(space)
    assert frontier.count == sum(listed[cost] for cost in lowest)
    assert {model.tasks.queries(cost) for cost in lowest} == {one.tasks for one in frontier.classes}


@pytest.mark.parametrize(("kernel", "rules"), [("SpGEMM2", PIGEON), ("SpGEMMH", PIGEON), ("SpMTTKRP", PIGEON), ("SpGEMM2", Rules())])
def test_samples_cost_no_less_than_the_frontier(kernel, rules):
    space, model = space_and_model(kernel, rules, memory=rules.depth is None)
    classes = model.frontier(space).classes
    costs = {model.tasks.reduced(sum(model.tasks.add(query) for query in one.tasks)): one for one in classes}
    for schedule in space.sample(60, seed=11):
        own = model.cost(schedule.program.statement)
        assert any(model.tasks.within(cost, own) for cost in costs)


@pytest.mark.parametrize(("kernel", "state"), [("SpGEMM2", "exact"), ("SpGEMM2", "paper"), ("SpGEMMH", "exact"), ("SpMTTKRP", "paper")])
def test_listed_schedules_of_a_class_have_its_cost(kernel, state):
    space, model = space_and_model(kernel, workspace_state=state)
    for one in model.frontier(space).classes:
        listed = list(one.schedules)
        assert len(listed) == one.count == len({repr(schedule.derivation) for schedule in listed})
        for schedule in listed[:: max(1, len(listed) // 10)]:
            assert model.tasks.queries(model.cost(schedule.program.statement)) == one.tasks
            assert schedule in space


def test_deeper_nests_with_smaller_workspaces_stay_on_our_frontier():
    space, model = space_and_model("SpGEMM2", Rules(), memory=True)
    frontier = model.frontier(space)
    memories = {tuple(query for query in one.tasks if query.resource == "memory") for one in frontier.classes}
    assert len(memories) > 1
    assert max(schedule.layout.nest.depth for one in frontier.classes for schedule in one.schedules) > 3
    time_only = space_and_model("SpGEMM2", Rules())[1].frontier(space)
    assert len(time_only.classes) < len(frontier.classes)


def test_a_workspace_is_cheaper_where_its_reader_is_dropped():
    # Where a fibre of B is empty, nothing is to be added: our compiler drops the reader, the paper runs it and it finds nothing.
    assignment = parse("A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)")
    formats = csf_formats(assignment) | {name: Format((DENSE,) * 2) for name in "CD"}
    direct = parse_protocolized("forall(i,l,m,j,k) A(i,l,m) += B(i:step,j:step,k:step) * C(j,l) * D(k,m)")
    scalar = parse_protocolized(
        "forall(i,m,j) (forall(l) A(i,l,m) += C(j,l) * t where forall(k) t += B(i:step,j:step,k:step) * D(k,m))"
    )
    ahead, paper = (CostModel(assignment, formats, algebra=Algebra(looks_ahead=looks)) for looks in (True, False))
    assert ahead.compare(scalar, direct).verdict == "cheaper"
    assert paper.compare(scalar, direct).verdict == "incomparable"


def test_verdicts_have_names():
    _, model = space_and_model("SpGEMM")
    gustavson = parse_protocolized("forall(i,k,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)")
    located = parse_protocolized("forall(i,k,j) A(i,j) += B(i:step,k:step) * C(k:locate,j:step)")
    outer = parse_protocolized("forall(k,i,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)")
    inner = parse_protocolized("forall(i,j,k) A(i,j) += B(i:step,k:step) * C(k:step,j:step)")
    assert model.compare(gustavson, outer).verdict == "costlier"  # even with sunk costs; see the notes on Figure 1
    assert model.compare(located, outer).verdict == "equivalent"
    assert model.compare(outer, inner).verdict == "cheaper"
    dense_rows = parse_protocolized("forall(j,k,i) A(i,j) += B(i:locate,k:step) * C(k:step,j:step)")
    assert model.compare(dense_rows, gustavson).verdict == "incomparable"
    proof = model.compare(outer, inner)
    assert proof.reverse_beyond
    assert not proof.beyond


def test_without_sunk_costs_outer_products_beat_gustavson():
    # Section 5.3: when C is empty, Gustavson's algorithm still reads B.
    located = parse_protocolized("forall(i,k,j) A(i,j) += B(i:step,k:step) * C(k:locate,j:step)")
    outer = parse_protocolized("forall(k,i,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)")
    strict = space_and_model("SpGEMM", sunk_costs=("dimensions",), assumptions=False)[1]
    assert strict.compare(located, outer).verdict == "costlier"
    assert space_and_model("SpGEMM")[1].compare(located, outer).verdict == "equivalent"


def test_users_add_sunk_costs_and_assumptions():
    inner = "forall(i,j,k) A(i,j) += B(i:step,k:step) * C(k:step,j:step)"
    outer = "forall(k,i,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)"
    generous = space_and_model("SpGEMM", sunk_costs=("inputs", "dimensions", "{(i,j,k)}"))[1]
    assert generous.compare(parse_protocolized(inner), parse_protocolized(outer)).verdict == "equivalent"
    # If every row of B has an entry in each column in which C has a row, B's rows bound nothing any more.
    implied = space_and_model("A(i,j) += B(i,k) * C(i,k)", assumptions=("nonempty", "B(i,k) implies C(i,k)"))[1]
    both = parse_protocolized("forall(i,k,j) A(i,j) += B(i:step,k:step) * C(i:step,k:step)")
    only = parse_protocolized("forall(i,k,j) A(i,j) += B(i:step,k:step) * C(i:locate,k:locate)")
    assert implied.compare(both, only).verdict == "equivalent"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sunk_costs": ("rows",)}, "a sunk cost is"),
        ({"sunk_costs": "inputs"}, "a sequence of texts"),
        ({"sunk_costs": ("{(i,q) | B(i,k)}",)}, "no index q"),
        ({"assumptions": ("Z(i)",)}, "names Z"),
        ({"assumptions": ("B(i)",)}, "it has 2"),
        ({"assumptions": ("B(i,k) implies C(k,j)",)}, "all occur before"),
        ({"assumptions": ("B(i,k) or C(k,j)",)}, "expected clauses"),
    ],
)
def test_premises_that_cannot_be_read(options, message):
    with pytest.raises(ExpressionError, match=message):
        space_and_model("SpGEMM", **options)


def test_other_semirings_and_fill_values():
    assignment = parse("d(i) = B(i,j) * c(j)")
    formats = csf_formats(assignment)
    shortest = CostModel(assignment, formats, algebra=Algebra("min", "+"))
    plain = CostModel(assignment, formats)
    statement = parse_protocolized("forall(i,j) d(i) += B(i:step,j:step) * c(j:locate)")
    assert shortest.show(shortest.task_set(statement)) == plain.show(plain.task_set(statement))
    ones = CostModel(assignment, formats, algebra=Algebra(fills={"B": 1}))
    assert ones.show(ones.task_set(statement)) == "{(i,j)}"  # what is not stored counts too
    with pytest.raises(ExpressionError, match="unknown operator"):
        Algebra("xor", "*")


def test_nothing_to_do_costs_nothing():
    space, model = space_and_model("a(i) = 0 * B(i,j) * c(j)", Rules())
    (only,) = model.frontier(space).classes
    assert (only.tasks, only.count) == ((), space.count)
    assert len(list(only.schedules)) == space.count


def test_spaces_without_any_schedule():
    space, model = space_and_model("SpMV2", Rules(depth=1))
    frontier = model.frontier(space)
    assert (frontier.count, frontier.classes) == (0, ())
