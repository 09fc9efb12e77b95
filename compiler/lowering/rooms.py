"""Room for what a loop appends to a sparse result, made once before the loop."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Stmt
from ..ir.arithmetic import ZERO, add, subtract
from ..ir.nodes import Step, Value
from .scope import Scope


def room(scope: Scope, statement: Stmt, index: str, ranges: list[tuple[Value, Value]]) -> tuple[list[Step], Scope]:
    """Return the steps before a loop through these ranges that make room for all that it can append, and the scope of the loop."""
    assembly = scope.assembly
    if assembly is None or not assembly.appends_once(statement, index):
        return [], scope
    count: Value = ZERO
    for low, high in ranges:
        count = add(count, subtract(high, low))
    return assembly.reserve(count), replace(scope, assembly=replace(assembly, reserved=True))
