"""The format in which a sparse result is written: levels in the order of the loops, converted afterwards if it must be."""

from __future__ import annotations

from collections.abc import Sequence

from ..format import Format, LevelKind
from ..notation.nodes import Access


def assembled_format(result: Access, form: Format, loops: Sequence[str]) -> Format:
    """Return the format that loops in some order append to.

    Args:
        result: the left side.
        form: the format that is asked for; hashed and singleton levels are made from compressed ones.
        loops: indices in the order in which the loops around the result's assignment make them known.

    In another order than the one asked for, only those levels stay dense that store no more than they would there: all
    that stand above the first stored level, and the block of dense levels below the last one if it is the same.
    """
    if form.is_dense:
        return form
    order = tuple(sorted(form.order, key=lambda mode: loops.index(result.subscripts[mode].index)))
    kinds = dict(zip(form.order, (kind if kind is LevelKind.DENSE else LevelKind.COMPRESSED for kind in form.levels), strict=True))
    if order == form.order:
        return Format(tuple(kinds[mode] for mode in order), order)
    above = next(place for place, mode in enumerate(order) if kinds[mode] is LevelKind.COMPRESSED)
    below = max(level for level, kind in enumerate(form.levels) if kind is not LevelKind.DENSE) + 1
    same_block = set(order[below:]) == set(form.order[below:])
    dense = set(order[:above]) | (set(order[below:]) if same_block else set())
    return Format(tuple(LevelKind.DENSE if mode in dense else LevelKind.COMPRESSED for mode in order), order)
