"""Kernels that read a matrix whose rows lie apart in memory (``levels.level.SteppedLevel``), so that it need not be copied.

Most steps of lowering compute positions from coordinates. Some count through all positions of a dense operand, or hand its array to a
routine, as if rows followed each other. So the loop IR is examined: it may read the array only at a coordinate of a row times the step,
plus something.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.nodes import STEP, ArrayRef, Binary, Fill, Free, Function, Load, Prefetch, Store, Value, Var
from ..ir.rewrite import nodes_of


def reads_rows_apart(function: Function, key: str) -> bool:
    """Return whether a kernel that was lowered for rows apart of a stored operand reads it so in all places."""
    steps = [size.name for size in function.sizes if size.source[:2] == (key, STEP)]
    arrays = {array.name for array in function.arrays if array.source == (key, "values")}
    uses = [node for node in nodes_of(function.body, Load, Prefetch, Store, ArrayRef, Fill, Free) if node.array in arrays]
    return bool(steps) and all(isinstance(use, Load | Prefetch) and _is_in_row(use.index, steps[0]) for use in uses)


def _is_in_row(index: Value, step: str) -> bool:
    """Whether an index is a sum, one term of which is a number of rows times the step; the others do not depend on the step."""
    parts = [term for term in _terms(index) if _mentions(term, step)]
    match parts:
        case [Binary("*", row, Var(name))]:
            return name == step and not _mentions(row, step)
        case _:
            return False


def _terms(value: Value) -> Iterator[Value]:
    match value:
        case Binary("+", left, right):
            yield from _terms(left)
            yield from _terms(right)
        case _:
            yield value


def _mentions(value: Value, name: str) -> bool:
    return any(node.name == name for node in nodes_of(value, Var))
