"""Task sets of single programs: the paper's figures, and what a simulation of the loops really does."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query_samples import answers
from space_samples import KERNELS, SUMS, csf_formats, sample_space
from sparsetune.compiler.concrete.nodes import Assign, Block, Forall, Stmt, Where, reads, transform
from sparsetune.compiler.errors import TuningError
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.nodes import Access, Expr, transform_expression
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.protocolized import parse_protocolized
from sparsetune.compiler.space.space import PIGEON, Rules
from sparsetune.tuner.asymptotic.algebra import Algebra, Untouched, written
from sparsetune.tuner.asymptotic.interpret import Interpreter
from sparsetune.tuner.asymptotic.listing import annotated, size_text
from sparsetune.tuner.asymptotic.model import CostModel
from sparsetune.tuner.asymptotic.predicates import Predicates
from sparsetune.tuner.asymptotic.premises import Premises
from sparsetune.tuner.asymptotic.query import Query, Variable
from sparsetune.tuner.asymptotic.reading import Reading

EXTENT = 2


def model_of(expression: str, formats: Mapping[str, str], **options) -> CostModel:
    return CostModel(parse(expression), {name: Format(form) for name, form in formats.items()}, **options)


def lines(text: str) -> list[tuple[str, str]]:
    """Split an annotated loop nest into code and cost."""
    return [(line.split("  {")[0].strip(), "{" + line.split("  {", 1)[1] if "  {" in line else "") for line in text.split("\n")]


SPGEMM = ("A(i,j) += B(i,k) * C(k,j)", {"A": "cc", "B": "cc", "C": "cc"})


def test_figure_1_inner_products():
    found = lines(annotated(model_of(*SPGEMM), parse_protocolized("forall(i,j,k) A(i,j) += B(i:step,k:step) * C(k:step,j:step)")))
    assert [cost for _, cost in found] == [
        "{(i) | exists k1: B(i,k1)}",
        "{(i,j) | exists k1,k2: B(i,k1) and C(k2,j)}",
        # the figure leaves out the guard of the loops outside
        "{(i,j,k) | exists k1: B(i,k) and C(k1,j)} + {(i,j,k) | exists k1: B(i,k1) and C(k,j)}",
        "{(i,j,k) | B(i,k) and C(k,j)}",
    ]


def test_figure_1_gustavson():
    found = lines(annotated(model_of(*SPGEMM), parse_protocolized("forall(i,k,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)")))
    assert [cost for _, cost in found] == [
        "{(i) | exists k1: B(i,k1)}",
        "{(i,k) | B(i,k)} + {(i,k) | exists j1,k1: B(i,k1) and C(k,j1)}",  # the guard B(i,k1) is missing in print
        "{(i,k,j) | B(i,k) and C(k,j)}",
        "{(i,k,j) | B(i,k) and C(k,j)}",
    ]


def test_figure_1_outer_products():
    found = lines(annotated(model_of(*SPGEMM), parse_protocolized("forall(k,i,j) A(i,j) += B(i:step,k:step) * C(k:step,j:step)")))
    assert [cost for _, cost in found] == [
        "{(k) | exists i1: B(i1,k)} + {(k) | exists j1: C(k,j1)}",
        "{(k,i) | exists j1: B(i,k) and C(k,j1)}",
        "{(k,i,j) | B(i,k) and C(k,j)}",
        "{(k,i,j) | B(i,k) and C(k,j)}",
    ]


SDDMM = ("A(i,j) += B(i,k) * C(k,j) * D(i,j)", {"A": "cc", "B": "dd", "C": "dd", "D": "cc"})


def test_figure_2_fused():
    text = "forall(i,j,k) A(i,j) += B(i:locate,k:locate) * C(k:locate,j:locate) * D(i:step,j:step)"
    found = lines(annotated(model_of(*SDDMM), parse_protocolized(text)))
    assert [cost for _, cost in found] == ["{(i) | exists j1: D(i,j1)}", "{(i,j) | D(i,j)}", "{(i,j,k) | D(i,j)}", "{(i,j,k) | D(i,j)}"]


def test_figure_2_not_fused():
    text = (
        "(forall(i,j) A(i,j) += w(i:locate,j:locate) * D(i:step,j:step)"
        " where forall(i,j,k) w(i,j) += B(i:locate,k:locate) * C(k:locate,j:locate))"
    )
    model = model_of(*SDDMM)
    assert lines(annotated(model, parse_protocolized(text))) == [
        ("produce", ""),
        ("for i", "{(i)}"),
        ("for j", "{(i,j)}"),
        ("for k", "{(i,j,k)}"),
        ("w(i,j) += B(i:locate,k:locate) * C(k:locate,j:locate)", "{(i,j,k)}"),
        ("consume", ""),
        ("for i", "{(i) | exists j1: D(i,j1)}"),
        ("for j", "{(i,j) | D(i,j)}"),
        ("A(i,j) += w(i:locate,j:locate) * D(i:step,j:step)", "{(i,j) | D(i,j)}"),
    ]
    assert size_text(model.task_set(parse_protocolized(text)), model) == "I*J*K"


@pytest.mark.parametrize(
    ("form", "text", "size"),
    [
        ("ds", "forall(i,j) a(i) += B(i:step,j:step) * c(j:locate)", "nnz(B)"),
        ("ds", "forall(j,i) a(i) += B(i:locate,j:step) * c(j:locate)", "|{(j) | exists i1: B(i1,j)}|*I"),
        ("dd", "forall(j,i) a(i) += B(i:locate,j:locate) * c(j:locate)", "I*J"),
    ],
)
def test_sizes(form, text, size):
    model = model_of("a(i) += B(i,j) * c(j)", {"a": "d", "B": form, "c": "d"})
    assert size_text(model.task_set(parse_protocolized(text)), model) == size


def test_stepping_through_a_dense_level_costs_its_dimension():
    predicates = Predicates(Premises())
    statement = parse_protocolized("forall(i,j) a(i) += B(i:step,j:step)")
    stored = Interpreter(predicates, frozenset("B"), Reading(dense_modes=frozenset({("B", 0)})))
    suitable = Interpreter(predicates, frozenset("B"))
    (whole, *_), (rows, *_) = (one.charges(statement) for one in (stored, suitable))
    assert predicates.implies(rows.guard, whole.guard)
    assert not predicates.implies(whole.guard, rows.guard)


def test_affine_subscripts_are_functions_of_their_indices():
    model = model_of("a(i) += B(i,j)", {"a": "d", "B": "ds"})
    shifted = model.task_set(parse_protocolized("forall(i,j) a(i) += B(i:step,2*i + j:step)"))
    (query,) = (query for query in shifted if len(query.head) == 2)
    assert {one.predicate for one in query.clauses} == {"B", "=2*x0+1*x1+0"}


def test_unknown_workspace_state():
    with pytest.raises(TuningError, match="models are exact, paper"):
        model_of(*SPGEMM, workspace_state="none")


# --- simulation -------------------------------------------------------------------------------------------------------


class Simulation:
    """Runs the loops of a protocolized program on patterns and notes the tasks that are really done."""

    def __init__(self, patterns: Mapping[str, frozenset[tuple]], algebra: Algebra) -> None:
        self.patterns = {name: set(entries) for name, entries in patterns.items()}
        self.algebra = algebra
        self.tasks: set[tuple[frozenset[str], tuple]] = set()

    def run(self, statement: Stmt, point: dict[str, int]) -> None:
        match statement:
            case Forall(index, body):
                for value in range(EXTENT):
                    self.iterate(body, point | {index: value}, index)
            case Where(consumer, producer):
                for name in written(producer):
                    self.patterns[name] = set()
                self.run(producer, point)
                self.run(consumer, point)
            case Block(statements):
                for inner in statements:
                    self.run(inner, point)
            case Assign(target):
                self.done(point)
                if target.tensor in self.patterns:
                    self.patterns[target.tensor].add(tuple(point[name] for name in target.indices))
            case Untouched():
                pass

    def done(self, point: dict[str, int]) -> None:
        self.tasks.add((frozenset(point), tuple(sorted(point.items()))))

    def iterate(self, body: Stmt, point: dict[str, int], index: str) -> None:
        steppers = [access for access in reads(body) if self.steps(access, index, point)]
        absent = {id(access) for access in steppers if not self.has_entry(access, point)}
        live = self.algebra.live(transform(body, lambda node: self.without(node, absent)))
        if len(absent) < len(steppers) or live is not None:
            self.done(point)
        if live is not None:
            self.run(live, point)

    def steps(self, access: Access, index: str, point: Mapping[str, int]) -> bool:
        pairs = zip(access.subscripts, access.protocols, strict=True)
        return access.tensor in self.patterns and any(protocol == "step" and subscript.index == index for subscript, protocol in pairs)

    def has_entry(self, access: Access, point: Mapping[str, int]) -> bool:
        fixed = [point.get(subscript.index) for subscript in access.subscripts]
        return any(all(want in (None, have) for want, have in zip(fixed, entry, strict=True)) for entry in self.patterns[access.tensor])

    def without(self, node: Stmt, absent: set[int]) -> Stmt | None:
        def fill(value: Expr) -> Expr | None:
            return self.algebra.fill(value.tensor) if isinstance(value, Access) and id(value) in absent else None

        return Assign(node.target, node.operator, transform_expression(node.value, fill)) if isinstance(node, Assign) else None


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_task_sets_are_what_a_simulation_does(data):
    expression = data.draw(st.sampled_from([*KERNELS, *SUMS]))
    space = sample_space(expression, data.draw(st.sampled_from([PIGEON, Rules()])))
    (schedule,) = space.sample(1, data.draw(st.integers(0, 10**6)))
    statement = schedule.program.statement
    orders = {access.tensor: len(access.subscripts) for access in reads(statement) if access.tensor in space.sparse}
    patterns = {
        name: data.draw(st.frozensets(st.tuples(*[st.integers(0, EXTENT - 1)] * order), max_size=4)) for name, order in orders.items()
    }
    algebra = Algebra(looks_ahead=data.draw(st.booleans()))
    simulation = Simulation({**patterns, **{workspace.name: frozenset() for workspace in schedule.program.workspaces}}, algebra)
    simulation.run(statement, {})

    predicates = Predicates(Premises())
    claimed = set()
    for charge in Interpreter(predicates, space.sparse, Reading(algebra)).charges(statement):
        if charge.resource == "time":
            for conjunction in predicates.conjunctions(charge.guard):
                query = Query(tuple(Variable(name, name) for name in charge.bound), predicates.clauses(conjunction))
                claimed |= {
                    (frozenset(charge.bound), tuple(sorted(zip(charge.bound, answer, strict=True))))
                    for answer in answers(query, patterns, range(EXTENT))
                }
    assert claimed == simulation.tasks


def test_the_paper_forgets_how_workspaces_depend_on_outer_loops():
    text = (
        "forall(l) (forall(i,j) A(i,j) += w(i:step) * D(l:step,j:step)"
        " where forall(k,i) w(i) += B(i:step,k:step) * C(k:step,l:step))"
    )
    assignment = parse(KERNELS["SpGEMM2"])
    exact, paper = (CostModel(assignment, csf_formats(assignment), state) for state in ("exact", "paper"))
    statement = parse_protocolized(text)
    assert "{(i,j,l) | exists k1: B(i,k1) and C(k1,l) and D(l,j)}" in exact.show(exact.task_set(statement))
    assert "B(i,k1) and C(k1,l1)" in paper.show(paper.task_set(statement))


@pytest.mark.parametrize(
    "text",
    [
        "forall(i,k,j) A(i,j) += B(i:step,k:step) * C(k:locate,j:step)",
        # rows without an entry of B are visited too: C may have some there
        "forall(i,j) a(i) += B(i:step,j:locate) + C(i:locate,j:step)",
        "forall(i) (forall(j) A(i,j) += w * C(i:locate,j:step) where forall(k) w += B(i:step,k:step))",
    ],
)
@pytest.mark.parametrize("looks_ahead", [True, False])
def test_every_input_is_covered_by_one_simulation(text, looks_ahead):
    # all 2 x 2 patterns of two matrices under one nest, exhaustively
    statement = parse_protocolized(text)
    algebra = Algebra(looks_ahead=looks_ahead)
    predicates = Predicates(Premises())
    charges = [one for one in Interpreter(predicates, frozenset("BC"), Reading(algebra)).charges(statement) if one.resource == "time"]
    cells = list(product(range(2), repeat=2))
    for bits in range(256):
        patterns = {"B": frozenset(cell for place, cell in enumerate(cells) if bits >> place & 1),
                    "C": frozenset(cell for place, cell in enumerate(cells) if bits >> (place + 4) & 1)}
        simulation = Simulation(patterns | {"w": frozenset()}, algebra)
        simulation.run(statement, {})
        counted = {
            (frozenset(charge.bound), tuple(sorted(zip(charge.bound, answer, strict=True))))
            for charge in charges
            for one in predicates.conjunctions(charge.guard)
            for answer in answers(Query(tuple(Variable(name, name) for name in charge.bound), predicates.clauses(one)), patterns, range(2))
        }
        assert counted == simulation.tasks
