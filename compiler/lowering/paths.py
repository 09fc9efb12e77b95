"""The merge path: the entries of an operand and, behind the last of each fibre, the fibre's end.

Item number ``p + f`` is position ``p`` in fibre ``f``, or the end of ``f`` if ``p`` is the first position behind ``f``. The beginning of a
tile of items is found by binary search along a diagonal (Merrill and Garland, "Merge-based Parallel Sparse Matrix-Vector Multiplication",
section 3), among the fibres of the tile around it. The entries and fibres inside a tile need no further search.
"""

from __future__ import annotations

from dataclasses import replace

from ..concrete.shapes import Along
from ..ir.arithmetic import ONE, add, compare, minimum, subtract
from ..ir.nodes import I64, Call, Step, Value
from ..levels.level import Level
from .context import Context
from .resolve import named
from .scope import Scope, Window
from .windows import entries_of, path_range, position_chain, window


def with_fibres(context: Context, scope: Scope, index: str, part: Window, steps: list[Step]) -> Window:
    """Return a part of an index's window; if the index runs along a merge path, with the fibres in which the part begins and ends."""
    shape = context.graph.shape(index)
    return replace(part, fibres=fibres_of(context, scope, index, shape, part, steps)) if isinstance(shape, Along) else part


def fibres_of(context: Context, scope: Scope, path: str, along: Along, part: Window, steps: list[Step]) -> tuple[Value, Value]:
    """Return the fibres in which a part of a path begins and ends, found among those of the path's window."""
    within = window(context, scope, path).fibres or path_range(context, scope, along).fibres
    assert within is not None, "the whole path has fibres"
    level = _level(context, scope, along)
    first = named(context, f"{path}_first", _fibre(level, *within, part.low), steps)
    most = minimum(add(first, subtract(part.high, part.low)), within[1])  # each end of a fibre is an item of the part
    return first, named(context, f"{path}_last", _fibre(level, first, most, part.high), steps)


def entry_at(context: Context, scope: Scope, along: Along, item: Value, steps: list[Step]) -> tuple[Value, Value]:
    """Return the position of an item of the whole path, and the condition that the item is an entry and not an end."""
    fibres = path_range(context, scope, along).fibres
    assert fibres is not None, "the whole path has fibres"
    level = _level(context, scope, along)
    fibre = named(context, f"{along.positions}_fibre", _fibre(level, *fibres, item), steps)
    position = named(context, along.positions, subtract(item, fibre), steps)
    return position, compare("<", position, level.kind.begin(level, add(fibre, ONE)))


def _fibre(level: Level, low: Value, high: Value, item: Value) -> Value:
    return Call("path_fibre", (level.reference("pos"), low, high, item), I64)


def _level(context: Context, scope: Scope, along: Along) -> Level:
    access, chain = position_chain(context, entries_of(context, along.positions))
    return context.tensors.storage(scope, access).levels[scope.place(access).depth + len(chain) - 1]
