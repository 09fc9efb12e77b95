"""Room for what a loop appends to a sparse result, made once before the loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..concrete.nodes import Stmt
from ..ir.arithmetic import ZERO, add, subtract
from ..ir.nodes import Step, Value
from .context import Context


@contextmanager
def room(context: Context, statement: Stmt, index: str, ranges: list[tuple[Value, Value]]) -> Iterator[list[Step]]:
    """Make room once for what a loop through these ranges can append; the steps yielded stand before the loop."""
    assembly = context.assembly
    if assembly is None or not assembly.appends_once(statement, index):
        yield []
        return
    count: Value = ZERO
    for low, high in ranges:
        count = add(count, subtract(high, low))
    assembly.reserved = True
    try:
        yield assembly.reserve(count)
    finally:
        assembly.reserved = False
