"""What the rules work on: an expression as schedules see it, and a program with the directives that made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from ..concrete.nodes import Assign, Program, assignments
from ..concrete.provenance import Provenance
from ..concrete.said import said_of
from ..deadline import Deadline
from ..errors import ScheduleError
from ..format import Format
from ..frozen import frozen
from ..notation.nodes import Access, Expr, Mul, accesses
from ..schedule import directives as d
from ..schedule.addresses import Address, enclosing_loops, leaves
from ..schedule.apply import apply_schedule
from ..schedule.dependence import graph_of, needs_of_expression, uses
from ..schedule.factors import joined
from ..schedule.iteration import producers_inside
from ..schedule.schedule import Schedule
from .joins import Joins
from .template import Part, Template, Values, filled

FEW_FACTORS = 6
"""Most factors of a product of which all contraction trees are examined; of longer products only a few are (``forests.likely``)."""

_SCALAR = Format()


@frozen
class Structure:
    """Directives that decide loops and workspaces, and the program that they make with the usual values of their holes."""

    template: Template
    program: Program
    origin: str

    def then(self, situation: Situation, *parts: Part, origin: str | None = None) -> Structure | None:
        """Return the structure with more directives, or None where one is refused. Raises ``TimeOver`` as ``Deadline.watch``."""
        changed = further(self.program, parts, situation)
        return None if changed is None else Structure(self.template.then(*parts), changed, origin or self.origin)


@frozen
class Situation:
    """The expression as schedules see it.

    Attributes:
        program: the default program.
        formats: of operands and result.
        extents: what is known of extents at compile time.
        deadline: when enumerations end.
        lengths: extents of the operands at hand, by index; none where there are no operands.
        fibres: how many positions each level of the operands at hand has, outermost first.
        joins: sizes of what several of these operands store together.
        blas: whether dense loops may go to BLAS: values are added and multiplied, and all are float32 or all float64.
    """

    program: Program
    formats: Mapping[str, Format]
    extents: Mapping[str, int]
    deadline: Deadline = field(default_factory=Deadline, compare=False, repr=False)
    lengths: Mapping[str, int] = field(default_factory=dict)
    fibres: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    joins: Joins | None = field(default=None, compare=False, repr=False)
    blas: bool = False

    def stored(self, program: Program) -> tuple[Access, ...]:
        """Return the accesses of stored operands in a program."""
        found = [access for assign in assignments(program.statement) for access in accesses(assign.value)]
        return tuple(dict.fromkeys(access for access in found if not self.formats.get(access.tensor, _SCALAR).is_dense))

    def tree(self, program: Program) -> frozenset[str]:
        """Return the indices of stored operands."""
        return frozenset(name for access in self.stored(program) for name in access.indices)


def further(program: Program, parts: Iterable[Part], situation: Situation, values: Values = MappingProxyType({})) -> Program | None:
    """Return what directives make of a program, None where one is refused; holes without a value take the usual one.

    Raises ``TimeOver`` as ``Deadline.watch``.
    """
    situation.deadline.watch()
    try:
        return apply_schedule(program, Schedule(filled(parts, values)), situation.formats, situation.extents)
    except ScheduleError:
        return None


def tree_first(structure: Structure, situation: Situation) -> bool:
    """Return whether the loops over indices of stored operands come before all others."""
    tree, loops = situation.tree(structure.program), leaf_loops(structure.program)
    return [loop for loop in loops if loop in tree] == list(loops[: sum(loop in tree for loop in loops)])


def leaf_loops(program: Program) -> tuple[str, ...]:
    """Return the loops around the assignment to the result."""
    address, _ = result_leaf(program)
    return enclosing_loops(program.statement, address)


def result_leaf(program: Program) -> tuple[Address, Assign]:
    """Return the first assignment to the result and its address."""
    local = {space.name for space in program.workspaces}
    return next((address, leaf) for address, leaf in leaves(program.statement) if leaf.target.tensor not in local)


def format_read(access: Access, program: Program, situation: Situation) -> Format:
    """Return the format in which a program reads an access of an operand."""
    return access.stored or said_of(access, program.conversions) or situation.formats[access.tensor]


def precompute_step(
    part: Sequence[Expr], rest: Sequence[Expr], leaf: Assign, loops: Sequence[str], situation: Situation, structure: Structure, count: int
) -> d.Precompute:
    """Return the directive that moves a part into a workspace over the dense loops that it shares with the rest."""
    program = structure.program
    graph, producers = graph_of(program.relations), producers_inside(program.statement)
    part_needs = frozenset().union(*(needs_of_expression(factor, producers, graph) for factor in part))
    rest_needs = frozenset(leaf.target.indices).union(*(needs_of_expression(factor, producers, graph) for factor in rest))
    shared = [loop for loop in loops if uses(part_needs, loop, graph) and uses(rest_needs, loop, graph)]
    return precompute_over(part, shared_below(shared, situation.tree(program), graph), program, situation, count)


def precompute_over(part: Sequence[Expr], loops: Sequence[str], program: Program, situation: Situation, count: int) -> d.Precompute:
    """Return the directive that moves a part into a workspace over some loops; ``count`` is for its name."""
    names = {space.name for space in program.workspaces} | situation.tree(program) | set(graph_names(program))
    name = next(wish for wish in (f"w{number}" for number in range(count, count + 50)) if wish not in names)
    return d.Precompute(joined(Mul(tuple(part)), list(part)), tuple(loops), tuple(loops), name)


def is_block_loop(loop: str, graph: Provenance) -> bool:
    """Return whether a loop runs over blocks."""
    return graph.is_derived(loop) and loop == graph.made_by(loop).children[0] and len(graph.made_by(loop).children) == 2


def graph_names(program: Program) -> frozenset[str]:
    """Return tensors and indices of a program, which new names must avoid."""
    found = [access for assign in assignments(program.statement) for access in (assign.target, *accesses(assign.value))]
    return frozenset(name for access in found for name in (access.tensor, *access.indices))


def shared_below(shared: Sequence[str], tree: frozenset[str], graph: Provenance) -> list[str]:
    """Return the loops that a workspace ranges over: the innermost shared ones, up to one of the tree or over blocks."""
    listed: list[str] = []
    for loop in reversed(shared):
        if tree.intersection(graph.originals(loop)) or is_block_loop(loop, graph):
            break
        listed.insert(0, loop)
    return listed
