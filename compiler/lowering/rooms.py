"""How much room a sparse result gets for appended entries: at first, and before a loop that appends at most a known number."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Assign, Forall, Stmt, Where, assignments, targets
from ..ir.arithmetic import ONE, ZERO, add, integer, maximum, minimum, multiply, quotient, subtract
from ..ir.nodes import Step, Value
from .assembly import Assembly
from .context import Context
from .scope import Scope

GENEROUS, ENOUGH = 64, 2**25  # first room of a result of unknown size: a multiple of the operands' entries, and the most components


def expected_entries(context: Context, assembly: Assembly) -> Value:
    """Return the number of appended entries for which an assembled result gets room at first.

    A sum has at most as many as its operands store. A result of a workspace may have many more. Pages that are never
    touched cost nothing, while growing an array copies its elements. But more than the machine has is refused, even untouched, and entries
    above dense levels are as large as these.
    """
    expected = _stored_entries(context)
    if any(workspace.indices for workspace in context.program.workspaces):
        most = quotient(integer(ENOUGH), maximum(assembly.block(assembly.last), ONE))
        expected = maximum(expected, minimum(multiply(expected, integer(GENEROUS)), most))
    return expected


def _stored_entries(context: Context) -> Value:
    """Return how many entries the sparse operands store together, the most that their sum can have."""
    count: Value = ZERO
    for key in dict.fromkeys(context.tensors.keys.values()):
        form = context.tensors.types[key].format
        stored = [level for level, kind in enumerate(form.levels) if kind.stores_coordinates]
        if stored:
            count = add(count, context.tensors.stored_length(key, stored[-1]))
    return count


def room(scope: Scope, statement: Stmt, index: str, ranges: list[tuple[Value, Value]]) -> tuple[list[Step], Scope]:
    """Return the steps that make room for all that a loop over these ranges can append, and the scope of the loop."""
    assembly = scope.assembly
    if assembly is None or not _appends_once(assembly, statement, index):
        return [], scope
    count: Value = ZERO
    for low, high in ranges:
        count = add(count, subtract(high, low))
    return assembly.reserve(count), replace(scope, assembly=replace(assembly, reserved=True))


def _appends_once(assembly: Assembly, statement: Stmt, index: str) -> bool:
    """Whether every iteration of a loop over ``index`` around a statement appends at most one entry of the last level."""
    last = assembly.last + 1 == len(assembly.levels) and assembly.levels[-1].index == index
    return last and assembly.phase.grows and not assembly.reserved and _at_once(statement, assembly.name)


def _at_once(statement: Stmt, tensor: str) -> bool:
    """Whether a statement assigns a tensor without a loop around the assignment."""
    match statement:
        case Assign(target, _, _):
            return target.tensor == tensor
        case Where(consumer, _):
            return _at_once(consumer, tensor)
        case Forall() if tensor not in targets(statement):
            return False
        case Forall(_, body, _):
            # A chain of reduction loops around the assignment becomes a scalar accumulator that is stored once.
            return isinstance(body, (Forall, Assign)) and _at_once(body, tensor) and _accumulates(body)
        case _:
            return False


def _accumulates(statement: Stmt) -> bool:
    return all(assign.operator == "+=" for assign in assignments(statement))
