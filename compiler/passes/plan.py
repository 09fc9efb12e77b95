"""What the vectors of one loop share: how iterations are cut into them, what differs from lane to lane, accumulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..frozen import frozen
from ..ir.nodes import Call, Cast, Const, Declare, For, SetVar, Step, Value, Var, Vector
from ..ir.rewrite import mentions, nodes_of, pairwise

REDUCTIONS = {"+": ("sum", 0), "-": ("sum", 0), "*": ("product", 1)}
"""By operator: how accumulators are combined, and their first value."""


@frozen
class Chunk:
    """Consecutive iterations that become one vector (or, for one lane, a scalar): the first one's number, and how many."""

    first: int
    lanes: int


def chunks_of(extent: int, lanes: int) -> tuple[Chunk, ...]:
    """Cut ``extent`` iterations into full vectors, then into ever smaller powers of two."""
    chunks, first = [], 0
    while first < extent:
        while lanes > extent - first:
            lanes //= 2
        chunks.append(Chunk(first, lanes))
        first += lanes
    return tuple(chunks)


@dataclass
class Plan:
    """What all chunks of one loop share.

    Attributes:
        variable: the loop's.
        fresh: gives a name that nothing else has.
        inside: every local of the body.
        varying: those that differ from lane to lane, and the loop's variable.
        fixed: those that never change, so that all chunks share them.
        registers: the variable that holds a chunk of a registers array, by array and first lane.
        hoisted: values that are the same in all chunks and stand before the first, by expression; None: nowhere to stand.
        accumulators: the partial results of reductions, by scalar, kind, lanes and number.
        gathers: whether elements may be read at places that other elements give (it pays only where it is asked for).
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
    """Find which locals of a loop's body differ from lane to lane."""
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
    """Return the accumulators of a loop's reductions, each neutral at first."""
    firsts = dict(REDUCTIONS.values())
    return [
        Declare(variable, Cast(Const(float(firsts[kind]), variable.type.element), variable.type))
        for (_, kind, _, _), variable in plan.accumulators.items()
    ]


def combined(plan: Plan) -> list[Step]:
    """Return the steps that reduce the accumulators of each scalar: first those of equal width to one, then its lanes."""
    groups: dict[tuple[str, str, int], list[Var]] = {}
    for (name, kind, lanes, _), variable in plan.accumulators.items():
        groups.setdefault((name, kind, lanes), []).append(variable)
    steps: list[Step] = []
    for (name, kind, lanes), variables in groups.items():
        op = "*" if kind == "product" else "+"
        total = pairwise(list(variables), op)
        scalar = Var(name, variables[0].type.element)
        steps.append(SetVar(scalar, Call(f"{kind}_lanes", (total,), scalar.type) if lanes > 1 else total, op))
    return steps
