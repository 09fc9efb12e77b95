"""A function of the loop IR as one C translation unit.

The kernel is ``int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads)`` and returns 0, or 1 when
there was no memory (all that it allocated is freed then). Assembled arrays are left in their slots of ``st_arrays``, and
their lengths in ``st_sizes`` behind the size parameters, in the order of the assembled parameters. The caller releases
them with ``st_release`` or ``free``.
"""

from __future__ import annotations

from collections.abc import Set

from ..ir.intrinsics import INTRINSICS
from ..ir.nodes import (
    Allocate,
    Call,
    For,
    Free,
    Function,
    Grow,
    Node,
    Parallel,
    Run,
    Steps,
    Take,
)
from ..ir.rewrite import has, may_fail, nodes_of
from .analysis import heap_allocations
from .expressions import ExpressionPrinter, c_type
from .lanes import vector_definitions
from .memory import Region
from .names import NameTable
from .regions import OF_ARRAYS
from .threads import ThreadedPrinter

KERNEL = "st_kernel"


def print_c(function: Function, heading: str = "") -> str:
    """Print a function as it stands."""
    return _KernelPrinter(function).source(heading)


class _KernelPrinter:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.expressions = ExpressionPrinter(NameTable())
        types = {parameter.name: parameter.type for parameter in function.arrays}
        types |= {node.array: node.type for node in nodes_of(function.body, Allocate, Take)}
        assembled = [parameter.name for parameter in function.arrays if parameter.assembled]
        slots = {parameter.name: slot for slot, parameter in enumerate(function.arrays)}
        published = {name: (slots[name], len(function.sizes) + rank) for rank, name in enumerate(assembled)}
        grown = {node.array: "" for node in nodes_of(function.body, Take)}
        grown |= {node.array: node.capacity.name for node in nodes_of(function.body, Grow)}
        self.statements = ThreadedPrinter(self.expressions, types, grown, published, self._region_parameters, frozenset(slots))

    def source(self, heading: str) -> str:
        body = self._body()
        if "st_blas.h" in self.expressions.headers:
            threads = "1" if any(map(_calls_blas, filter(_is_parallel, nodes_of(self.function.body, For)))) else "st_threads"
            body.insert(0, f"  ST_BLAS_THREADS({threads});")
        head = [f"/* {line.replace('*/', '* /')} */" for line in heading.splitlines() if line.strip()]
        head.append('#include "st_runtime.h"')
        head += [f'#include "{header}"' for header in sorted(self.expressions.headers - {"st_runtime.h"})]
        head += [code.strip() for _, code in sorted(self.expressions.brought.items())]
        lines = [*head, "", *vector_definitions(self.expressions.vectors, self.expressions.lane_functions)]
        lines += self.statements.functions
        lines += [f"int32_t {KERNEL}(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {{", *body, "}", ""]
        return "\n".join(lines)

    def _body(self) -> list[str]:
        printer, body = self.statements, self.function.body
        fails = may_fail(body)
        end = printer.names.own("st_end")
        printer.enter(Region(end, parallel=False))
        for text in (*self._sizes(body.variables), *self._arrays(_arrays_outside(body))):
            printer.line(text)
        if fails:
            printer.line("int32_t st_status = 0;")
        held = printer.declare_heap(heap_allocations((body,)))
        printer.statement(_without_last_frees(body) if fails else body)
        if fails:
            printer.lines.append(f"{end}:;")
            printer.free_heap(held)
        printer.line("return st_status;" if fails else "return 0;")
        return printer.lines

    def _sizes(self, used: Set[str]) -> list[str]:
        names = self.expressions.names
        slots = [(slot, parameter.name) for slot, parameter in enumerate(self.function.sizes) if parameter.name in used]
        return [f"const int64_t {names[name]} = st_sizes[{slot}];" for slot, name in slots]

    def _arrays(self, used: Set[str]) -> list[str]:
        names, lines = self.expressions.names, []
        for slot, parameter in enumerate(self.function.arrays):
            if parameter.name in used and not parameter.assembled:
                constant = "" if parameter.writable else "const "
                lines.append(f"{constant}{c_type(parameter.type)} *restrict {names[parameter.name]} = st_arrays[{slot}];")
        return lines

    def _region_parameters(self, loop: For) -> list[str]:
        """Declare the array parameters that a parallel region uses, with ``restrict``, which the given pointers do not have."""
        return self._arrays(_arrays_in(*loop.private, loop.low, loop.high, loop.body, *loop.finish))


def _without_last_frees(body: Steps) -> Steps:
    """Leave out the frees at the very end: when a kernel returns, one place frees all that it still holds."""
    statements = list(body.statements)
    while statements and isinstance(statements[-1], Free):
        statements.pop()
    return Steps(tuple(statements))


def _is_parallel(node: Node) -> bool:
    return isinstance(node, For) and isinstance(node.tag, Parallel)


def _calls_blas(loop: Node) -> bool:
    return any(INTRINSICS[node.function].extents for node in nodes_of(loop, Call, Run) if node.function in INTRINSICS)


def _arrays_in(*parts: Node) -> set[str]:
    """Return the names of the arrays that some nodes use."""
    return {node.array for part in parts for node in nodes_of(part, *OF_ARRAYS)}


def _arrays_outside(node: Node) -> set[str]:
    """Return the names of the arrays that a statement uses. Inside parallel regions only the arrays in their bounds count."""
    if not has(node, For):
        return _arrays_in(node)
    children = (node.low, node.high) if isinstance(node, For) and _is_parallel(node) else node.children
    return {name for child in children for name in _arrays_outside(child)}
