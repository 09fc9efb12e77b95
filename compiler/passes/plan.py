"""The plan for the vectors of one loop: its chunks of iterations, the locals that differ between lanes, the accumulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..frozen import frozen
from ..ir.nodes import Call, Cast, Const, Declare, For, SetVar, Step, Steps, Unary, Value, Var, Vector
from ..ir.rewrite import mentions, nodes_of, pairwise

REDUCTIONS = {"+": ("sum", 0), "-": ("sum", 0), "*": ("product", 1)}
"""By operator, how accumulators are combined, and their first value."""


@frozen
class Chunk:
    """Consecutive iterations that become one vector (or, for one lane, a scalar): the number of the first, and how many there are."""

    first: int
    lanes: int


def chunks_of(extent: int, lanes: int, overlap: bool = False) -> tuple[Chunk, ...]:
    """Cut ``extent`` iterations into full vectors, then into decreasing powers of two.

    Args:
        overlap: iterations may be in two chunks, so that one vector that ends with the last iteration takes the place of several smaller
            ones.
    """
    chunks, first = list[Chunk](), 0
    while first < extent:
        while lanes > extent - first:
            lanes //= 2
        around = 1 << (extent - first - 1).bit_length()  # the smallest vector that has all that is left
        if overlap and first and around <= chunks[-1].lanes and (extent - first).bit_count() > 1:
            first, lanes = extent - around, around
        chunks.append(Chunk(first, lanes))
        first += lanes
    return tuple(chunks)


@dataclass
class Plan:
    """The state that all chunks of one loop share.

    Attributes:
        variable: the loop's variable.
        fresh: returns a unique name like a given one.
        inside: every local of the body.
        varying: the locals that differ between lanes, and the loop's variable.
        fixed: the locals that never change, so that all chunks share them.
        registers: the variable for a chunk of a registers array, by array and first lane.
        hoisted: values that are the same in all chunks and are declared before the first, by expression; None: there is no place for them.
        accumulators: the partial results of reductions, by scalar, kind, lanes and number.
        gathers: whether elements may be gathered, which pays only in tagged loops.
    """

    variable: Var
    fresh: Callable[[str], str]
    inside: frozenset[str]
    varying: frozenset[str]
    fixed: frozenset[str]
    gathers: bool
    registers: dict[tuple[str, int], str] = field(default_factory=dict)
    hoisted: dict[Value, Declare] | None = None
    accumulators: dict[tuple[str, str, int, int], Var] = field(default_factory=dict)


def make_plan(loop: For, fresh: Callable[[str], str]) -> Plan:
    """Make a plan: find which locals of a loop's body differ between lanes."""
    inside = loop.body.declared
    varying: set[str] = {loop.variable.name}
    count = -1
    while count != len(varying):
        count = len(varying)
        for node in nodes_of(loop.body, Declare, SetVar):
            if node.variable.name in inside and mentions(node.value, varying):
                varying.add(node.variable.name)
    assigned = {node.variable.name for node in nodes_of(loop.body, SetVar, For)}
    return Plan(loop.variable, fresh, inside, frozenset(varying), inside - varying - assigned, isinstance(loop.tag, Vector))


def first_values(plan: Plan) -> list[Step]:
    """Return the declarations of the accumulators of a loop's reductions, with neutral first values."""
    return [_neutral(kind, variable) for (_, kind, _, _), variable in plan.accumulators.items()]


def _neutral(kind: str, variable: Var) -> Declare:
    firsts = dict(REDUCTIONS.values())
    return Declare(variable, Cast(Const(float(firsts[kind]), variable.type.element), variable.type))


def begun(plan: Plan, steps: Step) -> list[Step]:
    """Return code without loops after the declarations of its accumulators. Accumulators begin with their first addend if possible.

    So no register with zeros is needed. The scalar to which the accumulators are added begins with 0.0, so that a sum of zeros keeps
    its sign.
    """
    waiting = {variable.name: (kind, variable) for (_, kind, _, _), variable in plan.accumulators.items()}
    neutral: list[Step] = []

    def visit(step: Step) -> Step:
        if isinstance(step, Steps):
            return Steps(tuple(visit(inner) for inner in step.statements))
        for name in [name for name in waiting if name in step.assigned]:
            kind, variable = waiting.pop(name)
            if isinstance(step, SetVar):
                first = Unary("-", step.value, step.value.type) if step.op == "-" else step.value
                return Declare(variable, first if first.type == variable.type else Cast(first, variable.type))
            neutral.append(_neutral(kind, variable))
        return step

    made = visit(steps)
    return [*neutral, made]


def combined(plan: Plan) -> list[Step]:
    """Return the steps that reduce the accumulators of each scalar: those of equal width are combined; the result is halved until it has
    as many lanes as the narrower ones, which are added; in the end its lanes are combined."""
    groups: dict[tuple[str, str], dict[int, list[Value]]] = {}
    for (name, kind, lanes, _), variable in plan.accumulators.items():
        groups.setdefault((name, kind), {}).setdefault(lanes, []).append(variable)
    steps: list[Step] = []
    for (name, kind), variables in groups.items():
        op, widths = "*" if kind == "product" else "+", sorted(variables, reverse=True)
        total = pairwise(variables[widths[0]], op)
        for narrower in widths[1:]:
            while total.type.lanes > narrower > 1:
                total = Call(f"{kind}_halves", (total,), total.type.element.vector(total.type.lanes // 2))
            total = total if narrower > 1 else _all_lanes(kind, total)
            total = pairwise([total, *variables[narrower]], op)
        steps.append(SetVar(Var(name, total.type.element), _all_lanes(kind, total), op))
    return steps


def _all_lanes(kind: str, total: Value) -> Value:
    return Call(f"{kind}_lanes", (total,), total.type.element) if total.type.lanes > 1 else total
