"""What a scheduled program costs, symbolically: scalar operations and elements of workspaces (``Kernel.costs``).

Loop nest forests have exact costs (``forests.costs``). Of other programs every assignment counts its operations once per iteration of
the loops around it; these follow what a sparse factor stores, and all addends of a sum. Where several sparse factors meet, the loops
count as those of the first, which bounds the number from above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..concrete.nodes import PLAIN, Assign, Forall, Program, Stmt, said_of, transform
from ..concrete.provenance import Provenance
from ..errors import ExpressionError
from ..format import Format
from ..notation.nodes import Access, Add, Assignment, Expr, walk
from ..schedule.addresses import enclosing_loops, leaves
from ..schedule.dependence import graph_of
from .forests.contraction import contraction_of
from .forests.costs import Costs, costs_of, positions
from .forests.posynomial import ONE, Posynomial
from .forests.reading import forest_of


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
    forest = None if contraction is None or assignment.operator == "+=" else forest_of(plain, contraction)
    return _general(program, known) if forest is None else costs_of(forest, known)


def _untagged(statement: Stmt) -> Stmt | None:
    return replace(statement, tag=PLAIN) if isinstance(statement, Forall) else None


def _general(program: Program, formats: Mapping[str, Format]) -> Costs:
    graph = graph_of(program.relations)
    time, deepest = Posynomial(), 0
    for address, leaf in leaves(program.statement):
        loops = tuple(dict.fromkeys(name for loop in enclosing_loops(program.statement, address) for name in graph.originals(loop)))
        deepest = max(deepest, len(loops))
        time += _work(leaf, loops, program, formats)
    sizes = [_elements(_originals(space.indices, graph)) for space in program.workspaces if space.indices]
    modes = max((len(space.indices) for space in program.workspaces), default=0)
    return Costs(time, sum(sizes, Posynomial()), deepest, modes)


def _originals(indices: tuple[str, ...], graph: Provenance) -> tuple[str, ...]:
    return tuple(name for index in indices for name in graph.originals(index))


def _work(leaf: Assign, loops: tuple[str, ...], program: Program, formats: Mapping[str, Format]) -> Posynomial:
    """Return the operations of an assignment: of every addend where it is computed, and one for each addition to the target."""
    addends = leaf.value.operands if isinstance(leaf.value, Add) else (leaf.value,)
    total = Posynomial()
    for number, addend in enumerate(addends):
        operations = operation_count(addend) + (1 if number or leaf.operator == "+=" else 0)
        total += _entered(addend, loops, program, formats).scaled(operations)
    return total


def operation_count(expr: Expr) -> int:
    """Return how many operations one evaluation takes."""
    return sum(max(len(node.children) - 1, 1) for node in walk(expr) if node.children)


def _entered(expr: Expr, loops: tuple[str, ...], program: Program, formats: Mapping[str, Format]) -> Posynomial:
    """Return how often loops run for an expression."""
    product, left = ONE, list(loops)
    for access, chain, form in _stored(expr, program, formats):
        depth = next((place for place, index in enumerate(chain) if index not in left), len(chain))
        if depth:
            product *= positions(access.tensor, form, chain, depth - 1)
            left = [index for index in left if index not in chain[:depth]]
    return product * _elements(tuple(left))


def _stored(expr: Expr, program: Program, formats: Mapping[str, Format]) -> Iterator[tuple[Access, tuple[str, ...], Format]]:
    """Yield the sparse accesses of an expression with the indices of their levels."""
    for access in walk(expr):
        if isinstance(access, Access) and access.tensor in formats and access.is_plain:
            form = access.stored or said_of(access, program.conversions) or formats[access.tensor]
            if not form.is_dense:
                yield access, tuple(access.subscripts[mode].index for mode in form.order), form


def _elements(indices: tuple[str, ...]) -> Posynomial:
    return Posynomial.of([(indices, 1)])
