"""Which arrays can be vector registers: those that vector loops alone use, and each loop whole."""

from __future__ import annotations

from collections import Counter

from ..ir.nodes import Allocate, ArrayRef, Const, Fill, For, Load, Node, Prefetch, Step, Steps, Store, Value
from ..ir.rewrite import mentions, nodes_of, walk
from .forms import is_vectorizable, vector_form
from .lanes import element_accesses


def register_lengths(body: Steps, lanes: int) -> dict[str, int]:
    """Return the arrays that are only used as whole registers, with how many elements they have."""
    arrays = {node.array: node for node in nodes_of(body, Allocate) if node.storage == "registers"}
    lengths = {name: int(node.length.value) for name, node in arrays.items() if isinstance(node.length, Const) and node.type.is_float}
    if not lengths:
        return lengths
    allocations = Counter(node.array for node in walk(body) if isinstance(node, Allocate))
    uses: Counter[str] = Counter()
    fitting: Counter[str] = Counter()
    for node in nodes_of(body, Load, Store, ArrayRef, Prefetch, Fill):
        uses[node.array] += 1
        if isinstance(node, Fill) and node.array in lengths:
            fitting[node.array] += _covers(node.low, node.high, lengths[node.array])
    for loop in vector_loops(body, lanes):
        form = vector_form(loop, lanes)
        whole = Counter(array for array, index, _ in element_accesses(loop.body) if mentions(index, {loop.variable.name}))
        for array, number in whole.items():
            if array in lengths and _covers(loop.low, loop.high, lengths[array]) and form and array not in form.displaced:
                fitting[array] += number
    return {name: length for name, length in lengths.items() if fitting[name] == uses[name] and allocations[name] == 1}


def vector_loops(node: Node, lanes: int) -> list[For]:
    """Return the outermost loops that have a vector form."""
    if isinstance(node, For) and is_vectorizable(node, lanes):
        return [node]
    return [loop for child in node.children if isinstance(child, Step) for loop in vector_loops(child, lanes)]


def _covers(low: Value, high: Value, length: int) -> bool:
    """Return whether constant bounds are those of a whole array."""
    return isinstance(low, Const) and low.value == 0 and isinstance(high, Const) and high.value == length
