"""The frame of a kernel: allocations, zeros and the completion of results around its steps; and the kernel as a function."""

from __future__ import annotations

from dataclasses import replace

from ..concrete.nodes import Stmt
from ..ir.arithmetic import ONE, ZERO, multiply
from ..ir.nodes import (
    PAST_CACHES,
    ArrayRef,
    Fill,
    For,
    Free,
    Function,
    Load,
    Parallel,
    Prefetch,
    Publish,
    SizeParameter,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from ..ir.rewrite import nodes_of
from ..notation.nodes import Access
from .context import Context
from .gaps import zeros_in_gaps
from .lifespans import allocated_in_time
from .placing import placed
from .requests import NeedsZeros, Once, at_end, at_start, needs_zeros, taken
from .rooms import expected_entries
from .rows import added_in_rows, written_in_rows


def framed(context: Context, results: tuple[Access, ...], statement: Stmt, steps: list[Step]) -> Steps:
    """Put what is made once around the steps of a statement, and zeros into the results if they are needed."""
    asked, steps = taken(steps, Once, NeedsZeros)
    own = [request for request in asked if isinstance(request, Once)]
    before, after = list(at_start(own)), at_end(own)
    if context.assembly is not None:
        made = bool(steps)  # without steps, nothing is appended
        assembly = replace(context.assembly, inserted=context.assembly.inserted and made, apart=context.assembly.apart and made)
        begin = [] if assembly.inserted or assembly.apart else assembly.begin(expected_entries(context, assembly))
        last = placed(assembly, context.names, in_threads=_in_threads(steps))
        return Steps((*begin, *before, *steps, *assembly.end(), *last, *after))
    for result in results:
        if needs_zeros(statement, asked, result.tensor) or not _stores(steps, context.tensors.operand_storage(result).values):
            begun = zeros_in_gaps(context, result, steps)
            if begun is None:
                before += _zeros(context, result, steps)
            else:
                steps = begun
    if not context.on_gpu:
        before, steps, after = allocated_in_time(before, steps, after)
    return Steps((*before, *steps, *after))


def _zeros(context: Context, result: Access, steps: list[Step]) -> list[Step]:
    stored = context.tensors.operand_storage(result)
    zero = context.semiring.zero(stored.type)
    length: Value = ONE
    sizes = list(stored.levels)
    if context.shares is not None:
        depth = max(depth for depth, level in enumerate(stored.levels, 1) if not level.kind.full)
        length = context.tensors.stored_length(context.tensors.key(context.shares), depth - 1)
        sizes = sizes[depth:]
    for level in sizes:
        length = multiply(length, level.extent)
    if not _in_threads(steps):
        return [Fill(stored.values, ZERO, length, zero)]
    place = Var(context.names.permanent("place"), ZERO.type)
    return [For(place, ZERO, length, Steps((Store(stored.values, place, zero),)), Parallel("static"))]


def _stores(steps: list[Step], array: str) -> bool:
    """Whether statements, or functions that they call, store into an array."""
    return any(node.array == array for kind in (Store, ArrayRef) for step in steps for node in nodes_of(step, kind))


def _in_threads(steps: list[Step]) -> bool:
    """Whether threads run one of the loops."""
    return any(isinstance(node.tag, Parallel) for step in steps for node in nodes_of(step, For))


def kernel_function(context: Context, body: Steps) -> Function:
    """Return the kernel with the parameters that its body uses."""
    used = {node.array for node in nodes_of(body, Load, Store, ArrayRef, Fill, Prefetch, Free)}
    used |= {node.parameter for node in nodes_of(body, Publish)} | body.variables
    arrays = tuple(parameter for parameter in context.parameters.arrays.values() if parameter.name in used or parameter.assembled)
    sizes = [parameter for parameter in context.parameters.sizes.parameters.values() if parameter.name in used]
    results = [array for array in arrays if array.writable and not array.assembled]
    rows = [array.source[0] for array in results if written_in_rows(body, array.name) or added_in_rows(body, array.name)]
    sizes += [SizeParameter(context.names.permanent(f"{tensor}_{PAST_CACHES}"), (tensor, PAST_CACHES, 0)) for tensor in rows]
    return Function("st_kernel", arrays, tuple(sizes), body)
