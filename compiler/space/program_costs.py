"""What a scheduled program costs, symbolically: scalar operations and elements of workspaces (``Kernel.costs``).

Loop nest forests have exact costs (``forests.costs``). Of other programs every assignment counts its operations once per iteration of
the loops around it; these follow what a sparse factor stores, and all addends of a sum. Where several sparse factors meet, the loops
count as those of the first, which bounds the number from above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..concrete.loop_tag import PLAIN
from ..concrete.nodes import Assign, Forall, Program, Stmt, assignments, transform
from ..concrete.provenance import Provenance
from ..concrete.said import said_of
from ..errors import ExpressionError
from ..format import Format
from ..notation.nodes import Access, Add, Assignment, Expr, accesses, operation_count, walk_expression
from ..schedule.addresses import enclosing_loops, leaves
from ..schedule.dependence import graph_of
from .forests.contraction import Contraction, contraction_of
from .forests.costs import Costs, costs_of, positions
from .forests.fibres import by_fibres
from .forests.forest import Forest
from .forests.posynomial import ONE, Peak, Posynomial
from .forests.reading import forest_of
from .lifespans import together
from .memory import counted_positions


def program_costs(program: Program, assignment: Assignment, formats: Mapping[str, Format]) -> Costs:
    """Return the costs of a program.

    Args:
        program: what a schedule makes of the default program.
        assignment: the expression.
        formats: of every tensor in the program.
    """
    stored = {access.tensor: form for access, form in program.conversions if not access.subscripts}
    known = {**formats, **stored}
    try:
        contraction = contraction_of(assignment, known)
    except ExpressionError:
        contraction = None
    plain = replace(program, statement=transform(program.statement, _untagged), assembly=())
    forest = None if contraction is None or assignment.operator == "+=" else _forest(plain, contraction, known)
    return _general(program, known) if forest is None else costs_of(forest, known)


def _forest(program: Program, contraction: Contraction, formats: Mapping[str, Format]) -> Forest | None:
    """Return the forest that a program is, of loops over coordinates or over stored fibres; None where it is none."""
    found = (forest_of(program, one) for one in (contraction, *by_fibres(contraction, formats)))
    return next((forest for forest in found if forest is not None), None)


def converted(program: Program, formats: Mapping[str, Format]) -> Posynomial:
    """Return how many entries of operands are converted before a program runs (Dias et al., section 6.5): stored ones, or all of a dense
    operand.

    Args:
        program: scheduled.
        formats: of the operands as they are given.
    """
    reads = {access.tensor: access for assign in assignments(program.statement) for access in accesses(assign.value)}
    total = Posynomial()
    for operand, wanted in dict(program.conversions).items():
        form, access = formats[operand.tensor], reads[operand.tensor]
        if wanted.in_memory == form.in_memory:
            continue
        if access.is_plain:
            names = tuple(access.subscripts[mode].index for mode in form.order)
            total += positions(operand.tensor, form, names, len(names) - 1)
        else:  # the extents of other modes have no names
            total += Posynomial.of([((f"nnz_{operand.tensor}_{len(form.in_memory)}",), 1)])
    return total


def _untagged(statement: Stmt) -> Stmt | None:
    return replace(statement, tag=PLAIN) if isinstance(statement, Forall) else None


def _general(program: Program, formats: Mapping[str, Format]) -> Costs:
    graph = graph_of(program.relations)
    time, deepest = Posynomial(), 0
    for address, leaf in leaves(program.statement):
        loops = tuple(dict.fromkeys(name for loop in enclosing_loops(program.statement, address) for name in graph.originals(loop)))
        deepest = max(deepest, len(loops))
        time += _work(leaf, loops, program, formats)
    sizes = {space: _slots(space.indices, graph, formats) for space in program.workspaces if space.indices}
    memory = Peak.of(sum((sizes[space] for space in spaces if space in sizes), Posynomial()) for spaces in together(program))
    modes = max((len(space.indices) for space in program.workspaces), default=0)
    return Costs(time, memory, deepest, modes)


def _slots(indices: tuple[str, ...], graph: Provenance, formats: Mapping[str, Format]) -> Posynomial:
    """Return the elements of a workspace: one for each position of an operand where an index counts these."""
    product = ONE
    for index in indices:
        counted = counted_positions(graph, index, formats)
        if counted is None:
            product *= _elements(graph.originals(index))
        else:
            (access, level), form = counted, formats[counted[0].tensor]
            product *= positions(access.tensor, form, tuple(access.subscripts[mode].index for mode in form.order), level)
    return product


def _work(leaf: Assign, loops: tuple[str, ...], program: Program, formats: Mapping[str, Format]) -> Posynomial:
    """Return the operations of an assignment: of every addend where it is computed, and one for each addition to the target."""
    addends = leaf.value.operands if isinstance(leaf.value, Add) else (leaf.value,)
    total = Posynomial()
    for number, addend in enumerate(addends):
        operations = operation_count(addend) + (1 if number or leaf.operator == "+=" else 0)
        total += _entered(addend, loops, program, formats).scaled(operations)
    return total


def _entered(expr: Expr, loops: tuple[str, ...], program: Program, formats: Mapping[str, Format]) -> Posynomial:
    """Return how many iterations the loops run for an expression."""
    product, left = ONE, list(loops)
    for access, chain, form in _stored(expr, program, formats):
        depth = next((place for place, index in enumerate(chain) if index not in left), len(chain))
        if depth:
            product *= positions(access.tensor, form, chain, depth - 1)
            left = [index for index in left if index not in chain[:depth]]
    return product * _elements(tuple(left))


def _stored(expr: Expr, program: Program, formats: Mapping[str, Format]) -> Iterator[tuple[Access, tuple[str, ...], Format]]:
    """Yield the sparse accesses of an expression with the indices of their levels."""
    for access in walk_expression(expr):
        if isinstance(access, Access) and access.tensor in formats and access.is_plain:
            form = access.stored or said_of(access, program.conversions) or formats[access.tensor]
            if not form.is_dense:
                yield access, tuple(access.subscripts[mode].index for mode in form.order), form


def _elements(indices: tuple[str, ...]) -> Posynomial:
    return Posynomial.of([(indices, 1)])
